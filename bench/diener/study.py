"""From a recording to the numbers that the checks need: all of them are the product's, as JSON."""

from dataclasses import dataclass
from statistics import median

from recordings import THREADS, many_nodes, plain, report, simulate

SIZES = ("4K", "2M")
THRESHOLDS = ("0.8", "0.85", "0.9", "0.95")  # of mixed: the paper's range
RIVALS = ("random", "interleave", "locality", "balanced")
POLICIES = ("first-touch", *RIVALS, "mixed")  # as in Table I, but for random


@dataclass(frozen=True)
class Machine:
    """Of Table II, with how many threads it runs at once and the threshold of mixed there (III.A; V.B for the Itanium)."""

    name: str
    title: str
    page_size: str
    threads: int
    threshold: str


MACHINES = [
    Machine("itanium-9030", "Itanium", "16K", 8, "0.99"),
    Machine("xeon-x7550", "Xeon", "4K", THREADS, "0.9"),
    Machine("opteron-6386", "Opteron", "4K", THREADS, "0.9"),
]
EVERY_THRESHOLD = (*THRESHOLDS, "0.99")
# What is asked: mixed at each threshold.
ASKED = (*POLICIES[:-1], *(f"mixed:{t}" for t in EVERY_THRESHOLD))
IN_TABLE_I = "0.9"  # mixed's threshold (III.A)


def behaviour(profile, accesses, iterations):
    """Exclusivity by nodes and page size, balances by policy, and moves, all in parts of 1;
    `accesses`: of an outer iteration."""
    four = report(profile, "xeon-x7550", "4K", "sharing-aware", ASKED)
    balances = {plain(p["policy"]): {"pages": p["page_balance"], "accesses": p["access_balance"]} for p in four["policies"]}
    balances["mixed"] = balances[f"mixed:{IN_TABLE_I}"]
    pages = four["dynamicity"]["pages_by_moves"]
    return {"exclusivity": exclusivity(profile, four), "balance": balances, "as_printed": four["policies"][0]["access_balance_as_printed"],
            "pages": sum(pages),
            "moves": [share(pages, n) for n in range(4)] + [sum(pages[4:]) / max(1, sum(pages))],
            **by_iteration(four, accesses, iterations)}


def exclusivity(profile, four=None):
    """By nodes and page size; `four`: what is known of four nodes and small pages."""
    four = four or report(profile, "xeon-x7550", "4K", "sharing-aware")
    found = {"4 nodes, 4K": four["application_exclusivity"],
             "4 nodes, 2M": report(profile, "xeon-x7550", "2M", "sharing-aware")["application_exclusivity"]}
    inherent = many_nodes(THREADS)
    for size in SIZES:
        found[f"64 nodes, {size}"] = report(profile, inherent, size, "identity")["application_exclusivity"]
    return found


def by_iteration(four, accesses, iterations):
    """Slices an outer iteration, by the accesses of the slices between the first and the last; and the share of pages that move
    once the first iteration is over, at most: each move counts as another page's; with the last slice, which has what follows the
    loop, and without it."""
    made = [one["accesses"] for one in four["slices"]]
    first = 1 if len(made) > iterations else 0  # what precedes the loop has regions of its own, but for kmedian's
    moves = sum(one["migrations"] for one in four["slices"][first + 1:])
    before_last = moves - four["slices"][-1]["migrations"]
    pages = max(1, sum(four["dynamicity"]["pages_by_moves"]))
    return {"slices": len(made), "slices_an_iteration": accesses / median(made[1:-1] or made), "later_moves": min(1.0, moves / pages),
            "later_moves_before_last": min(1.0, before_last / pages)}


def share(pages, moves):
    return pages[moves] / max(1, sum(pages)) if moves < len(pages) else 0.0


def speedups(profile, machine, plain_ns, factor):
    """By policy, over first-touch: {"typical": …, "misses in flight 2": …, …}, one for each of the model's scenarios."""
    found = simulate(profile, machine, ASKED, factor, plain_ns)
    return {policy: by_scenario(p["scenarios"]) for policy, p in found.items()}


# What the model varies, as its page calls it; the cost of recording is another number in each recording.
VARIED = {"parallelism": "misses in flight", "miss": "share of lines from memory", "queue_ns": "queueing, ns",
          "assumed_bandwidth": "assumed bandwidths, times"}
COST = ("cost of recording", ("least", "most"))


def by_scenario(scenarios):
    found = {"typical": scenarios[0]["speedup"]}
    costs = sorted((s["value"], s["speedup"]) for s in scenarios if s["varied"] == "recording_cost")
    found |= {f"{COST[0]} {end}": speedup for end, (_, speedup) in zip(COST[1], costs)}
    return found | {f"{VARIED[s['varied']]} {s['value']:g}": s["speedup"] for s in scenarios if s["varied"] in VARIED}


def middle(repeats):
    """Repeats of nested numbers as one, of medians."""
    first = repeats[0]
    if isinstance(first, dict):
        return {key: middle([r[key] for r in repeats]) for key in first}
    if isinstance(first, list):
        return [middle(list(values)) for values in zip(*repeats)]
    return first if isinstance(first, str) else median(repeats)
