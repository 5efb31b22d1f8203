"""Tables 1 and 3: the clustering program with 16 threads on two nodes, judged by what `simulate` predicts.

Of Table 1, row 0-1 is given: predicted times are scaled to its 148 s and latencies to its 750 cycles. Nothing else is fitted."""

import csv
from statistics import correlation, median

from judge import Check, cores
from judge.check import Range
from programs import CLUSTERING, REPEATS, THREADS
from recordings import ROOT
from topology import NODES, hops, route

TABLE = ROOT / "crates/machine/tests/data/asymsched-table1.csv"
MACHINES = {"A": ("machine-a", None), "B": ("machine-b", 12), "C": ("bench/asymsched/machines/machine-c.toml", 12),
            "D": ("bench/asymsched/machines/machine-d.toml", 8)}  # with the CPUs of two nodes
PAPER = {"A": 133, "B": 85, "C": 33, "D": 3}  # best to worst, per cent


def rows():
    """By (master, other): measured seconds and cycles. The other node's column is lost and inferred from the bandwidth."""
    with open(TABLE, encoding="utf-8") as file:
        return {(int(r["inferred_master"]), int(r["inferred_other"])): (float(r["time_s"]), float(r["latency_cycles"]))
                for r in csv.DictReader(file)}


MEASURED = rows()


def pairs(found):
    """By (master, other): seconds and nanoseconds a line, of a `simulate --affinity asym`; the master's node has most of the traffic."""
    policy = found["policies"][0]
    master = max(policy["nodes"], key=lambda n: policy["controllers"][n]["bytes"])
    first = policy["nodes"].index(master) == 0
    return {tuple(one["nodes"] if first else one["nodes"][::-1]): (one["seconds"], one["latency_ns"])
            for one in found["choice"]["policies"][0]["every"]}


def two_nodes(recordings, repeat, *options):
    return pairs(recordings.simulate(CLUSTERING, 2 * THREADS, repeat, *options))


def predicted(data):
    """Seconds and cycles, scaled to row 0-1."""
    (seconds, latency), (given_s, given_cycles) = data[0, 1], MEASURED[0, 1]
    return {pair: (s * given_s / seconds, n * given_cycles / latency) for pair, (s, n) in data.items()}


def errors(data):
    """Per cent, of the other fifteen rows: of times, of latencies."""
    ours = predicted(data)
    rest = [pair for pair in MEASURED if pair != (0, 1)]
    return [[100 * abs(ours[pair][i] / MEASURED[pair][i] - 1) for pair in rest] for i in (0, 1)]


def s1(data):
    times, latencies = errors(data)
    return {"median of times": median(times), "median of latencies": median(latencies),
            "largest of times": max(times), "largest of latencies": max(latencies)}


def s1_holds(f):
    return all(f[f"median of {x}"] <= 10 and f[f"largest of {x}"] <= 25 for x in ("times", "latencies"))


def ranks(values):
    """From 1; equals share their mean rank."""
    order = sorted(values)
    return [order.index(v) + (order.count(v) + 1) / 2 for v in values]


def spearman(a, b):
    return correlation(ranks(a), ranks(b))


def s2(data):
    times = [seconds for seconds, _ in data.values()]
    return {"with bandwidth": spearman(times, [route(*pair)["bandwidth_MBps"] for pair in data]),
            "with hops": spearman(times, [hops(*pair) for pair in data])}


def as_fast(times):
    """Pairs of Table 1 that are two hops apart and no slower than the slowest of one hop."""
    slowest = max(t for pair, t in times.items() if hops(*pair) == 1)
    return {pair for pair, t in times.items() if hops(*pair) == 2 and t <= slowest}


def s3(data):
    ours, theirs = as_fast({p: predicted(data)[p][0] for p in MEASURED}), as_fast({p: t for p, (t, _) in MEASURED.items()})
    return {"of the paper's": len(ours & theirs), "the paper has": len(theirs), "others": len(ours - theirs)}


def by_hops(data):
    """Times and latencies that go by hops alone: 1.05 times those of one hop for two."""
    base = data[0, 1]
    return {pair: tuple(x * (1 + 0.05 * (hops(*pair) - 1)) for x in base) for pair in data}


S1 = Check("S1", s1, s1_holds, {"times by hops alone": by_hops}, " %")
S2 = Check("S2", s2, lambda f: abs(f["with bandwidth"]) > 0.9 and abs(f["with hops"]) < 0.7, {"times by hops alone": by_hops})
S3 = Check("S3", s3, lambda f: f["of the paper's"] == f["the paper has"] and f["others"] == 0, {"times by hops alone": by_hops})


def four_machines(recordings, repeat, *options, machines=MACHINES, position=1):
    """Best to worst pair of each machine, per cent; `position` in the plausible core factors."""
    found = {}
    for name, (machine, cpus) in machines.items():
        factor = cores.plausible(pathlib_name(machine))
        given = ["--threads", cpus] if cpus else []
        factors = ["--core-factor", factor[min(position, len(factor) - 1)]]
        choice = recordings.simulate(CLUSTERING, 2 * THREADS, repeat, *given, *factors, *options, machine=machine)["choice"]["policies"][0]
        found[name] = 100 * (choice["worst"]["seconds"] / choice["best"]["seconds"] - 1)
    return found


def pathlib_name(machine):
    return machine.rsplit("/", 1)[-1].removesuffix(".toml")


S13 = Check("S13", lambda data: data,
            lambda f: f["A"] > f["B"] > f["C"] > f["D"] and abs(f["A"] - PAPER["A"]) <= 25 and f["D"] < 10,
            {"machine A's links all equal": lambda data: {**data, "A": data["D"]}}, " %")


def ranges(recordings, data):
    """Of rows S1 to S3: `data(options)` is what one recording gives."""
    factors = {str(f): [data("--core-factor", f)] for f in cores.plausible("machine-a")}
    misses = {str(n): [data("--misses-in-flight", n)] for n in (2, 5, 12)}
    return [Range("core factor", cores.SOURCE, factors), Range("misses in flight", "docs/model.md: 2 to 12", misses)]


def judged(recordings):
    """(check, repeats, ranges, differs) of each row here."""
    two = [two_nodes(recordings, r) for r in range(REPEATS)]
    open_two = ranges(recordings, lambda *options: two_nodes(recordings, 0, *options))
    four = [four_machines(recordings, r) for r in range(REPEATS)]
    misses = {str(n): [four_machines(recordings, 0, "--misses-in-flight", n)] for n in (2, 5, 12)}
    factors = {word: [four_machines(recordings, 0, position=p)] for p, word in enumerate(("least", "by the table", "most"))}
    program = "kmedian stands for streamcluster, its chunk as large as Parsec's native one; 5 chunks there, 1 or 2 here."
    open_four = [Range("misses in flight", "docs/model.md: 2 to 12", misses), Range("core factor", cores.SOURCE, factors)]
    cut = ("Bandwidths of B, C and D are not in the paper: machine A's widths are taken. 16 threads share the 12 CPUs of two nodes of B "
           "and C and the 8 of D's.")
    return [(S1, two, open_two, f"{program} The second node of a row is inferred."),
            (S2, two, open_two, f"{program} All {len(NODES) * (len(NODES) - 1)} ordered pairs; bandwidths beyond Table 1's are assumed."),
            (S3, two, open_two, f"{program} By the printed times four pairs are as fast, not five."),
            (S13, four, open_four, f"{program} {cut}")], two[0]
