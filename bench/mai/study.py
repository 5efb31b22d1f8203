"""The figures of one repeat: predicted seconds by program, machine and solution."""

from judge import cores
from recordings import BY_PARTS, BY_ROWS, MACHINES, PAGES, PARTS, POLICIES, SIZES, THREADS, record, simulate

PROGRAMS = tuple(SIZES["full"])
OTHER_PAGES = {"mai-itanium2-fss": ("16K", "64K")}  # ia64 Linux's default, and what the kernel's name says


def on_machine(profiles, machine, **options):
    """Linux: one thread initialises; Parallel-Init: all do; MAI's policies place what all initialise."""
    linux = simulate(profiles["master"], machine, ["first-touch"], **options)["first-touch"]
    placed = simulate(profiles["parallel"], machine, ["first-touch", *POLICIES.values(), PARTS], **options)
    return {"Linux": linux, "Parallel-Init": placed["first-touch"], BY_ROWS: placed["first-touch"], BY_PARTS: placed[PARTS],
            **{name: placed[p] for name, p in POLICIES.items()}}


def profiles_of(program, size, number, reuse):
    return {who: record(program, who, size, number, reuse) for who in ("master", "parallel")}


def repeat(program, size, number, reuse):
    """One repeat's figures of one program."""
    profiles = profiles_of(program, size, number, reuse)
    default = {m: on_machine(profiles, m) for m in MACHINES}
    found = {"machines": default}
    found["factors"] = {m: {f: default[m] if f == cores.factor(m) else on_machine(profiles, m, factor=f)
                            for f in cores.plausible(m)} for m in MACHINES}
    found["pages"] = {m: {p: default[m] if p == PAGES[m] else on_machine(profiles, m, pages=p) for p in sizes}
                      for m, sizes in OTHER_PAGES.items()}
    if number == 0:
        found["threads"] = {m: by_threads(profiles, m) for m in MACHINES}
    return found


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


def at(found, key, choose):
    """Of each repeat, seconds at the values that `choose(machine)` names, of what `key` varied."""
    def one(repeat):
        return {m: seconds(repeat[key][m][choose(m)] if m in repeat[key] else repeat["machines"][m]) for m in MACHINES}
    count = len(next(iter(found.values())))
    return [{p: one(each[n]) for p, each in found.items()} for n in range(count)]
