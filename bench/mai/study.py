"""The figures of one repeat: predicted seconds by program, machine and solution."""

from judge import cores
from recordings import MACHINES, POLICIES, SIZES, THREADS, record, simulate

PROGRAMS = tuple(SIZES["full"])
OTHER_PAGES = {"mai-itanium2-fss": ("16K", "64K")}  # ia64 Linux's default, and what the kernel's name says


def on_machine(profiles, machine, **options):
    """Linux: one thread initialises; Parallel-Init: all do; MAI's policies place what all initialise."""
    linux = simulate(profiles["master"], machine, ["first-touch"], **options)["first-touch"]
    placed = simulate(profiles["parallel"], machine, ["first-touch", *POLICIES.values()], **options)
    return {"Linux": linux, "Parallel-Init": placed["first-touch"], **{name: placed[p] for name, p in POLICIES.items()}}


def profiles_of(program, size, number, reuse):
    return {who: record(program, who, size, number, reuse) for who in ("master", "parallel")}


def repeat(program, size, number, reuse):
    """One repeat's figures of one program."""
    profiles = profiles_of(program, size, number, reuse)
    found = {"machines": {m: on_machine(profiles, m) for m in MACHINES}}
    if number == 0:
        found["factors"] = {m: {f: done(found, m) if f == cores.factor(m) else on_machine(profiles, m, factor=f)
                                for f in cores.plausible(m)} for m in MACHINES}
        found["pages"] = {m: {p: on_machine(profiles, m, pages=p) for p in sizes} for m, sizes in OTHER_PAGES.items()}
        found["threads"] = {m: by_threads(profiles, m) for m in MACHINES}
    return found


def done(found, machine):
    return found["machines"][machine]


def by_threads(profiles, machine):
    """For the figures, at 2, 4, 8 and 16 threads; and one thread with its memory beside it."""
    one = simulate(profiles["parallel"], machine, ["first-touch"], threads=1)["first-touch"]
    return {"1": {"Sequential": one}} | {str(t): on_machine(profiles, machine, threads=t) for t in (2, 4, 8, THREADS)}


def seconds(solutions, view="typical"):
    return {name: one["seconds"][view] for name, one in solutions.items()}


def by_repeat(found, view="typical"):
    """What the checks take: of each repeat, by program and machine, seconds by solution."""
    count = len(next(iter(found.values())))
    return [{p: {m: seconds(s, view) for m, s in each[n]["machines"].items()} for p, each in found.items()} for n in range(count)]


def first_at(found, key, choose):
    """Of the first repeat, seconds at the values that `choose(machine)` names, of what `key` varied."""
    return [{p: {m: seconds(each[0][key][m][choose(m)]) if m in each[0][key] else seconds(each[0]["machines"][m]) for m in MACHINES}
             for p, each in found.items()}]
