"""Several runs of a row, judged together.

A row that is close to its criterion can get another verdict when it is recorded again with nothing changed that it depends on. To keep
the run that came out better would be a choice, so rule 1 (the median, and four of five) is then applied to the recordings of all such runs.
bench/verdicts/pooled.csv lists the earlier runs: the newest one is the row's verdict file, which stays as that run wrote it. Whoever
changes something that a row depends on removes its lines."""

import csv
from dataclasses import dataclass

from judge import verdict
from judge.check import often
from judge.verdict import FAILS, FLIPS, HOLDS, Verdict

FILE = "pooled.csv"
HEADS = ("id", "size", "held", "repeats", "commit", "why")
NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
# Of a run that was the newest until another one took its place.
ADDED = "the run before; remove this line if something that the row depends on was changed since"


@dataclass(frozen=True)
class Run:
    """An earlier run of a row: of how many recordings the criterion held."""

    id: str
    size: str
    held: int
    repeats: int
    commit: str
    why: str  # it counts with the newest one


@dataclass(frozen=True)
class Pooled(Verdict):
    """A verdict over several runs. Figures, ranges and stand-ins are the newest run's; `newest` is its own verdict."""

    newest: Verdict = None
    runs: int = 1


def read():
    file = verdict.RECORDED / FILE
    if not file.exists():
        return []
    with open(file, encoding="utf-8", newline="") as rows:
        return [Run(**{**row, "held": int(row["held"]), "repeats": int(row["repeats"])}) for row in csv.DictReader(rows)]


def earlier(size, identifier):
    return [run for run in read() if (run.size, run.id) == (size, identifier)]


def of(one, runs):
    """The verdict `one` together with earlier runs; itself where there are none."""
    if not runs or not one.repeats:
        return one
    each = [(run.held, run.repeats) for run in runs] + [(one.held, one.repeats)]
    held, repeats = (sum(numbers) for numbers in zip(*each))
    word = together(one, held, repeats)
    return Pooled(**{**vars(one), "verdict": word, "held": held, "repeats": repeats, "reason": reason(one, word, each, held, repeats)},
                  newest=one, runs=len(each))


def together(one, held, repeats):
    """The word over all recordings. Medians of earlier runs are not kept: that of the newest one says whether the median holds, unless most
    of all recordings say otherwise."""
    if one.verdict not in (HOLDS, FLIPS, FAILS):
        return one.verdict
    if one.verdict == FAILS:
        return FLIPS if held > repeats / 2 else FAILS
    return HOLDS if often(held, repeats) and not one.part else FLIPS


def reason(one, word, each, held, repeats):
    said = (f"Held in {held} of {repeats} recordings of {NUMBERS[len(each) - 2]} runs between which nothing changed that it depends on "
            f"({', '.join(f'{h} of {r}' for h, r in each)}). Figures, range and stand-ins are the newest run's.")
    why = one.reason or ("" if word == HOLDS else "Not known.")
    return f"{said} {why}".strip()


def recorded(size, identifier):
    """The recorded verdict over all its runs, or None."""
    file = verdict.RECORDED / size / f"{identifier}.json"
    return of(verdict.read(file), earlier(size, identifier)) if file.exists() else None


def with_recorded(one, size):
    """A verdict of a run that is not recorded yet. The recorded one of a listed row is then an earlier run."""
    return of(one, [*earlier(size, one.id), *taken(one, size)])


def taken(one, size):
    """Of a listed row the recorded run, whose place `one` takes, unless it is of the same recordings, judged again: figures are equal
    then."""
    file = verdict.RECORDED / size / f"{one.id}.json"
    if not earlier(size, one.id) or not file.exists():
        return []
    before = verdict.read(file)
    same = before.each == one.each if before.each and one.each else before.figures == one.figures
    if same or not before.repeats:
        return []
    return [Run(one.id, size, before.held, before.repeats, before.commit, ADDED)]


def keep(runs):
    """Appends runs to those that are listed."""
    rows = [[getattr(run, head) for head in HEADS] for run in [*read(), *runs]]
    if runs:
        with open(verdict.RECORDED / FILE, "w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([HEADS, *rows])
