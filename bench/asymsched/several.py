"""Figures 6 and 7: several programs at once on sets of nodes of their own, from 20 random starts; and what searches skip (4.3)."""

from statistics import fmean

from judge import Check
from judge.check import SIMILAR
from judge.verdict import RIVAL
from programs import CLUSTERING, REPEATS, THREADS, WORKLOADS
from reasons import far_from_best, pages_alone
from recordings import simulate
from row import Row
from single import STILL, TOGETHER, UNMOVED, best, ranges, still, study

QUARTERS = 3 / 4


def label(workload):
    return " + ".join(f"{name}({nodes})" for name, nodes in workload.items())


def all_workloads(recordings, repeat, *options):
    """By workload and program."""
    found = {}
    for workload in WORKLOADS[recordings.size]:
        document = recordings.moved(workload, repeat, *options)
        found[label(workload)] = {"programs": {name: study(document, at) for at, name in enumerate(workload)},
                                  "skipped": skipped(document)}
    return found


def with_still(recordings, repeat, found):
    """The data of a repeat, with runs in which nothing moves from the same starts."""
    each = {}
    for workload in WORKLOADS[recordings.size]:
        one, document = found[label(workload)], recordings.moved(workload, repeat, *STILL)
        programs = {name: {**p, "still": still(document, at, p)} for at, (name, p) in enumerate(one["programs"].items())}
        each[label(workload)] = {**one, "programs": programs}
    return each


def skipped(document):
    """Of a document's searches for a placement, per cent that were not computed."""
    runs = document["threads"]
    return 100 * (1 - sum(r["evaluated"] for r in runs) / max(sum(r["placements"] for r in runs), 1))


def cases(data):
    return [one for workload in data.values() for one in workload["programs"].values()]


def by_case(data):
    return {f"{name} in {workload}": one for workload, found in data.items() for name, one in found["programs"].items()}


def s8(data):
    close = [fmean(one["threads"]) <= SIMILAR * best(one) for one in cases(data)]
    return {"close or better": 100 * sum(close) / len(close), "cases": len(close)}


def in_place(runs):
    """Data with these runs in the place of those in which threads move."""
    def of(programs):
        return {name: {**one, "threads": one[runs]} for name, one in programs.items()}
    return lambda data: {name: {**one, "programs": of(one["programs"])} for name, one in data.items()}


S8 = Check("S8", s8, lambda f: f["close or better"] >= 100 * QUARTERS, {UNMOVED: in_place("still")},
           {"migration of memory alone: threads that never move": in_place("pages")}, unit=" %", units={"cases": ""})
S9 = Check("S9", lambda data: data, lambda f: min(f.values()) >= 67,
           {"a search that computes all": lambda data: dict.fromkeys(data, 0.0)}, unit=" %",
           lacks={RIVAL: "The rival is a search that computes all placements, which is also the one that does nothing."},
           closed="What the searches compute is counted, for clusters that the text names.")
S9_DIFFERS = "Placements are counted as sets of nodes by cluster: 2,520 for four clusters of two nodes, where the paper has 5,040."
S8_DIFFERS = (f"{TOGETHER} Two or six workloads of our programs; SPECjbb has no counterpart, NAS CG stands in. Each program's best "
              "static placement is its own. A program that ends goes on beside the others until all have ended once.")


def one_search(recordings, folders):
    """A short run: its searches have what any run's have."""
    return skipped(simulate(folders, "--affinity", "asym", "--move-threads", "--random-starts", 1, "--at-least", 3))


def searches(recordings, repeat, workloads):
    """Skipped placements by configuration: one cluster of 2, 3, 5 nodes, four of 2, and those of Figure 6."""
    def folder(threads, at=repeat):
        return recordings.record(CLUSTERING, threads, at)
    alone = {label({CLUSTERING: nodes}): one_search(recordings, [folder(THREADS * nodes)]) for nodes in (2, 3, 5)}
    four = one_search(recordings, [folder(2 * THREADS, at) for at in range(4)])
    return {**alone, " + ".join(4 * [label({CLUSTERING: 2})]): four, **{name: one["skipped"] for name, one in workloads.items()}}


def judged(recordings):
    repeats = [with_still(recordings, r, all_workloads(recordings, r)) for r in range(REPEATS)]
    left_open = ranges(lambda *asked: all_workloads(recordings, *asked), repeats, recordings.size)
    counted = [searches(recordings, r, one) for r, one in enumerate(repeats)]
    flat = [by_case(one) for one in repeats]
    return [Row(S8, repeats, left_open, S8_DIFFERS, f"{far_from_best(flat)} {pages_alone(flat)}"),
            Row(S9, counted, [], S9_DIFFERS)], repeats
