"""docs/findings.md, made from the recorded verdicts: a row for each finding."""

import json

from tables import markdown as table

from judge import inputs, pooled, verdict
from judge.criteria import CRITERIA
from judge.verdict import FAILS, FLIPS, HOLDS, OTHER, UNABLE, UNTESTED, told

PAGE = verdict.ROOT / "docs/findings.md"
WORDS = (HOLDS, FLIPS, FAILS, UNABLE, UNTESTED)

HEAD = """# Findings

What the five papers found, judged on our programs by criteria that were written down before anything was measured
(`bench/judge/criteria.csv`). `make reproduce` runs all of it, records the verdicts in `bench/verdicts` and writes this page from
them: figures, verdicts and what tests of reasons came to are not typed. It exits with status 1 when a verdict differs from the
recorded one and the CHANGELOG does not say so.

How a row is judged:

- **Figures** are medians over the repeats (recordings), with least and most in brackets.
- ***holds***: the criterion holds for the median and for four of five repeats. ***undecided***: The median meets it, but fewer than four
  of five recordings do. Or a part cannot be judged (said in the row). ***does not hold***: not for the median. ***cannot fail***: it
  holds, but a policy that does nothing, or the rival in the policy's place, passes as well, so the row counts for nothing. The rival
  is what the row compares with; that other policies of the paper pass too is [listed](#what-stood-in-for-the-policies), and turns no
  verdict. ***untested***: not possible on the machines that we have, or not yet done; the row says which.
- Of a row that is judged in part, ranges and tests are of what can be judged.
- **Several runs**: a row that was recorded again with nothing changed that it depends on is judged over the recordings of all these
  runs (`bench/verdicts/pooled.csv`), and says so.
- **Nightly** is the verdict of a smaller run, whose verdict files are in `bench/verdicts/fast`. Of Diener et al.'s programs `is` and
  `kmedian` then fit into the model's caches ([sizes](reproduce-diener.md)).
- **Range**: what a paper leaves open (and what our model assumes) is run over its plausible range. The column has the share of
  the values for which the finding holds, as a verdict does: for the median and for four of five repeats. Where nothing is left open,
  or what is open was not run, [the last table](#what-the-papers-leave-open) says why.
- **Reasons** are of rows that do not hold. "Tested" is a run that takes away what it names; it says what became of the row's figures.
  A reason is known where the row holds then, in five recordings. A value of the row's own ranges makes none known: it is plausible as
  it is, and the range says what it turns. Else it is "not known", and what follows is what was looked at.
- **[Inputs](#inputs)** that were read from a paper and read back stand apart. They are no findings and count for nothing.
- Times are predictions of [the model](model.md), shares of accesses are exact counts of recordings or of [the laboratory](lab.md);
  each row says which.

"""


def read(size):
    """The recorded verdicts by identifier, in the criteria's order; of a row with several runs over all of them."""
    found = {i: pooled.recorded(size, i) for i in CRITERIA}
    return {i: one for i, one in found.items() if one}


def counts(verdicts):
    return {word: sum(v.verdict == word for v in verdicts.values()) for word in WORDS}


def shared(size, verdicts):
    """Those of the rows that hold which do so with another of the paper's policies in the policy's place, too."""
    rows = [i for i, one in verdicts.items() if one.verdict == HOLDS and any(s.passes for s in one.stand_ins if s.kind == OTHER)]
    if not rows:
        return ""
    which = f"{len(rows)} ({', '.join(rows)})" if len(rows) > 1 else f"one ({rows[0]})"
    return (f"\nOf the rows that hold ({size}), {which} would with another of the paper's policies in the judged one's place, too: what "
            "they say is not of that policy alone.\n")


def summary_line(size):
    found = counts(read(size))
    return f"{size}: " + ", ".join(f"{n} {word}" for word, n in found.items() if n)


def ranges(one):
    if not one.ranges:
        return "nothing is left open" if one.closed else "not run" if one.not_run else "–"
    # Each range has the row's own setting among its values: it counts once, and not for each quantity.
    held = [h for r in one.ranges for h in r.held.values()]
    again = len(one.ranges) - 1
    share = (sum(held) - again * stands(one)) / (len(held) - again)
    return f"{100 * share:.0f} % ({', '.join(f'{r.name} {sum(r.held.values())}/{len(r.held)}' for r in one.ranges)})"


