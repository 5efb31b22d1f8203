"""Applies a criterion to repeats, stand-ins, tests of reasons, and ranges."""

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

from judge import cores
from judge.criteria import CRITERIA
from judge.verdict import (
    DEAD,
    FAILS,
    FLIPS,
    HOLDS,
    INPUT,
    KINDS,
    OTHER,
    RIVAL,
    UNABLE,
    UNTESTED,
    Assumed,
    Figure,
    StandIn,
    Tested,
    Verdict,
    commit,
)

# Recordings of a program, and the share of these repeats that must hold, four of five: rule 1.
RECORDINGS, ENOUGH = 5, 4 / 5
# "Better", "faster" mean by more than this; "similar", "close" mean within the other: rule 3.
BETTER, SIMILAR = 1.02, 1.05


@dataclass(frozen=True)
class Check:
    """A row of criteria.csv as code.

    `figures(data)` gives the numbers that are judged, by name, of one repeat's `data` (whatever the reproduction makes it);
    `holds(figures)` is the criterion. What stands in is by name: each makes of a repeat's data what it would be had something
    else been in the place of the policy that is judged: one that never moves (`dead`), what the row compares the policy with
    (`rivals`; rule 3: "one equal to its rival"), or, as for rows without a policy, an input without the property that is claimed
    (`inputs`). A row has both a dead policy and a rival, or says in `lacks`, by kind, why there can be none; `remark` is on those
    that pass by definition. `others` are further policies of the paper: where they pass, what the row says is not of this policy
    alone, which is shown and turns no verdict.

    `unit` is of all figures, `units` by name of those that have another one. `words(figures)` makes a sentence of the figures, each a
    `Figure` by name, where their names and values alone would not be understood.

    `closed`: why the paper leaves nothing open that the row depends on; `not_run`: what is open and was not run over its range;
    else it has ranges. `cannot_hold`: why the row fails by definition at the reading that it is judged by. `part`: what of the criterion
    cannot be judged. Such a row can fail, but not hold: the best that is said of it is that it is undecided."""

    id: str
    figures: Callable
    holds: Callable
    dead: dict = field(default_factory=dict)
    rivals: dict = field(default_factory=dict)
    inputs: dict = field(default_factory=dict)
    unit: str = ""
    units: dict = field(default_factory=dict)
    words: Callable = None
    lacks: dict = field(default_factory=dict)
    remark: str = ""
    closed: str = ""
    not_run: str = ""
    cannot_hold: str = ""
    part: str = ""
    others: dict = field(default_factory=dict)

    def __post_init__(self):
        for kind in (DEAD, RIVAL):
            if not self.stand_ins(kind) and not self.lacks.get(kind):
                raise ValueError(f"{self.id} has no {kind} as a stand-in, and does not say why")

    def stand_ins(self, kind):
        return {DEAD: self.dead, RIVAL: self.rivals, INPUT: self.inputs, OTHER: self.others}[kind]


@dataclass(frozen=True)
class Range:
    """What the paper leaves open: for each plausible value of a quantity the data of one repeat or more."""

    name: str
    source: str
    data: dict  # value as text → [data of a repeat, …]


@dataclass(frozen=True)
class Test:
    """A run that takes away what a reason names: what was changed, and the row's data then, of one repeat or more. `shown`: the
    figures that the verdict names, where not all of the row's. `instead`: it judges something else than the row does, as another
    program, or a figure less what was measured apart; `open`: what was changed is left open by the paper and is not among the row's
    ranges. Either is shown, and no reason is known by it; nor by a value of the row's ranges, which may be true as it is."""

    what: str
    data: list
    shown: tuple = ()
    instead: bool = False
    open: bool = False


