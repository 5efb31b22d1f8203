"""What the paper leaves open and what the model assumes, row by row."""

from copy import deepcopy

from judge import cores
from judge.check import Range
from programs import GRIDS
from study import EVERY_THRESHOLD, MACHINES, POLICIES

TIMES = ("D7", "D8", "D9", "D10", "D11", "D12", "D13", "D14")
BALANCES = ("D3", "D4", "D5")
OF_MIXED = ("D3", "D5", "D7", "D8", "D9", "D10", "D11")
ONE_MACHINE = {"D7": "Itanium", "D8": "Xeon", "D9": "Opteron", "D14": "Xeon"}
MODEL = {
    "misses in flight": "the model's: from dependent loads to a core's line-fill buffers (docs/model.md)",
    "share of lines from memory": "the model's: what a shared last-level cache may hold (docs/model.md)",
    "queueing, ns": "the model's: fifteen published latency curves (docs/model.md)",
    "assumed bandwidths, times": "the model's: what is measured of nominal bandwidths (docs/model.md)",
    "cost of recording": "19 of 20 cases of the counts of samples that it is measured by (docs/model.md)",
}
EQUATION_4 = ("II.B: as printed it sums accesses from each node, which no mapping of pages changes, though Table I's differ by policy; so "
              "accesses to the pages on each node are meant, or Table I is of something else")
MIN_EXCL = "III.A: 80 to 95 %, V.B: 99 % on the Itanium"
SUITES = f"IV.A: the paper's programs are NAS-OMP's and PARSEC's; {' and '.join(GRIDS)} are of neither suite"


def at(data, name):
    """One scenario's speed-ups of a repeat, of which every scenario was kept."""
    copy = {program: dict(one) for program, one in data.items()}
    for program in copy.values():
        program["speedup"] = {m: {p: by[name] for p, by in policies.items()} for m, policies in program["scenarios"].items()}
    return copy


def with_threshold(data, threshold):
    """mixed's speed-ups and balances at another minExcl."""
    copy = deepcopy(data)
    for program in copy.values():
        for machine in program["speedup"].values():
            machine["mixed"] = machine[f"mixed:{threshold}"]
        program["balance"]["mixed"] = program["balance"][f"mixed:{threshold}"]
    return copy


def as_printed(data):
    """Access balance by equation 4 to the letter: one number for all policies."""
    copy = deepcopy(data)
    for program in copy.values():
        for policy in POLICIES:
            if policy in program["balance"]:
                program["balance"][policy]["accesses"] = program["as_printed"]
    return copy


def first_place_not_counted(data, moves="later_moves"):
    """Moves from the second outer iteration on."""
    copy = deepcopy(data)
    for program in copy.values():
        program["moves"] = [1 - program[moves], program[moves], 0.0, 0.0, 0.0]
    return copy


def of_the_suites(data):
    """A repeat without the programs that are not of the paper's suites."""
    return {program: one for program, one in data.items() if program not in GRIDS}


def of_model(repeats):
    """By quantity the value's data, typical ones included."""
    names = list(next(iter(repeats[0].values()))["scenarios"]["Xeon"]["mixed"])
    found = []
    for quantity, source in MODEL.items():
        mine = [name for name in names if name.startswith(quantity)]
        values = {name[len(quantity) + 1:]: [at(r, name) for r in repeats] for name in mine}
        found.append(Range(quantity, source, {"typical": [at(r, "typical") for r in repeats], **values}))
    return found


def of_cores(factors):
    """`factors`: by the rank of the factor all repeats' data at it; the factors are each machine's own."""
    each = {m.title: cores.plausible(m.name) for m in MACHINES}
    return lambda machine: Range("core factor", cores.SOURCE, {
        label(rank, each, machine): repeats for rank, repeats in enumerate(factors)})


def label(rank, each, machine):
    """The factor on one machine, or on all three."""
    chosen = [each[machine]] if machine else each.values()
    return "/".join(f"{at_rank(values, rank):g}" for values in chosen)


def at_rank(values, rank):
    """Two values are all where the default factor is 1."""
    return values[min(rank, len(values) - 1)]


def of_row(row, repeats, factors):
    """The ranges of a row. `factors` as in of_cores."""
    found = [Range("programs", SUITES, {"all": repeats, "the paper's suites only": [of_the_suites(r) for r in repeats]})]
    if row == "D6":
        found.append(Range("moves counted from", "II.C does not say where a page is before its first move", {
            "the first touch": repeats, "the second outer iteration": [first_place_not_counted(r) for r in repeats]}))
    if row in BALANCES:
        found.append(Range("reading of equation 4", EQUATION_4, {
            "accesses to a node's pages": repeats, "accesses from a node, as printed": [as_printed(r) for r in repeats]}))
    if row in TIMES:
        found += [*of_model(repeats), of_cores(factors)(ONE_MACHINE.get(row))]
    if row in OF_MIXED:
        found.append(Range("minExcl", MIN_EXCL, {t: [with_threshold(r, t) for r in repeats] for t in EVERY_THRESHOLD}))
    return found