def stands(one):
    """Whether the criterion holds at the row's own setting, of what can be judged, in the run that the ranges are of."""
    one = one.newest if isinstance(one, pooled.Pooled) else one
    return one.verdict in (HOLDS, UNABLE) or (one.verdict == FLIPS and bool(one.part))


def in_words(one):
    return f"**{one.verdict}**" + (f", {one.held} of {one.repeats}" if one.repeats else "") + (", judged in part" if one.part else "")


def row(identifier, one, nightly):
    criterion = CRITERIA[identifier]
    head = [f'<a id="{identifier}"></a>{identifier}', criterion.claim, criterion.holds]
    if one is None:
        return [*head, "", "", f"**{UNTESTED}**", ""]
    return [*head, told(one), ranges(one), in_words(one), nightly and (nightly.verdict if nightly.verdict != one.verdict else "same")]


def notes(verdicts):
    """Reasons and differences of one paper's rows; what several rows differ by is said once."""
    by_text = {}
    for identifier, one in verdicts.items():
        if one.differs:
            by_text.setdefault(one.differs, []).append(identifier)
    shared = {text: rows for text, rows in by_text.items() if len(rows) > 1}
    lines = [f"- **{', '.join(rows)}** differ from the paper: {text}" for text, rows in shared.items()]
    for identifier, one in verdicts.items():
        own = one.differs and one.differs not in shared and f"Differs from the paper: {one.differs}"
        said = [text for text in (one.part and f"Judged in part: {one.part}", one.reason, own) if text]
        if said:
            lines.append(f"- **{identifier}** ({one.basis}): {' '.join(said)}")
    return "\n".join(lines) + "\n" if lines else ""


def stand_ins(verdicts):
    rows = []
    for i, one in verdicts.items():
        rows += [[i, s.kind or "–", s.name, outcome(s, one)] for s in one.stand_ins]
        rows += [[i, kind, "none", why] for kind, why in one.lacks.items()]
        rows += [[i, "–", "–", one.remark]] if one.remark else []
    return table(["row", "kind", "in the policy's place", "the criterion"], rows) if rows else ""


def outcome(stand_in, one):
    """What it means that a stand-in passes, or does not."""
    if stand_in.kind == OTHER:
        return "passes too: the row is not of this policy alone" if stand_in.passes else "fails"
    if not stand_in.passes:
        return "fails, as it must" if one.verdict in (HOLDS, UNABLE, FLIPS) else "fails, as the row does"
    return "passes: the row cannot fail" if one.verdict == UNABLE else "passes: the row could not fail, if it held"


def ranges_table(verdicts):
    """A quantity that several rows have stands once, with where each of them holds; values that differ by row stand with the rows."""
    found = {}
    for i, one in verdicts.items():
        for r in one.ranges:
            by_values = found.setdefault((r.name, r.source, r.repeats or "–"), {})
            by_values.setdefault(", ".join(r.held), []).append((i, r.held))
        for open_, why in (("nothing", "" if one.ranges else one.closed), ("not run", one.not_run)):
            if why:
                found.setdefault((open_, why, "–"), {}).setdefault("–", []).append((i, None))
    rows = []
    for (name, source, count), by_values in found.items():
        alike = len(by_values) == 1
        at = "; ".join(where(each) if alike else f"[{values}] {where(each)}" for values, each in by_values.items())
        rows.append([name, source, next(iter(by_values)) if alike else "by row, in brackets", at, count])
    return table(["quantity", "range from", "values", "rows, and where they hold", "recordings"], rows) if rows else ""


def where(each):
    """`each`: (row, by value whether it holds); rows that hold at the same values are named together."""
    by_values = {}
    for identifier, held in each:
        at = "" if held is None else ": " + (", ".join(v for v, so in held.items() if so) if any(held.values()) else "nowhere")
        by_values.setdefault(": everywhere" if held and all(held.values()) else at, []).append(identifier)
    return "; ".join(f"{', '.join(rows)}{at}" for at, rows in by_values.items())


