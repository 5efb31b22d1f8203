"""Which nodes to take: all sets of two, three and five nodes of machine A by bandwidth."""

from itertools import combinations, permutations
from statistics import mean

from checks import Check, percent, table
from nodewise import NODES, hops, route, together

# Table 2: streamcluster is 64 % slower on the first than on the second, its best.
BAD, BEST = (0, 1, 3, 4, 7), (2, 3, 4, 5, 6)

THREE = """## Three nodes: 336 ordered, 56 sets

`nodewise topo --machine machine-a --flows 2-6-7` gives what all six flows between three nodes get at the same time, max-min
fair: their sum is the paper's *P*<sub>wbw</sub> of one cluster. {distinct} of the 56 sets differ in *P*<sub>wbw</sub>. The first
node of an ordered placement is the master's; `--flows '0>1,0>2'` is what the other two read from it. Which of these is second and
which third makes no difference to that: the 336 are 168, each twice.

{sets}
*Hops* are links crossed, summed over the six ordered pairs. The sets with the fewest (6) are {fewest}. Best over worst is
{spread:.2f}. The best set reads node 7's memory from 2 over 3, a node outside of it.

By bandwidth from the master (the other nodes' sum), for a program whose data is all there:

{masters}
Best over mean is {master_best:.2f}, mean over worst {master_worst:.2f}. On {masters_differ} of the 56 sets it matters which node is the
master's, by up to {master_matters:.2f}. The ten best by *P*<sub>wbw</sub> and the ten best by
bandwidth from the better master share {common} sets: what is best depends on who sends to whom.

**Figures 2 and 3** have twenty programs on all 336; their bars are not in the text, only that the best is up to 88 %
faster than the mean and the worst up to 44 % slower. They need those programs' profiles on that machine; below are ours.
"""

FIVE = """## Five nodes: 56 sets, and Table 2

streamcluster is best on {{2, 3, 4, 5, 6}} and 64 % slower on {{0, 1, 3, 4, 7}}; SPECjbb is best on the latter.

{rows}
{before} puts streamcluster's best before its bad one; {top} puts it first{verdict}. By all flows together
{first} comes first. The links that Table 1 does not determine, and what links carry when several flows share
them, decide that. For SPECjbb, of which the paper says how much it reads over links but not from where, there is no measure.
"""


def name(nodes):
    return "{" + ", ".join(map(str, nodes)) + "}"


def weighted(nodes):
    """P_wbw of one cluster of weight 1 on these nodes."""
    return together("-".join(map(str, nodes)))


def alone(nodes):
    return sum(route(a, b)["bandwidth_MBps"] for a, b in permutations(nodes, 2))


def from_master(nodes):
    """The best master's."""
    return max(served(m, [n for n in nodes if n != m]) for m in nodes)


def served(master, others):
    return together(",".join(f"{master}>{o}" for o in others))


def crossed(nodes):
    return sum(hops(a, b) for a, b in permutations(nodes, 2))


def ranked(sets, measure):
    return sorted(sets, key=lambda s: (-round(measure(s), 6), s))


def rank(order, nodes, measure):
    """How many are better, and one."""
    return 1 + sum(measure(s) > measure(nodes) + 1e-6 for s in order)


def gigabytes(megabytes):
    return f"{megabytes / 1000:.2f}"