def judge(check, repeats, *, size, basis, ranges=(), differs="", reason="", tests=()):
    """The verdict on a row from the data of its repeats, one entry each. `reason`, of a row that does not hold, is what was looked at;
    whether that is the reason say `tests`, and where it would hold the ranges."""
    assert check.id in CRITERIA, check.id
    assert ranges or check.closed or check.not_run, f"{check.id} has no range, and does not say why"
    each = [check.figures(data) for data in repeats]
    held = sum(bool(check.holds(figures)) for figures in each)
    stand_ins = [StandIn(name, in_the_middle(check, [check.figures(replace(data)) for data in repeats]), kind)
                 for kind in (*KINDS, OTHER) for name, replace in check.stand_ins(kind).items()]
    verdict = word(in_the_middle(check, each), held, len(each), stand_ins, check.part)
    values = [data for r in ranges for data in r.data.values()]
    tested = [outcome(check, test, test.open or test.data in values) for test in tests] if verdict in (FAILS, FLIPS) else []
    ranges = [Assumed(r.name, r.source, held_by_value(check, r), min(map(len, r.data.values()))) for r in ranges]
    return Verdict(
        id=check.id, verdict=verdict, size=size, basis=basis, unit=check.unit, units=check.units, figures=spread(each),
        words=in_words(check, spread(each)), repeats=len(each),
        each=each, held=held, stand_ins=stand_ins, lacks=check.lacks, remark=check.remark, ranges=ranges, closed=check.closed,
        not_run=check.not_run,
        part=check.part, tests=tested, differs=differs, commit=commit(), host_ghz=cores.host_ghz(),
        reason=IN_PART if verdict == FLIPS and often(held, len(each)) else said(verdict, reason, ranges, tested, check))


# Of a row that is undecided only because a part of its criterion cannot be judged.
IN_PART = "What is judged of the criterion holds."


def said(verdict, looked_at, ranges, tested, check):
    """Why a row does not hold. Known is only what a test took away so that the row held; the rest is what was looked at."""
    if verdict not in (FAILS, FLIPS):
        return ""
    values = [f"{r.name} {value}" for r in ranges for value, held in r.held.items() if held]
    tried = ", ".join(r.name for r in ranges)
    over, it = "", "what is judged of it" if check.part else "it"
    if values:
        over = f"By the ranges {it} holds at {', '.join(values)}."
    elif tried:
        over = f"At no value of the ranges ({tried}) does {it} hold."
    return " ".join(filter(None, (check.cannot_hold or known(tested), looked_at, *(one.sentence() for one in tested), over)))


def known(tested):
    """Nothing to say where a reason is known: the row held without it, in as many recordings as rule 1 asks for."""
    held = [one.repeats for one in tested if one.holds and not one.instead and not one.plausible]
    if held and max(held) >= RECORDINGS:
        return ""
    return "Not known: the row holds in a test, but of too few recordings." if held else "Not known."


def untested(identifier, why, *, size):
    return Verdict(id=identifier, verdict=UNTESTED, size=size, basis="none", reason=why, commit=commit(), host_ghz=cores.host_ghz())


def word(middle, held, repeats, stand_ins, part=""):
    # One that fails is able to.
    if not middle:
        return FAILS
    if any(s.passes for s in stand_ins if s.kind != OTHER):
        return UNABLE
    return HOLDS if often(held, repeats) and not part else FLIPS


def often(held, repeats):
    return held >= ENOUGH * repeats


def outcome(check, test, plausible):
    each = [check.figures(data) for data in test.data]
    found = spread(each)
    names = [name for name in found if not test.shown or name in test.shown]
    return Tested(test.what, {name: found[name] for name in names}, holds(check, each), len(each), check.unit,
                  bool(check.part), test.instead, check.units, "" if test.shown else in_words(check, found), plausible)


def in_words(check, figures):
    return check.words(figures) if check.words else ""


def held_by_value(check, assumed):
    return {value: holds(check, [check.figures(data) for data in repeats]) for value, repeats in assumed.data.items()}


def holds(check, each):
    """As rule 1 has it: the median, and four of five."""
    return in_the_middle(check, each) and often(sum(bool(check.holds(figures)) for figures in each), len(each))


def in_the_middle(check, each):
    return bool(check.holds({name: figure.median for name, figure in spread(each).items()}))


def spread(each):
    """By name: median, least and most over the repeats."""
    def one(values):
        return Figure(median(values), min(values), max(values))
    return {name: one([figures[name] for figures in each]) for name in each[0]}