STAND_INS = """
## What stood in for the policies

Each stand-in is data of the row's own kind in the judged thing's place. Most are runs of another policy. Some are constructed from the
row's figures, as no run can have the property: times that go by hops alone (S1, S2, S3: 5 % a hop), equal links (S4: every placement
takes the mean; S13: each machine's figure is that of D, whose links are the most equal), memory moved without a budget (S10: all of
the time). A constructed one says that the criterion can tell such data apart, and no more.

"""
INPUTS = """
## Inputs

Read from a paper to build a machine file or to run a program, and read back, true by definition, or checks of our own. They say
that what the findings start from is what it should be; they are judged by nothing above and count for nothing.

"""


def inputs_table():
    rows = [[paper, *row] for paper, found in inputs.read().items() for row in found]
    return INPUTS + table(["paper", "what", "found", "as it should be"], rows) if rows else ""


OUTSIDE = """
## The time model, from outside

Measurements that others published of public programs on described machines, {points} of them, predicted by `simulate` and compared
([bench/outside](../bench/outside/README.md) has sources, rules and how each is predicted; `make reproduce-outside`). Most of the programs
are predicted by kernels of ours that do what they do (a scan, a matrix and a vector, streams), smaller than the originals. The model
was not tuned on the points; how they are predicted was changed twice after a first look, [as is said there](../bench/outside/README.md).

{table}
{inside} of {points} measured values lie in the predicted range; the faster placement is named in {named} of {clear} where both differ.
Each program was recorded once, and computes as fast as on the host that recorded it: on another host other points lie in their range
(CHANGELOG says by how many it changed). Calibrated on one point means: on each project's first, which then does not count.
"""
TRIALS = """
Why errors are what they are is not known but for what a run without it shows. Tried, each on the points that it is said of:

"""
OUTSIDE_ROWS = {"error": "all points", "error_without_first": "without each project's first", "by_power": "calibrated on it by a power",
                "by_position": "calibrated on it by a place in the range"}


def outside():
    """How far predictions are from what others measured."""
    file = verdict.RECORDED / "outside.json"
    if not file.exists():
        return ""
    found = json.loads(file.read_text(encoding="utf-8"))
    each = [(name, found[key]) for key, name in OUTSIDE_ROWS.items()] + list(found["projects"].items())
    rows = [[name, one["points"], f"{one['median']:.0f} %", f"{one['p90']:.0f} %"] for name, one in each]
    named, clear = found["direction"]
    trials = [[one["what"], one["before"]["points"], f"{one['before']['median']:.0f} %", f"{one['after']['median']:.0f} %"]
              for one in found.get("trials", ())]
    return OUTSIDE.format(points=len(found["points"]), table=table(["", "points", "median error", "90th percentile"], rows),
                          inside=found["inside_range"], named=named, clear=clear) + (
        TRIALS + table(["with", "points", "median error as it is", "then"], trials) if trials else "")


def text():
    full, fast = read("full"), read("fast")
    best = {i: full.get(i) or fast.get(i) for i in CRITERIA}
    there = {i: one for i, one in best.items() if one}
    sizes = [[size, *counts(found).values()] for size, found in (("full", full), ("fast", fast)) if found]
    parts = [HEAD, table(["size", *WORDS], sizes), shared("full", full), shared("nightly", fast)]
    papers = dict.fromkeys(c.paper for c in CRITERIA.values())
    for paper in papers:
        mine = [i for i, c in CRITERIA.items() if c.paper == paper]
        ours = {i: there[i] for i in mine if i in there}
        heads = ["", "the paper's finding", "holds if", "here", "range", "verdict", "nightly"]
        parts.append(f"\n## {paper}\n\n" + table(heads, [row(i, best[i], fast.get(i)) for i in mine]))
        if said := notes(ours):
            parts.append("\n" + said)
    parts.append(inputs_table())
    parts.append(outside())
    parts.append(STAND_INS + stand_ins(there))
    parts.append("\n## What the papers leave open\n\n" + ranges_table(there))
    return "".join(parts)


def write():
    PAGE.write_text(text(), encoding="utf-8")
