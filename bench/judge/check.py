"""Applies a criterion to repeats, stand-ins, tests of reasons, and ranges."""

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

from judge.criteria import CRITERIA
from judge.verdict import FAILS, FLIPS, HOLDS, UNABLE, UNTESTED, Assumed, Figure, StandIn, Tested, Verdict, commit

# Share of the repeats that must hold, four of five: rule 1.
ENOUGH = 4 / 5
# "Better", "faster" mean by more than this; "similar", "close" mean within the other: rule 3.
BETTER, SIMILAR = 1.02, 1.05


@dataclass(frozen=True)
class Check:
    """A row of criteria.csv as code.

    `figures(data)` gives the numbers that are judged, by name, of one repeat's `data` (whatever the reproduction makes it);
    `holds(figures)` is the criterion. `stand_ins` are by name: each makes of a repeat's data what it would be had a dead
    policy been in the place of the one that is judged: one that never moves, or one equal to its rival. For rows without a
    policy it is an input without the property that is claimed. `lacks`: why no dead policy, or no rival, can stand in."""

    id: str
    figures: Callable
    holds: Callable
    stand_ins: dict = field(default_factory=dict)
    unit: str = ""
    lacks: str = ""


@dataclass(frozen=True)
class Range:
    """What the paper leaves open: for each plausible value of a quantity the data of one repeat or more."""

    name: str
    source: str
    data: dict  # value as text → [data of a repeat, …]


@dataclass(frozen=True)
class Test:
    """A run that takes away what a reason names: what was changed, and the row's data then, of one repeat or more. `shown`: the
    figures that the verdict names, where not all of the row's."""

    what: str
    data: list
    shown: tuple = ()


def judge(check, repeats, *, size, basis, ranges=(), differs="", reason="", tests=()):
    """The verdict on a row from the data of its repeats, one entry each. `reason`, of a row that does not hold, is what was looked at;
    whether that is the reason say `tests`, and where it would hold the ranges."""
    assert check.id in CRITERIA, check.id
    each = [check.figures(data) for data in repeats]
    held = sum(bool(check.holds(figures)) for figures in each)
    stand_ins = [StandIn(name, in_the_middle(check, [check.figures(replace(data)) for data in repeats]))
                 for name, replace in check.stand_ins.items()]
    verdict = word(in_the_middle(check, each), held, len(each), stand_ins)
    ranges = [Assumed(r.name, r.source, held_by_value(check, r), min(map(len, r.data.values()))) for r in ranges]
    tested = [outcome(check, test) for test in tests] if verdict in (FAILS, FLIPS) else []
    return Verdict(
        id=check.id, verdict=verdict, size=size, basis=basis, unit=check.unit, figures=spread(each), repeats=len(each),
        held=held, stand_ins=stand_ins, lacks=check.lacks, ranges=ranges, tests=tested, differs=differs,
        reason=said(verdict, reason, ranges, tested), commit=commit())


def said(verdict, looked_at, ranges, tested=()):
    """Why a row does not hold. Known is only what a test took away so that the row held; the rest is what was looked at."""
    if verdict not in (FAILS, FLIPS):
        return ""
    known = "" if any(one.holds for one in tested) else "Not known."
    values = [f"{r.name} {value}" for r in ranges for value, held in r.held.items() if held]
    tried = ", ".join(r.name for r in ranges)
    over = ""
    if values:
        over = f"By the ranges it holds at {', '.join(values)}."
    elif tried:
        over = f"At no value of the ranges ({tried}) does it hold."
    return " ".join(filter(None, (known, looked_at, *(one.sentence() for one in tested), over)))


def untested(identifier, why, *, size):
    return Verdict(id=identifier, verdict=UNTESTED, size=size, basis="none", reason=why, commit=commit())


def word(middle, held, repeats, stand_ins):
    # One that fails is able to.
    if not middle:
        return FAILS
    if any(s.passes for s in stand_ins):
        return UNABLE
    return HOLDS if held >= ENOUGH * repeats else FLIPS


def outcome(check, test):
    each = [check.figures(data) for data in test.data]
    found = spread(each)
    names = [name for name in found if not test.shown or name in test.shown]
    return Tested(test.what, {name: found[name] for name in names}, holds(check, each), len(each), check.unit)


def held_by_value(check, assumed):
    return {value: holds(check, [check.figures(data) for data in repeats]) for value, repeats in assumed.data.items()}


def holds(check, each):
    """As rule 1 has it: the median, and four of five."""
    return in_the_middle(check, each) and sum(bool(check.holds(figures)) for figures in each) >= ENOUGH * len(each)


def in_the_middle(check, each):
    return bool(check.holds({name: figure.median for name, figure in spread(each).items()}))


def spread(each):
    """By name: median, least and most over the repeats."""
    def one(values):
        return Figure(median(values), min(values), max(values))
    return {name: one([figures[name] for figures in each]) for name in each[0]}
