"""Figures 2 to 5: one program on three nodes, on all 336 ordered placements."""

from statistics import fmean, median

import plots
from checks import Check, percent, table
from programs import PROGRAMS
from recordings import DYNAMIC, FOLDER, alone

NODES = 3
CLOSE, CLOSER = 0.1, 0.05  # of the mean's performance

TEXT = """## Figures 2 to 5: one program, 24 threads, three nodes

Fourteen programs of ours ([workloads](../workloads/README.md)), recorded with 24 threads and predicted by
[`nodewise simulate --affinity asym`](threads.md) on all 336 ordered placements; pages are where they are first touched. They
are not the paper's programs, and run for {shortest:.2f} to {longest:.0f} s instead of 15 and more. Moving a page costs 0.15 s/GB (the
paper's mover, Table 5) and the copy.

**Figure 2: what the choice of nodes is worth.** Best and worst placement against the mean of all.

![Performance on the best and worst three nodes against the mean](images/asymsched-figure2.svg)

**Figure 3: the latency of a line from memory** on these placements, less than the mean's is positive. The paper's figures are cycles
of its counters, and up to 1,400; ours are the model's, by Little's law where a link is full.

![Latency on the best and worst three nodes against the mean](images/asymsched-figure3.svg)

**Figure 4: with migration.** *Dynamic* moves pages only (Carrefour's rules, `{dynamic}`), from first touch, threads where they
happen to be: the mean over all placements, with the least and the most. *AsymSched* has its threads on the nodes of the highest
weighted bandwidth ({chosen} for every program: one cluster gets the same nodes whatever its weight), and pages move likewise.

![Static best and worst, dynamic migration, AsymSched](images/asymsched-figure4.svg)

**Figure 5: latency** of the same.

![Latency of static best and worst, dynamic migration, AsymSched](images/asymsched-figure5.svg)

{rows}
All but *seconds* are against the mean of static placements. *By bandwidth* is the highest weighted bandwidth without moves. AsymSched
is predicted from its nodes on: moving there once costs *all moved* at most, a share of the run in which every page moves, if
threads are found elsewhere at first.

{why}
"""

WHY = """**What differs, and why.** Three nodes of one cluster are chosen by what all of them can send one another. A program whose
master initialised its arrays has all of its pages on one node, and two thirds of its threads read through that node's links: then
bandwidth *from the master* counts, and {best} is better than {chosen}. Page migration makes the traffic even again, which
is worth more to these programs than any choice of nodes; what nodes are worth after that is the spread of *dynamic*. The
paper's programs that gain least run for long enough to pay for moves that win nothing; ours lose by them ({lose}). kmedian is
streamcluster's algorithm, but a slice's points fit caches as the model has them, so that it hardly uses links here."""


def faster(reference, seconds):
    return reference / seconds - 1


def study(name):
    """Of one program; shares of gain over the mean static placement, nanoseconds less than it."""
    found = alone(name, NODES)
    policies = {p["policy"]: p for p in found["choice"]["policies"]}
    static, dynamic = policies["first-touch"], policies[DYNAMIC]
    mean, latency = static["mean_seconds"], static["mean_latency_ns"]

    def gain(at):
        return faster(mean, at["seconds"]), latency - at["latency_ns"]

    return {
        "seconds": mean, "latency": latency, "predicted": found["choice"]["predicted"],
        "best": gain(static["best"]), "worst": gain(static["worst"]), "by_bandwidth": gain(static["by_bandwidth"]),
        "dynamic": (faster(mean, dynamic["mean_seconds"]), latency - dynamic["mean_latency_ns"]),
        "dynamic_best": gain(dynamic["best"]), "dynamic_worst": gain(dynamic["worst"]), "asym": gain(dynamic["by_bandwidth"]),
        "best_nodes": static["best"]["nodes"], "chosen": static["by_bandwidth"]["nodes"],
        "moved": found["choice"]["resident_bytes"] * 0.3e-9 / mean,
    }


SERIES = {"best static": "best", "worst static": "worst", "dynamic migration": "dynamic", "AsymSched": "asym"}


def draw(studied):
    names = list(studied)

    def bars(keys, which, scale):
        return {label: [scale * studied[n][key][which] for n in names] for label, key in keys.items()}

    def ends(keys, which, scale):
        def pair(n, key):
            low, high = (("dynamic_worst", "dynamic_best") if key == "dynamic" else (key, key))
            return sorted((scale * studied[n][low][which], scale * studied[n][high][which]))
        return {label: [pair(n, key) for n in names] for label, key in keys.items()}

    two = dict(list(SERIES.items())[:2])
    folder = FOLDER / "images"
    folder.mkdir(parents=True, exist_ok=True)
    for number, keys, which, scale, ylabel in [
            (2, two, 0, 100, "performance against the mean (%)"), (3, two, 1, 1, "latency below the mean's (ns)"),
            (4, SERIES, 0, 100, "performance against the mean (%)"), (5, SERIES, 1, 1, "latency below the mean's (ns)")]:
        plots.grouped(folder / f"asymsched-figure{number}.svg", names, bars(keys, which, scale), ylabel,
                      errors=ends(keys, which, scale) if number > 3 else None, with_average=False)


