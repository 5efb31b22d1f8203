"""Figures 2 to 5: one program with 24 threads on three nodes: all static placements, and runs in which threads and pages move.

`data` of a repeat has for each program what `simulate --move-threads` says: its static placements, and runs from 20 random starts
with dynamic page migration alone (`pages`), with the decision code of `balance --move-threads` (`threads`), and in which nothing moves
(`still`)."""

from statistics import correlation, fmean, pstdev

import wirings
from judge import Check, cores
from judge.check import SIMILAR, Range
from judge.verdict import DEAD, RIVAL
from programs import CLUSTERING, PROGRAMS, REPEATS, THREADS
from reasons import by_value, far_from_best, pages_alone
from recordings import PRICE
from row import Row
from table1 import LATENCIES, LATENCIES_SOURCE

NODES = 3
QUARTERS = 3 / 4


def study(found, at=0):
    """Of one program of a `--move-threads` document: seconds of static placements, of each run, and what was moved."""
    program = found["programs"][at]

    def runs(kind):
        return [run["programs"][at] for run in found[kind]]
    return {"starts": [run["start"] for run in found["pages"]],
            "nodes": program["nodes"], "resident": program["resident_bytes"], "repeated": program["repeated"],
            "static": program["static"],
            "pages": [r["seconds"] for r in runs("pages")], "pages_ns": [r["latency_ns"] for r in runs("pages")],
            "threads": [r["seconds"] for r in runs("threads")], "threads_ns": [r["latency_ns"] for r in runs("threads")],
            "moving": [100 * r["moving_seconds"] / r["seconds"] for r in runs("threads")],
            "moved_GB": fmean((r["dynamic_bytes"] + r["full_bytes"]) / 1e9 for r in runs("threads")),
            "threads_moved": fmean(r["threads_moved"] for r in runs("threads"))}


def all_programs(recordings, repeat, *options):
    return {name: study(recordings.moved({name: NODES}, repeat, *options)) for name in PROGRAMS}


# Pages move from a rate on that no memory has: of such a document, the runs by pages alone are those in which nothing moves.
STILL = ("--dynamic-rate", 10 ** 9)
UNMOVED = "nothing moves, from the same starts"


def still(found, at, one):
    """Seconds of the runs in which nothing moves. `one`: what `study` found of the same program, from the same starts."""
    runs = [run["programs"][at] for run in found["pages"]]
    assert [run["start"] for run in found["pages"]] == one["starts"]
    assert not any(run["dynamic_bytes"] or run["full_bytes"] or run["threads_moved"] for run in runs)
    return [run["seconds"] for run in runs]


def with_still(recordings, repeat, found):
    return {name: {**one, "still": still(recordings.moved({name: NODES}, repeat, *STILL), 0, one)} for name, one in found.items()}


def faster(one, seconds):
    """Performance against the mean static placement, per cent."""
    return 100 * (one["static"]["mean_seconds"] / seconds - 1)


def best(one):
    return one["static"]["best"]["seconds"]


def worst(one):
    return one["static"]["worst"]["seconds"]


def share(data, holds):
    return 100 * sum(map(bool, map(holds, data.values()))) / len(data)


def s4(data):
    own = data[CLUSTERING]
    small = share(data, lambda one: abs(faster(one, best(one))) < 10 and abs(faster(one, worst(one))) < 10)
    return {f"{CLUSTERING} best": faster(own, best(own)), f"{CLUSTERING} worst": faster(own, worst(own)), "programs below 10": small}


def s4_holds(f):
    return f[f"{CLUSTERING} best"] > 50 and f[f"{CLUSTERING} worst"] < -30 and f["programs below 10"] >= 100 / 3


def s5(data):
    performance = [faster(one, best(one)) - faster(one, worst(one)) for one in data.values()]
    latency = [one["static"]["worst"]["latency_ns"] - one["static"]["best"]["latency_ns"] for one in data.values()]
    return {"Pearson": correlation(performance, latency)}


def deviation(data, kind):
    """Mean over programs of the runs' standard deviation, per cent of their mean."""
    return fmean(100 * pstdev(one[kind]) / fmean(one[kind]) for one in data.values())


def s6(data):
    """Close is within 5 %; a mean that is better than the best static placement is counted as close too."""
    two_sided = share(data, lambda one: 1 / SIMILAR <= fmean(one["threads"]) / best(one) <= SIMILAR)
    return {"programs close or better": share(data, lambda one: fmean(one["threads"]) <= SIMILAR * best(one)),
            "programs close": two_sided, "deviation": deviation(data, "threads"), "deviation of pages alone": deviation(data, "pages")}


def s6_holds(f):
    return f["programs close or better"] >= 100 * QUARTERS and f["deviation"] <= f["deviation of pages alone"] / 3


def s7(data):
    def ends(one):
        return (1 / 1.1 <= max(one["pages"]) / worst(one) <= 1.1) and (1 / 1.1 <= min(one["pages"]) / best(one) <= 1.1)
    mean = share(data, lambda one: 1 / 1.1 <= fmean(one["pages"]) / one["static"]["mean_seconds"] <= 1.1)
    return {"programs with a mean near average": mean, "programs with the ends of static": share(data, ends)}


def equal_links(data):
    def flat(one):
        mean = {"seconds": one["static"]["mean_seconds"], "latency_ns": one["static"]["mean_latency_ns"]}
        return {**one, "static": {**one["static"], "best": mean, "worst": mean}}
    return {name: flat(one) for name, one in data.items()}


