"""The page of this reproduction: verdicts, figures, tables, and inputs apart."""

from statistics import fmean, pstdev

import plots
import single
import table1
from programs import PROGRAMS
from recordings import FOLDER
from topology import path, route

from web import document, escape, figure, table, verdicts

SERIES = {"best static": "best", "worst static": "worst", "pages alone": "pages", "threads and pages": "threads"}


def table_1(data):
    """Row by row, of the first recording."""
    ours = table1.predicted(data)

    def shown(master, other):
        (seconds, cycles), (our_seconds, our_cycles) = table1.MEASURED[master, other], ours[master, other]
        return [f"{master}-{other}", path(master, other), f"{route(master, other)['bandwidth_MBps']:.0f}",
                *(f"{x:.0f}" for x in (seconds, our_seconds, cycles, our_cycles))]
    heads = ["master-other", "data", "MB/s", "time, s", "predicted", "cycles", "predicted"]
    return table(heads, [shown(*pair) for pair in table1.MEASURED])


def row(name, one):
    def spread(kind):
        return f"{100 * pstdev(one[kind]) / fmean(one[kind]):.1f}"

    def ends(kind):
        return fmean(one[kind]), min(one[kind]), max(one[kind])
    gains = [single.faster(one, s) for s in (single.best(one), single.worst(one), *ends("pages"), *ends("threads"))]
    return [name, f"{one['resident'] / 1e6:.0f}", f"{one['repeated']:.0f}", f"{one['static']['mean_seconds']:.1f}",
            *(f"{g:+.0f}" for g in gains), spread("pages"), spread("threads"), f"{one['threads_moved']:.0f}", f"{one['moved_GB']:.2f}",
            f"{max(one['moving']):.1f}"]


# What the paper has in words alone, and what it is here.
STANDS_FOR = [
    ["initial collocation of a program's threads (4.2)", "eight threads on each of as few nodes as hold them, those that share pages "
     "together, no node with two programs: simulate's --affinity asym"],
    ["the rate from which Carrefour moves pages (reference 12)", "50 lines a microsecond from memory (--dynamic-rate); from none to four "
     "times that in the ranges"],
    ["machine B's bandwidths, machines C and D (3)", "machine A's widths of links on B's wiring (Figure 1), on four linked nodes of six "
     "cores with two slower links (C) and on four nodes of four cores with one pair not linked (D)"],
]
HEADS = ["program", "MB", "body run", "s", "best", "worst", "pages", "best", "worst", "threads", "best", "worst", "deviation, pages",
         "threads", "threads moved", "GB moved", "moving, %"]


def draw(number, programs, latency):
    """A figure of best, worst, pages alone, threads and pages: performance in per cent or latency in nanoseconds against the mean."""
    def ends(one, kind):
        static = one["static"]
        if kind in ("best", "worst"):
            values = [static[kind]["latency_ns" if latency else "seconds"]]
        else:
            values = one[f"{kind}_ns" if latency else kind]
        gains = [static["mean_latency_ns"] - v if latency else single.faster(one, v) for v in values]
        return fmean(gains), (min(gains), max(gains))
    bars = {label: [ends(one, kind)[0] for one in programs.values()] for label, kind in SERIES.items()}
    errors = {label: [ends(one, kind)[1] for one in programs.values()] for label, kind in SERIES.items()}
    ylabel = "latency below the mean's (ns)" if latency else "performance against the mean (%)"
    plots.grouped(FOLDER / f"figure{number}.svg", list(programs), bars, ylabel, errors=errors, with_average=False)


def write(size, two, alone, workloads, found, inputs):
    """`two`, `alone`, `workloads`: of the first recording."""
    beside = {f"{name} {chr(97 + i)}": one for i, w in enumerate(workloads.values()) for name, one in w["programs"].items()}
    for number, programs, latency in ((4, alone, False), (5, alone, True), (6, beside, False), (7, beside, True)):
        draw(number, programs, latency)
    letters = ", ".join(f"{chr(97 + i)}: {name}" for i, name in enumerate(workloads))
    parts = [
        "<p>The rows, figures and tables of Lepers, Quéma, Fedorova (USENIX ATC 2015) by <code>nodewise record</code>, "
        f"<code>simulate</code> and <code>simulate --move-threads</code>; size: {size}. Tables and figures show the first "
        "recording, verdicts and ranges all five. Times are predictions of the model (<code>docs/model.md</code>), not measurements.</p>",
        "<h2>The paper's findings</h2>", verdicts(found),
        "<h2>Table 1</h2>", table_1(two),
        "<h2>One program on three nodes</h2>", figure("figure4", "Figures 2 and 4. Performance; lines span 20 runs."),
        figure("figure5", "Figures 3 and 5. Latency of a line."), table(HEADS, [row(*item) for item in alone.items()]),
        "<h2>Several programs</h2>", f"<p>{escape(letters)}</p>", figure("figure6", "Figure 6. Performance."),
        figure("figure7", "Figure 7. Latency."),
        table(HEADS, [row(*item) for item in beside.items()]),
        "<h2>Programs</h2>", table(["program", "like", "initialised by", "size", "iterations"],
                                   [[n, p.like, p.init, p.size, p.iterations[size]] for n, p in PROGRAMS.items()]),
        "<h2>What stands for what</h2>", table(["the paper's", "here"], STANDS_FOR),
        "<h2>Inputs</h2><p>Read from the paper and read back, and our own page's drawings; not judged.</p>",
        table(["", "here", "so"], [[text, there, "yes" if so else "no"] for text, there, so in inputs]),
    ]
    (FOLDER / "index.html").write_text(document("AsymSched, on our workloads", parts), encoding="utf-8")
