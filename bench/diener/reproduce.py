"""Records, asks, judges, draws: see bench/reproduce-diener."""

import json
import os
import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

import figures
import page
import ranges
from checks import CHECKS
from judge import cores, inputs, judge
from judge.verdict import ROOT
from programs import CHANGING, NAS, PROGRAMS, STATIC
from reasons import Reasons, differs
from recordings import FOLDER, LONGER, REPEATS, manifest, measure, record, say
from study import MACHINES, behaviour, exclusivity, middle, speedups

AT_ONCE = 2  # recordings; each has 64 threads that take turns


def repeat(program, size, number, iteration, plain_ns, reuse):
    """All figures of one recording; the first one knows the plain build's time."""
    start = time.monotonic()
    setting = PROGRAMS[program].settings[size]
    profile = record(program, size, number, plain=number == 0, iteration=iteration, reuse=reuse)
    recorded = time.monotonic() - start
    known = manifest(profile)["plain_cpu_ns"] if number == 0 else plain_ns
    found = behaviour(profile, iteration.accesses, setting.iterations) | {"plain_ns": known}
    found["scenarios"] = {m.title: at_factor(profile, m, known, cores.factor(m.name)) for m in MACHINES}
    if program != CHANGING:
        found["factors"] = [typical(at_factors(profile, known, found["scenarios"], rank)) for rank in range(3)]
    say(f"{program} {number + 1}: recorded in {recorded:.0f} s, studied in {time.monotonic() - start - recorded:.0f} s")
    return found


def at_factor(profile, machine, plain_ns, factor):
    found = speedups(profile, machine, plain_ns, factor)
    return found | {"mixed": found[f"mixed:{machine.threshold}"]}


def at_factors(profile, plain_ns, done, rank):
    """At each machine's plausible core factor of this rank; the default one is done."""
    found = {}
    for machine in MACHINES:
        factor = ranges.at_rank(cores.plausible(machine.name), rank)
        default = factor == cores.factor(machine.name)
        found[machine.title] = done[machine.title] if default else at_factor(profile, machine, plain_ns, factor)
    return found


def typical(scenarios):
    return {m: {p: by["typical"] for p, by in policies.items()} for m, policies in scenarios.items()}


def study(size, reuse):
    """By program the repeats; and what an outer iteration is."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        each = dict(zip(PROGRAMS, pool.map(lambda program: measure(program, size, reuse), PROGRAMS)))
        first = dict(zip(PROGRAMS, pool.map(lambda p: repeat(p, size, 0, each[p], None, reuse), PROGRAMS)))
        tasks = [(program, number) for program in PROGRAMS for number in range(1, REPEATS)]
        rest = pool.map(lambda t: repeat(t[0], size, t[1], each[t[0]], first[t[0]]["plain_ns"], reuse), tasks)
        found = {program: [one] for program, one in first.items()}
        for (program, _), one in zip(tasks, rest):
            found[program].append(one)
    return found, each


def trials(size, each, reuse):
    """What the reasons are tested with (reasons.py), by trial: of each program as many recordings as there are repeats at full size,
    one at the nightly size, which makes no reason known."""
    numbers = range(REPEATS if size == "full" else 1)
    found = {"one thread": {program: one_thread(program, size, numbers, each[program], reuse) for program in NAS}}
    if size == "fast":
        found["full size"] = {program: larger(program, reuse) for program in NAS}
    return found


def one_thread(program, size, numbers, iteration, reuse):
    """All figures of each recording of a program whose arrays one thread initialises; the first one knows the plain build's time."""
    each, known = [], None
    for number in numbers:
        start = time.monotonic()
        profile = record(program, size, f"one-thread-{number}", plain=number == 0, iteration=iteration, reuse=reuse, parallel=False)
        known = known or manifest(profile)["plain_cpu_ns"]
        found = behaviour(profile, iteration.accesses, PROGRAMS[program].settings[size].iterations)
        found["scenarios"] = {m.title: at_factor(profile, m, known, cores.factor(m.name)) for m in MACHINES}
        say(f"{program} {number + 1}, initialised by one thread: {time.monotonic() - start:.0f} s")
        each.append(found)
    return each


def larger(program, reuse):
    """Exclusivity alone, of a few iterations of the full size."""
    start = time.monotonic()
    profile = record(program, "full", f"{LONGER}-iterations", iterations=LONGER, reuse=reuse)
    found = {"exclusivity": exclusivity(profile)}
    say(f"{program}, full size: {time.monotonic() - start:.0f} s")
    return found


def with_typical(one):
    return {**one, "speedup": typical(one["scenarios"])}


def by_repeat(found):
    """What the checks take: by repeat the programs. Of the one made to change its pattern only its moves are used."""
    return [{program: with_typical(each[number]) for program, each in found.items()} for number in range(REPEATS)]


def with_speedups(tried):
    """The trials likewise, where they have times."""
    return {**tried, "one thread": {program: [with_typical(one) for one in each] for program, each in tried["one thread"].items()}}


def by_factor(repeats):
    """The repeats at the core factors of each rank."""
    return [[{n: {**one[n], "speedup": one[n]["factors"][rank]} for n in STATIC} for one in repeats] for rank in range(3)]


def numbers(size, options):
    """Of all recordings, and of the trials; `--judge` takes those of the last run and only judges and draws."""
    file = FOLDER / f"data-{size}.json"
    if "--judge" not in options:
        reuse = "--reuse" in options
        found, iterations = study(size, reuse)
        tried = trials(size, iterations, reuse)
        data = {"iterations": {program: asdict(one) for program, one in iterations.items()}, "programs": found, "trials": tried,
                "host_ghz": cores.host_ghz()}
        file.write_text(json.dumps(data) + "\n", encoding="utf-8")
    found = json.loads(file.read_text(encoding="utf-8"))
    if "host_ghz" in found:  # the clock that its core factors are of
        os.environ[cores.GIVEN] = str(found["host_ghz"])
        cores.host_ghz.cache_clear()
    return found


def judged(check, size, repeats, factors, reasons):
    return judge(check, repeats, size=size, basis=basis(check.id), ranges=ranges.of_row(check.id, repeats, factors),
                 differs=differs(check.id, size, repeats), reason=reasons.of_row(check.id), tests=reasons.tests(check.id))


def main():
    size = "fast" if "--fast" in sys.argv[1:] else "full"
    data = numbers(size, sys.argv[1:])
    repeats = by_repeat(data["programs"])
    factors, reasons = by_factor(repeats), Reasons(repeats, with_speedups(data["trials"]))
    verdicts = [judged(check, size, repeats, factors, reasons) for check in CHECKS]
    inputs.write("diener", size, page.INPUTS)
    for one in verdicts:
        one.write(ROOT / "build/reproduce" / size)
        say(f"{one.id}: {one.verdict}, {one.held} of {one.repeats}")
    medians = {name: middle([drawn(r[name]) for r in repeats]) for name in PROGRAMS}
    figures.draw(FOLDER, medians)
    (FOLDER / "index.html").write_text(page.write(size, medians, verdicts), encoding="utf-8")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    say(f"wrote {FOLDER / 'index.html'}; {used.ru_utime + used.ru_stime:.0f} s of CPU time")


def drawn(one):
    return {key: value for key, value in one.items() if key not in ("factors", "plain_ns")}


def basis(row):
    return "simulation" if row in ranges.TIMES else "recording"


if __name__ == "__main__":
    main()
