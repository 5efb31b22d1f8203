"""Figures 6 and 7: several programs at once, on all ways to give them nodes."""

from statistics import median

import plots
from checks import Check, percent, table
from programs import WORKLOADS
from recordings import DYNAMIC, FOLDER, at_once
from single import CLOSE, CLOSER, faster, numbers

TEXT = """## Figures 6 and 7: several programs at once

Two or three programs on 3 + 3 + 2 or 5 + 3 nodes: all 560 or 56 ways to give them sets of nodes, virtual nodes in the order of the
nodes. They begin at the same time and meet on links and controllers, phase by phase; who ends first begins again, so that
everybody is met for as long as it runs ([how](model.md#several-programs-at-once)). The paper has streamcluster, SPECjbb, Graph500 and
matrixmultiply; ours are cg and mg (bound by links), bfs (little) and water (not at all). A bar is a program's own best, its own
worst, and so on, against its mean over static placements.

![Performance of several programs at once](images/asymsched-figure6.svg)

![Latency of several programs at once](images/asymsched-figure7.svg)

{rows}
*Dynamic* is the mean over placements where only pages move. *AsymSched* has the sets of the highest weighted bandwidth, each program
a cluster whose weight is the logarithm of its remote accesses a second, and pages move likewise. *Together* is where the programs'
geometric mean is best, static: what one would choose who knew all times.

{why}
"""

WHY = """**What differs, and why.** Programs on sets of nodes of their own meet on the ways that lead through other sets' nodes only, so
what one gets depends on its own nodes more than on who is beside it: {company}. Logarithms of
millions are alike, so the weighted bandwidth nearly adds up all clusters' bandwidth, also that of a program which needs little.
bfs and water hardly use links and cannot win, as matrixmultiply cannot in the paper."""


def study(workload):
    found = at_once(workload)
    policies = {p["policy"]: p for p in found["policies"]}
    static, dynamic = policies["first-touch"], policies[DYNAMIC]

    def program(at, name):
        own, moved = static["programs"][at], dynamic["programs"][at]
        mean, latency = own["mean_seconds"], own["mean_latency_ns"]

        def gain(seconds, latency_ns):
            return faster(mean, seconds), latency - latency_ns

        def of(entry):
            return gain(entry["seconds"], entry["latency_ns"])
        return {
            "name": name, "seconds": mean, "best": of(own["best"]), "worst": of(own["worst"]),
            "dynamic": gain(moved["mean_seconds"], moved["mean_latency_ns"]),
            "dynamic_best": of(moved["best"]), "dynamic_worst": of(moved["worst"]),
            "asym": gain(dynamic["by_bandwidth"]["seconds"][at], dynamic["by_bandwidth"]["latency_ns"][at]),
            "together": gain(static["best"]["seconds"][at], static["best"]["latency_ns"][at]),
            "nodes": dynamic["by_bandwidth"]["nodes"][at],
        }
    return {"predicted": found["predicted"], "programs": [program(i, f"{n}({k})") for i, (n, k) in enumerate(workload.items())]}


def letter(i):
    return chr(ord("a") + i)


SERIES = {"best static": "best", "worst static": "worst", "dynamic migration": "dynamic", "AsymSched": "asym"}


def draw(studied):
    bars = [p for s in studied for p in s["programs"]]
    labels = [f"{p['name']} {letter(i)}" for i, s in enumerate(studied) for p in s["programs"]]

    def ends(key, p, which, scale):
        low, high = ("dynamic_worst", "dynamic_best") if key == "dynamic" else (key, key)
        return sorted((scale * p[low][which], scale * p[high][which]))
    for number, which, scale, ylabel in [(6, 0, 100, "performance against the mean (%)"), (7, 1, 1, "latency below the mean's (ns)")]:
        series = {label: [scale * p[key][which] for p in bars] for label, key in SERIES.items()}
        errors = {label: [ends(key, p, which, scale) for p in bars] for label, key in SERIES.items()}
        plots.grouped(FOLDER / "images" / f"asymsched-figure{number}.svg", labels, series, ylabel, errors=errors, with_average=False)


def checks(studied):
    bars = [p for s in studied for p in s["programs"]]
    sizes = [s["predicted"] for s in studied]
    near = [p for p in bars if p["asym"][0] >= p["best"][0] - CLOSE]
    far = [p["name"] for p in bars if p not in near]
    nearer = [p for p in near if p["asym"][0] >= p["best"][0] - CLOSER]
    affected = [p for p in bars if p["best"][0] - p["worst"][0] > 0.2]
    kept = median((p["dynamic_best"][0] - p["dynamic_worst"][0]) / (p["best"][0] - p["worst"][0]) for p in affected)
    above = [p for p in bars if p["asym"][0] >= p["dynamic"][0] - 0.01]
    lower = [p for p in affected if p["asym"][1] > 0]
    little = [p["name"] for p in bars if p["best"][0] < 0.1]
    return [
        Check("Figure 6: 560 placements of 3 + 3 + 2, 56 of 5 + 3", "560 placements", ", ".join(map(str, sorted(set(sizes)))),
              set(sizes) == {560, 56}),
        Check("Figure 6: programs benefit to various degrees", "streamcluster a lot, matrixmultiply not",
              f"best over mean {percent(min(p['best'][0] for p in bars))} to {percent(max(p['best'][0] for p in bars))}",
              bool(little) and max(p["best"][0] for p in bars) > 0.2),
        Check("Figure 6: AsymSched is close to each program's own best static placement (10 points) or better", "in all workloads",
              f"{len(near)} of {len(bars)}, {len(nearer)} within 5 points", not far, f"not {', '.join(far)}" if far else ""),
        Check("Figure 6: AsymSched is no worse than dynamic migration alone", "dynamic alone is unable to improve Graph500, SPECjbb",
              f"{len(above)} of {len(bars)}", len(above) == len(bars)),
        Check("Figure 6: dynamic migration alone leaves the spread", "high standard deviation",
              f"{percent(kept)[1:]} of the static spread, median of those affected", kept > 0.4),
        Check("Figure 7: AsymSched lowers the latency of those that are affected", "streamcluster in particular",
              f"{len(lower)} of {len(affected)}", len(lower) == len(affected)),
    ]


def company(studied):
    """How much the mean of a program on as many nodes depends on its company."""
    by_name = {}
    for s in studied:
        for p in s["programs"]:
            by_name.setdefault(p["name"], []).append(p["seconds"])
    return ", ".join(f"{name} takes {min(t):.2f} to {max(t):.2f} s" for name, t in by_name.items() if len(t) > 2) + " in different company"


def part():
    studied = [study(workload) for workload in WORKLOADS]
    draw(studied)
    rows = []
    for i, s in enumerate(studied):
        for p in s["programs"]:
            shares = [percent(p[k][0]) for k in ("best", "worst", "together", "dynamic")]
            rows.append((letter(i), p["name"], f"{p['seconds']:.2f}", *shares,
                         f"{percent(p['dynamic_worst'][0])} … {percent(p['dynamic_best'][0])}", percent(p["asym"][0]), numbers(p["nodes"])))
    heads = ["", "program (nodes)", "seconds", "best", "worst", "together", "dynamic", "least … most", "AsymSched", "on"]
    return TEXT.format(rows=table(heads, rows, left=2), why=WHY.format(company=company(studied))), checks(studied)