def ranks(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    return [order.index(i) for i in range(len(values))]


def rank_correlation(a, b):
    """Spearman's."""
    a, b = ranks(a), ranks(b)
    return 1 - 6 * sum((x - y) ** 2 for x, y in zip(a, b)) / (len(a) * (len(a) ** 2 - 1))


def numbers(nodes):
    return "{" + ", ".join(map(str, nodes)) + "}"


def names(found):
    return ", ".join(found) or "none"


def checks(studied):
    best = {n: s["best"][0] for n, s in studied.items()}
    worst = {n: s["worst"][0] for n, s in studied.items()}
    apart = {n: (1 + best[n]) / (1 + worst[n]) - 1 for n in studied}
    span = {n: s["best"][1] - s["worst"][1] for n, s in studied.items()}
    like = rank_correlation(list(apart.values()), [span[n] for n in apart])
    top, low = max(best, key=best.get), min(worst, key=worst.get)
    near = [n for n, s in studied.items() if s["asym"][0] >= s["best"][0] - CLOSE]
    far = [n for n in studied if n not in near]
    nearer = [n for n in near if studied[n]["asym"][0] >= studied[n]["best"][0] - CLOSER]
    beyond = [n for n in studied if studied[n]["asym"][0] > studied[n]["best"][0] + CLOSE]
    average = [n for n, s in studied.items() if abs(s["dynamic"][0]) < CLOSE]
    affected = [n for n in studied if apart[n] > 0.2]
    kept = median((studied[n]["dynamic_best"][0] - studied[n]["dynamic_worst"][0]) / (best[n] - worst[n]) for n in affected)
    above = [n for n, s in studied.items() if s["asym"][0] >= s["dynamic"][0] - 0.01]
    over = {n: s["asym"][0] for n, s in studied.items()}
    most = max(over, key=over.get)
    return [
        Check("Figure 2: every program is predicted on 336 placements", "336", str({s["predicted"] for s in studied.values()})[1:-1],
              all(s["predicted"] == 336 for s in studied.values())),
        Check("Figure 2: the best nodes are up to 88 % faster than the mean, the worst up to 44 % slower", "88 %, 44 %",
              f"{percent(best[top])} ({top}), {percent(worst[low])} ({low})", best[top] > 0.2 and worst[low] < -0.2),
        Check("Figure 2: some programs hardly notice, some a lot: best over worst", "up to 237 %, mean 40 %, median 14 %",
              f"up to {percent(max(apart.values()))}, mean {percent(fmean(apart.values()))}, median {percent(median(apart.values()))}",
              min(apart.values()) < 0.1 and max(apart.values()) > 0.5),
        Check("Figure 3: who is affected most has the largest differences in latency", "tightly correlated",
              f"rank correlation {like:.2f}", like > 0.6),
        Check("Figure 4: AsymSched is close to the best static placement (10 points) or better", "always",
              f"{len(near)} of {len(studied)}, {len(nearer)} within 5 points", not far,
              f"not {names(far)}: moves that win nothing cost a short run much. Carrefour is off below a rate of memory accesses; "
              "`balance:carrefour` does not know one." if far else "", expected=False),
        Check("Figure 4: where links are fullest, AsymSched is much better than the best static placement", "streamcluster, pca, facerec",
              names(beyond), bool(beyond), "Pages leave the master's node: what is gained is mostly that."),
        Check("Figure 4: dynamic migration alone is often within 10 points of the mean", "often",
              f"{len(average)} of {len(studied)}", len(average) >= len(studied) / 3),
        Check("Figure 4: dynamic migration alone leaves the spread over placements", "minimum and maximum often those of static",
              f"{percent(kept)[1:]} of the static spread, median of those affected", kept > 0.4),
        Check("Figure 4: AsymSched is no worse than dynamic migration alone", "close to average alone",
              f"{len(above)} of {len(studied)}", len(above) == len(studied)),
        Check("AsymSched over the mean placement", "up to 218 % over a random one (abstract)", f"up to {percent(over[most])} ({most})",
              over[most] > 0.2),
    ]


def part():
    studied = {name: study(name) for name in PROGRAMS}
    draw(studied)

    def row(name, s):
        shares = [percent(s[k][0]) for k in ("best", "worst", "by_bandwidth", "dynamic", "asym")]
        return (name, PROGRAMS[name].like, f"{s['seconds']:.2f}", numbers(s["best_nodes"]), *shares[:3], shares[3],
                f"{percent(s['dynamic_worst'][0])} … {percent(s['dynamic_best'][0])}", shares[4], percent(s["moved"])[1:])
    rows = [row(*item) for item in studied.items()]
    heads = ["program", "like", "seconds", "best on", "best", "worst", "by bandwidth", "dynamic", "least … most", "AsymSched", "all moved"]
    chosen = numbers(next(iter(studied.values()))["chosen"])
    times = [s["seconds"] for s in studied.values()]
    lose = [n for n, s in studied.items() if s["asym"][0] < -0.03]
    text = TEXT.format(shortest=min(times), longest=max(times), dynamic=DYNAMIC, chosen=chosen, rows=table(heads, rows, left=2),
                       why=WHY.format(chosen=chosen, best=numbers(studied["cg"]["best_nodes"]), lose=", ".join(lose)))
    return text, checks(studied)