def three():
    sets = ranked(combinations(NODES, 3), weighted)
    fewest = [s for s in sets if crossed(s) == min(map(crossed, sets))]
    shown = [*sets[:6], *(s for s in fewest if s not in sets[:6]), *sets[-3:]]
    rows = [(rank(sets, s, weighted), name(s), gigabytes(weighted(s)), crossed(s)) for s in shown]
    ordered = sorted(((served(m, rest), m, rest) for m in NODES for rest in combinations([n for n in NODES if n != m], 2)), reverse=True)
    rates = [rate for rate, _, _ in ordered]
    by_set = {s: sorted(rate for rate, m, rest in ordered if {m, *rest} == {*s}) for s in sets}
    matters = [rates[-1] / rates[0] for rates in by_set.values()]
    masters = [(m, ", ".join(map(str, rest)), gigabytes(rate), crossed((m, *rest))) for rate, m, rest in [*ordered[:5], *ordered[-3:]]]
    by_master = ranked(sets, from_master)
    text = THREE.format(
        distinct=len({round(weighted(s), 3) for s in sets}),
        sets=table(["rank", "nodes", "all flows together, GB/s", "hops"], rows, left=2),
        fewest=", ".join(f"{name(s)} (rank {rank(sets, s, weighted)})" for s in fewest),
        spread=weighted(sets[0]) / weighted(sets[-1]),
        masters=table(["master", "others", "from the master, GB/s", "hops"], masters, left=2),
        master_best=rates[0] / mean(rates), master_worst=mean(rates) / rates[-1],
        masters_differ=sum(m > 1 + 1e-6 for m in matters), master_matters=max(matters), common=len({*sets[:10]} & {*by_master[:10]}))
    best = min(crossed(s) for s in sets)
    return text, [
        Check("Ordered placements are far apart, both ways from their mean", "up to 88 % faster, up to 44 % slower",
              f"bandwidth from the master: {percent(rates[0] / mean(rates) - 1)}, {percent(rates[-1] / mean(rates) - 1)}",
              rates[0] > 1.3 * mean(rates) and rates[-1] < 0.7 * mean(rates),
              "Bandwidth of one kind of program; the paper's are times of twenty."),
        Check("The best nodes have the most bandwidth, not the fewest hops", "key insight",
              f"{name(sets[0])}: {gigabytes(weighted(sets[0]))} GB/s over {crossed(sets[0])} hops; "
              f"{name(fewest[0])}: {gigabytes(weighted(fewest[0]))} over {best}", crossed(sets[0]) > best),
        Check("No three nodes have 16-bit links between every pair", "section 2",
              f"at most {max(wide(s) for s in sets)} of six ways", max(wide(s) for s in sets) < 6),
    ]


def wide(nodes):
    return sum(route(a, b)["bandwidth_MBps"] > 5000 for a, b in permutations(nodes, 2))


def five():
    measures = {"all flows together (*P*<sub>wbw</sub>)": weighted, "each flow alone, summed": alone, "from the best master": from_master}
    sets = list(combinations(NODES, 5))
    rows, ranks = [], []
    for what, measure in measures.items():
        good, bad = rank(sets, BEST, measure), rank(sets, BAD, measure)
        ranks.append((good, bad))
        rows.append((what, f"{good} of 56", gigabytes(measure(BEST)), f"{bad} of 56", gigabytes(measure(BAD))))
    first = ranked(sets, weighted)[0]
    before, top = sum(good < bad for good, bad in ranks), sum(good == 1 for good, _ in ranks)
    text = FIVE.format(rows=table(["by", name(BEST), "GB/s", name(BAD), "GB/s"], rows), first=name(first),
                       before=so_many(before, len(ranks)),
                       top=so_many(top, len(ranks)).lower(), verdict="" if top else ": **Table 2's best set is not reproduced**")
    return text, [
        Check("Table 2: streamcluster's best five nodes are better than its bad ones", "64 %",
              "ranks " + ", ".join(f"{good} and {bad}" for good, bad in ranks), before == len(ranks)),
        Check("Table 2's best set is the best of 56", "2, 3, 4, 5, 6", f"rank {rank(sets, BEST, weighted)} by *P*<sub>wbw</sub>",
              first == BEST, "The model's wiring is consistent with Table 1, not determined by it.", expected=False),
    ]


def so_many(some, of):
    return "Each measure" if some == of else "No measure" if some == 0 else f"{some} of {of} measures"


def part():
    (three_text, three_checks), (five_text, five_checks) = three(), five()
    return three_text + "\n" + five_text, three_checks + five_checks