def others_latency(data):
    """Each program with the latencies of the next one."""
    names = list(data)

    def with_latency(one, other):
        static = {**one["static"]}
        for end in ("best", "worst"):
            static[end] = {**static[end], "latency_ns": other["static"][end]["latency_ns"]}
        return {**one, "static": static}
    return {name: with_latency(data[name], data[after]) for name, after in zip(names, names[1:] + names[:1])}


def in_place(place, runs):
    """Data with some runs of each program in the place of others."""
    return lambda data: {name: {**one, place: one[runs]} for name, one in data.items()}


NO_POLICY = ("The row is about placements of threads that stay; no policy is judged, so that a machine or program without the property "
             "stands in.")
THREADS_ALONE = {DEAD: NO_POLICY, RIVAL: NO_POLICY}
CHECKS = [
    Check("S4", s4, s4_holds, inputs={"links that are all equal": equal_links}, unit=" %", lacks=THREADS_ALONE),
    Check("S5", s5, lambda f: f["Pearson"] > 0.8, inputs={"latencies of another program": others_latency}, lacks=THREADS_ALONE),
    Check("S6", s6, s6_holds, {UNMOVED: in_place("threads", "still")},
          {"migration of memory alone: threads that never move": in_place("threads", "pages")}, unit=" %"),
    Check("S7", s7, lambda f: min(f.values()) >= 50, {UNMOVED: in_place("pages", "still")},
          {"AsymSched in its place": in_place("pages", "threads")}, unit=" %"),
]
SHORT = "Ten programs instead of twenty, smaller than the paper's; recordings are repeated until a run lasts 15 s."
TOGETHER = ("Threads of a program begin on as few nodes as hold them, eight on each and those that share pages together, and no node has "
            "two programs: the paper's initial collocation (4.2), to its full extent. Machine A is wired as in its file: "
            "other wirings were not run.")
DIFFERS = {
    "S4": f"{SHORT} Performance is the mean time over a placement's.", "S5": SHORT,
    "S6": f"{SHORT} {TOGETHER} A mean better than the best static placement's counts as close; the paper says so of streamcluster, pca and "
          "facerec. The deviation is the mean over programs, in per cent of each one's mean. Counters are exact, not sampled.",
    "S7": f"{SHORT} Within 10 % either way; both ends of a program must be. Other wirings of machine A were not run.",
}
# Name, source, option, default, and other values: the ends in a fast run.
PRICES = "price, s/GB"
OPEN = [(PRICES, "Table 5 and section 4.3: 0.05 to 5", "--migration-cost", PRICE, {"fast": (0.05, 5), "full": (0.05, 0.3, 1, 5)}),
        ("dynamic migration from, lines/us", "Dashti et al. 2013: 50; none to four times that", "--dynamic-rate", 50,
         {"fast": (0, 200), "full": (0, 100, 200)}),
        ("misses in flight", "docs/model.md: 2 to 12", "--misses-in-flight", 5, {"fast": (2, 12), "full": (2, 3, 8, 12)}),
        ("assumed bandwidths, times", "docs/model.md: 2/3 to 3/2 of the bandwidths that the machine's file marks as assumed",
         "--bandwidth-factor", 1, dict.fromkeys(("fast", "full"), (0.667, 1.5))),
        ("assumed latencies, times", LATENCIES_SOURCE, "--latency-factor", 1, dict.fromkeys(("fast", "full"), LATENCIES)),
        ("core factor", cores.SOURCE, "--core-factor", cores.factor("machine-a"),
         dict.fromkeys(("fast", "full"), cores.plausible("machine-a")))]


def ranges(ask, repeats, size):
    """What the paper leaves open, over the range: `ask(repeat, option, value)` gives the data of a repeat, `repeats` are those with the
    defaults."""
    def at(option, default, value):
        return repeats if value == default else [ask(number, option, value) for number in range(len(repeats))]

    def data(option, default, values):
        return {str(v): at(option, default, v) for v in sorted({default, *values})}
    return [Range(name, source, data(option, default, values[size])) for name, source, option, default, values in OPEN]


def static(recordings, repeat, machine="machine-a"):
    """What S4 and S5 are about, of all programs on a machine's file, of one run without moves. It is the same placements as `moved`
    has, which repeats a recording until it lasts."""
    each = {name: recordings.simulate(name, NODES * THREADS, repeat, machine=machine)["choice"]["policies"][0] for name in PROGRAMS}
    return {name: {"static": one} for name, one in each.items()}


def judged(recordings):
    repeats = [with_still(recordings, r, all_programs(recordings, r)) for r in range(REPEATS)]
    left_open = ranges(lambda *asked: all_programs(recordings, *asked), repeats, recordings.size)
    here = [static(recordings, r) for r in range(REPEATS)]
    wiring = wirings.ranged(recordings.size, here, lambda r, file: static(recordings, r, file))
    wired = {row: [*left_open, wiring] for row in ("S4", "S5")}
    looked_at = {"S4": by_value(wired["S4"], f"Of {CLUSTERING} the best placement over the mean, %", lambda d: s4(d)[f"{CLUSTERING} best"]),
                 "S5": by_value(wired["S5"], "Pearson", lambda d: s5(d)["Pearson"]),
                 "S6": f"{far_from_best(repeats)} {pages_alone(repeats)}"}
    return [Row(check, repeats, wired.get(check.id, left_open), DIFFERS[check.id], looked_at.get(check.id, ""))
            for check in CHECKS], repeats
