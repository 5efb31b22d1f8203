"""Table 1: streamcluster with 16 threads on two nodes. Row 0-1 is given, fifteen times and latencies are predicted."""

import csv
from statistics import linear_regression, mean, median

from checks import Check, percent, table
from nodewise import ROOT, hops, path, route, simulated

LINE, GIGAHERTZ, CORES = 64, 2.1, 8

TEXT = """## Table 1: two nodes, predicted from the first row

streamcluster runs with 16 threads on two nodes; the master's has its data. Of row 0-1 we take the time (148 s), the
latency (750 cycles) and the bandwidth (5,598 MB/s). The other fifteen times and latencies are predicted from the bandwidth
*b* that `nodewise topo` gives the pair. Nothing is fitted.

**The model.** Threads do equal parts, so half the accesses are local and half come over the link. Links are full. A thread
keeps as many requests in flight as in row 0-1, and by Little's law

    latency over the link = requests in flight × 64 B / b = 750 × 5,598 / b

while local accesses keep their 750 cycles: in row 0-1 local and remote are taken to wait alike, since the paper gives one
figure for both. The mean is of both halves. Time goes with it, as the paper finds (section 2: "tightly correlated"):

    latency = 750 (1 + 5,598/b) / 2        time = 148 (1 + 5,598/b) / 2

A second hop's 80 cycles (section 2) are not added: over a full link they are part of what requests wait anyway, and the rows
agree. Requests in flight come to {in_flight:.1f} lines a core at 2.1 GHz, within what the [simulator](model.md) assumes (2 to 12).

**How far it can be off.** If at every moment all wait for who is slowest, time is 148 × 5,598/b: *slowest*, the other end of
the same model. *Simulator* is what [`nodewise simulate`](model.md)'s model says of threads that stream from one memory
(`crates/simulation/benches/two_nodes.rs`), with the machine file's assumed 10 GB/s a controller, scaled to 148 s.

{rows}
Median error: time {time:.1f} %, latency {latency:.1f} %; *slowest* {slowest:.1f} %, *simulator* {simulator:.1f} %.
The measured time lies between model and *slowest*, give or take 1 %, in {between} of 15 rows: streamcluster waits for its slowest
threads part of the time, and the more the narrower the link. A fit to all sixteen rows (least squares), time =
{offset:.1f} + {slope:.1f} / b
(*b* in GB/s), has a mean error of {fit:.1f} %; it is a fit. Row 13 has the bandwidth of rows 6 and 9, and the time and latency of row 4,
whose bandwidth is higher:
it looks misprinted. Which end of the model is nearer was known when this was written; neither has a number to turn.
Time over latency is {least:.3f} to {most:.3f} s a
cycle ({first:.3f} in the first row).

"""


def rows():
    """By row: master, other, measured and predicted."""
    with open(ROOT / "crates/machine/tests/data/asymsched-table1.csv", encoding="utf-8") as file:
        for number, row in enumerate(csv.DictReader(file), 1):
            master, other = int(row["inferred_master"]), int(row["inferred_other"])
            yield {"row": number, "master": master, "other": other, "path": path(master, other), "hops": hops(master, other),
                   "time": float(row["time_s"]), "latency": float(row["latency_cycles"]), "two_hops": float(row["pct_2hop"]),
                   "measured": float(row["bw_to_master_MBps"]), "model": route(master, other)["bandwidth_MBps"]}


def predict(all_rows, simulation):
    first = all_rows[0]
    for row in all_rows:
        ratio = first["measured"] / row["model"]
        row["latency_model"] = first["latency"] * (1 + ratio) / 2
        row["time_model"] = first["time"] * (1 + ratio) / 2
        row["slowest"] = first["time"] * ratio
        seconds = simulation[row["master"], row["other"]] / simulation[first["master"], first["other"]]
        row["simulator"] = first["time"] * seconds


def errors(predicted, model, measured):
    return [r[model] / r[measured] - 1 for r in predicted]


def in_middle(found):
    return 100 * median(map(abs, found))


def fitted(all_rows):
    """Least squares of time over 1 / GB/s: offset, slope, and the mean error in percent."""
    inverse, times = [1000 / r["measured"] for r in all_rows], [r["time"] for r in all_rows]
    slope, offset = linear_regression(inverse, times)
    return offset, slope, 100 * mean(abs((offset + slope * x) / t - 1) for x, t in zip(inverse, times))


