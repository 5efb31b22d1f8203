"""Applies a criterion to repeats, stand-ins and ranges."""

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

from judge.criteria import CRITERIA
from judge.verdict import FAILS, FLIPS, HOLDS, UNABLE, UNTESTED, Assumed, Figure, StandIn, Verdict, commit

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
    policy it is an input without the property that is claimed."""

    id: str
    figures: Callable
    holds: Callable
    stand_ins: dict = field(default_factory=dict)
    unit: str = ""


@dataclass(frozen=True)
class Range:
    """What the paper leaves open: for each plausible value of a quantity the data of one repeat or more."""

    name: str
    source: str
    data: dict  # value as text → [data of a repeat, …]


def judge(check, repeats, *, size, basis, ranges=(), differs="", reason=""):
    """The verdict on a row from the data of its repeats, one entry each. The reason, of a row that does not hold, is completed by what
    the ranges say."""
    assert check.id in CRITERIA, check.id
    each = [check.figures(data) for data in repeats]
    held = sum(bool(check.holds(figures)) for figures in each)
    stand_ins = [StandIn(name, holds_of(check, [replace(data) for data in repeats]))
                 for name, replace in check.stand_ins.items()]
    verdict = word(holds_in_the_middle(check, each), held, len(each), stand_ins)
    ranges = [Assumed(r.name, r.source, held_by_value(check, r)) for r in ranges]
    return Verdict(
        id=check.id, verdict=verdict, size=size, basis=basis, unit=check.unit, figures=spread(each), repeats=len(each),
        held=held, stand_ins=stand_ins, ranges=ranges, differs=differs, reason=said(verdict, reason, ranges), commit=commit())


def said(verdict, reason, ranges):
    """Why a row does not hold: what was found out, and at which values of the ranges it would hold."""
    if verdict not in (FAILS, FLIPS):
        return ""
    values = [f"{r.name} {value}" for r in ranges for value, held in r.held.items() if held]
    tried = ", ".join(r.name for r in ranges)
    over = ""
    if values:
        over = f"By the ranges it holds at {', '.join(values)}."
    elif tried:
        over = f"At no value of the ranges ({tried}) does it hold."
    return " ".join(filter(None, (reason or "Not known.", over)))


def untested(identifier, why, *, size):
    return Verdict(id=identifier, verdict=UNTESTED, size=size, basis="none", reason=why, commit=commit())


def word(middle, held, repeats, stand_ins):
    # One that fails is able to.
    if not middle:
        return FAILS
    if any(s.passes for s in stand_ins):
        return UNABLE
    return HOLDS if held >= ENOUGH * repeats else FLIPS


def held_by_value(check, assumed):
    return {value: holds_of(check, data) for value, data in assumed.data.items()}


def holds_of(check, repeats):
    return bool(holds_in_the_middle(check, [check.figures(data) for data in repeats]))


def holds_in_the_middle(check, each):
    return check.holds({name: figure.median for name, figure in spread(each).items()})


def spread(each):
    """By name: median, least and most over the repeats."""
    def one(values):
        return Figure(median(values), min(values), max(values))
    return {name: one([figures[name] for figures in each]) for name in each[0]}
