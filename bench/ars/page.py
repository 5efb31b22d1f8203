"""Figures, tables and the page of this reproduction."""

from statistics import median

import plots
from choices import CHOSEN, MACHINE, RATIOS
from findings import CHECKS, at, speedup
from judge import CRITERIA
from judge.page import ranges as shares
from judge.verdict import told as shown
from programs import ALGORITHMS, COUNTS, OTHERS, PROGRAMS, START, STATIC, table1
from recordings import FOLDER

from web import document, figure, table, write_csv

BARS = {"round-robin": START, **ALGORITHMS, "static optimum": STATIC}
HEADS = ["migrations", "ping-pongs", "multiple", "incorrect"]


def middle(study, of):
    """Median over the recordings."""
    return median(of(data) for data in study.repeats())


def gain(study, program, policy, ratio):
    return middle(study, lambda data: speedup(data, program, policy, ratio))


def draw(study):
    for ratio in RATIOS:
        for name, bars in (("figure2", BARS), ("others", {"round-robin": START, **OTHERS, "static optimum": STATIC})):
            plots.grouped(FOLDER / f"{name}-{ratio}.svg", PROGRAMS,
                          {label: [1 / gain(study, p, policy, ratio) for p in PROGRAMS] for label, policy in bars.items()},
                          "time over unoptimised", with_average=False)
    first = study.repeats()[0]
    for program in PROGRAMS:
        plots.curves(FOLDER / f"sweep-{program}.svg", list(RATIOS),
                     {name: [gain(study, program, policy, r) for r in RATIOS] for name, policy in BARS.items()},
                     "remote over local latency", "speed-up")
        plots.curves(FOLDER / f"local-{program}.svg", None,
                     {name: [100 * share for share in at(first, program, policy)["locals"]] for name, policy in BARS.items()},
                     "share of the run", "local accesses (%)")


def tabled(name, heads, rows):
    """The table, and the same as a CSV file beside the page."""
    write_csv(FOLDER / f"{name}.csv", heads, rows)
    return table(heads, rows) + f'<p><a href="{name}.csv">{name}.csv</a></p>'


def times_rows(study, policies):
    def local(data, program, policy):
        return at(data, program, policy)["local"]
    return [[f"{p}, {name}", *(f"{gain(study, p, policy, r):.2f}" for r in RATIOS),
             f"{100 * middle(study, lambda data, p=p, policy=policy: local(data, p, policy)):.0f} %"]
            for p in PROGRAMS for name, policy in policies.items()]


def counts_rows(study):
    paper = table1()
    def ours(program, policy):
        return [f"{middle(study, lambda data, key=key: at(data, program, policy)[key]):g}" for key in COUNTS]
    return [[f"{p}, {name}", *ours(p, policy), "", *paper.get((p, name), 4 * ["–"])]
            for p in PROGRAMS for name, policy in {**ALGORITHMS, **OTHERS}.items()]


def verdict_rows(verdicts):
    return [[v.id, CRITERIA[v.id].claim, CRITERIA[v.id].holds, v.verdict, f"{v.held} of {v.repeats}", shown(v), shares(v), v.reason]
            for v in verdicts]


def open_rows(verdicts):
    """Which rows hold at which value of what the paper leaves open."""
    rows = []
    for name in dict.fromkeys(r.name for v in verdicts for r in v.ranges):
        held = {v.id: r.held for v in verdicts for r in v.ranges if r.name == name}
        source = next(r.source for v in verdicts for r in v.ranges if r.name == name)
        for i, value in enumerate(next(iter(held.values()))):
            marks = ["" if v not in held else "yes" if held[v][value] else "no" for v in CHECKS]
            rows.append([name if i == 0 else "", value, *marks, source if i == 0 else ""])
    return rows


def programs_rows(sizes):
    return [[name, row.says, *map(str, sizes[name][:2]), *(f"{100 * share:.0f} %" for share in sizes[name][2]), row.differs]
            for name, row in PROGRAMS.items()]


INPUTS = [["nodes, and how pages are dealt at the start (4)", "four, round-robin"],
          ["sizes (4)", "FFT 2¹⁴ points, LU 128 × 128, RADIX 262,144 keys, WATER 343 molecules, SOR 200 × 200"],
          ["threshold (4)", "two"], ["counts of Table 1", "printed beside ours"]]


def write(study, verdicts, sizes, fast):
    note = "<p><strong>The nightly size</strong>: its ranges are of one recording.</p>" if fast else ""
    parts = [note,
             "<p>Figure 2 and Table 1 of Tao, Schulz, Karl: “Improving Data Locality Using Dynamic Page Migration Based on "
             "Memory Access Histograms” (ICCS 2002), with our programs in the paper's sizes: every access recorded in an "
             f"emulator with 4 threads, then <strong>simulated</strong> on <code>{MACHINE}</code>, pages dealt round-robin at the "
             "start. Times are predictions of the model (<code>docs/model.md</code>), counts are exact; medians of five recordings. "
             f"Remote memory is {CHOSEN.ratio} times as slow as local memory unless another ratio is named.</p>",
             tabled("programs", ["program", "size", "shared pages", "accesses to them", "local at best, pages staying",
                                 "moving each interval", "differs"], programs_rows(sizes)),
             "<p>Inputs: read from the paper and given to the simulator, so they count for nothing.</p>", table(["", ""], INPUTS),
             "<h2>The paper's findings</h2>",
             tabled("verdicts", ["", "finding", "holds if", "verdict", "repeats", "figures", "range", "reason"], verdict_rows(verdicts)),
             "<h2>What the paper leaves open</h2><p>Each quantity varied alone; the first value is the default. "
             "<code>bench/ars/choices.py</code> says why it is.</p>",
             tabled("open", ["quantity", "value", *CHECKS, "range from"], open_rows(verdicts)),
             "<h2>Figure 2: time</h2>",
             *(figure(f"figure2-{r}", f"Predicted time over that of the run that is not optimised, remote memory {r} times as slow.")
               for r in RATIOS),
             "<p>Speed-up over round-robin by latency ratio, and local accesses:</p>",
             tabled("speedups", ["program", *map(str, RATIOS), "local"], times_rows(study, {**ALGORITHMS, "static optimum": STATIC})),
             *(figure(f"sweep-{p}", f"{p}: predicted speed-up by latency ratio.") for p in PROGRAMS),
             "<h2>Table 1: migrations</h2><p>Ours on the left, the paper's on the right.</p>",
             tabled("table1", ["program and policy", *HEADS, "", *(f"paper: {h}" for h in HEADS)], counts_rows(study)),
             "<h2>Where accesses go, interval by interval</h2>",
             *(figure(f"local-{p}", f"{p}: share of accesses that are local in the course of the run.") for p in PROGRAMS),
             "<h2>Policies that are not in the paper</h2>",
             figure(f"others-{CHOSEN.ratio}", f"Time over unoptimised, {CHOSEN.ratio} times."),
             tabled("others", ["program", *map(str, RATIOS), "local"], times_rows(study, OTHERS))]
    return document("Page migration by access histograms, on our programs", parts)