def ordered_alike(predicted):
    """Pairs of rows whose times differ by more than 2 %, and those of them that the model puts in that order."""
    pairs = [(a, b) for i, a in enumerate(predicted) for b in predicted[:i] if abs(a["time"] / b["time"] - 1) > 0.02]
    return len(pairs), sum((a["time"] - b["time"]) * (a["time_model"] - b["time_model"]) > 0 for a, b in pairs)


def as_fast(all_rows, time):
    """The ways of two hops that are no slower than the slowest of one."""
    slowest = max(r[time] for r in all_rows if r["hops"] == 1)
    return [r["path"] for r in all_rows if r["hops"] == 2 and r[time] <= slowest]


def shown(row):
    def figure(model, measured):
        return f"{row[model]:.0f} ({percent(row[model] / row[measured] - 1)})"
    return [row["row"], row["path"], f"{row['measured']:.0f}", f"{row['model']:.0f}", f"{row['time']:.0f}",
            figure("time_model", "time"), figure("slowest", "time"), figure("simulator", "time"),
            f"{row['latency']:.0f}", figure("latency_model", "latency"), f"{row['two_hops']:.0f} %"]


def checks(all_rows):
    rest = all_rows[1:]
    times, latencies = errors(rest, "time_model", "time"), errors(rest, "latency_model", "latency")
    widths = errors(all_rows, "model", "measured")
    count, alike = ordered_alike(all_rows)
    far = [r for r in all_rows if r["hops"] == 2]
    bold, model = as_fast(all_rows, "time"), as_fast(all_rows, "time_model")
    best, worst = (f(r["time_model"] for r in all_rows) for f in (min, max))
    return [
        Check("The model has Table 1's bandwidths", "16 rows", f"off by {100 * max(map(abs, widths)):.1f} % at most",
              max(map(abs, widths)) < 0.011),
        Check("Times from row 0-1 alone: median error at most 10 %", "15 rows", f"{in_middle(times):.1f} %", in_middle(times) <= 10),
        Check("Latencies from row 0-1 alone: median error at most 10 %", "15 rows", f"{in_middle(latencies):.1f} %",
              in_middle(latencies) <= 10),
        Check("The worst pair takes so much longer than the best", "133 %", percent(worst / best - 1), abs(worst / best - 2.33) < 0.1,
              "Half the accesses are local in the model and do not get slower; waiting for the slowest thread alone would give "
              f"{percent(max(r['slowest'] for r in all_rows) / 148 - 1)}. Streamcluster is between.", expected=False),
        Check("Two-hop configurations as fast as some one-hop ones", ", ".join(bold), ", ".join(model), model == bold),
        Check("Rows are in the paper's order", f"{count} pairs of rows more than 2 % apart", f"{alike} of {count}", alike >= 0.9 * count),
        Check("Accesses cross two links where the paper says so", "98 % in 8 rows, 0 in 8", f"all of them in {len(far)} rows",
              all((r["two_hops"] > 50) == (r["hops"] == 2) for r in all_rows),
              "Of accesses over links; half of all are local. What the other 2 % are, the paper does not say."),
    ]


def part():
    all_rows = list(rows())
    predict(all_rows, simulated())
    rest = all_rows[1:]
    between = sum(r["time_model"] * 0.99 <= r["time"] <= r["slowest"] * 1.01 for r in rest)
    heads = ["row", "data", "MB/s", "model", "time, s", "predicted", "slowest", "simulator", "cycles", "predicted", "2 hops"]
    first = all_rows[0]
    offset, slope, fit = fitted(all_rows)
    cycle = [r["time"] / r["latency"] for r in all_rows]
    text = TEXT.format(offset=offset, slope=slope, fit=fit, least=min(cycle), most=max(cycle), first=cycle[0],
                       rows=table(heads, [shown(r) for r in all_rows], left=2), between=between,
                       in_flight=first["measured"] / 1000 * first["latency"] / GIGAHERTZ / LINE / CORES,
                       time=in_middle(errors(rest, "time_model", "time")), latency=in_middle(errors(rest, "latency_model", "latency")),
                       slowest=in_middle(errors(rest, "slowest", "time")), simulator=in_middle(errors(rest, "simulator", "time")))
    return text, checks(all_rows)
