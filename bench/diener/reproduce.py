"""Records, asks, draws, checks: see bench/reproduce-diener."""

import sys
import time

import figures
import page
import plots
from findings import SAME, findings
from recordings import FOLDER, PROGRAMS, many_nodes, plain, record, report, simulate, thresholds

import web

# The paper's machines, with page size, the best threshold of mixed there, and threads at once.
MACHINES = {
    "itanium-9030": ("16K", 0.99, 8),
    "xeon-x7550": ("4K", 0.9, 64),
    "opteron-6386": ("4K", 0.9, 64),
}


def say(text):
    print(f"reproduce-diener: {text}", file=sys.stderr, flush=True)


def study(program, inherent, reuse):
    """All figures of one program."""
    start = time.monotonic()
    profile = record(program, reuse)
    recorded = time.monotonic() - start
    four = {size: report(profile, "xeon-x7550", size, "sharing-aware") for size in ("4K", "2M")}
    many = {size: report(profile, inherent, size, "identity") for size in ("4K", "2M")}
    policies = {plain(p["policy"]): p for p in four["4K"]["policies"]}
    predictions = {m: simulate(profile, m, *setting) for m, setting in MACHINES.items()}
    lost = [m for m, found in predictions.items() if found["mixed"]["speedup"] < 1 - SAME]
    by_threshold = {m: thresholds(profile, m, MACHINES[m][0], MACHINES[m][2]) for m in lost}
    say(f"{program}: recorded in {recorded:.0f} s, studied in {time.monotonic() - start - recorded:.0f} s")
    return {
        "exclusivity": {f"{nodes} nodes, {size}": r["application_exclusivity"]
                        for nodes, reports in ((4, four), (64, many)) for size, r in reports.items()},
        "page_balance": {name: p["page_balance"] for name, p in policies.items()},
        "access_balance": {name: p["access_balance"] for name, p in policies.items()},
        "moves": four["4K"]["dynamicity"]["pages_by_moves"],
        "mixed_by_threshold": by_threshold,
        "speedup": {m: {n: p["speedup"] for n, p in found.items()} for m, found in predictions.items()},
        "speedup_range": {m: {n: p["speedup_range"] for n, p in found.items()} for m, found in predictions.items()},
    }


def draw(data):
    programs = data["programs"]

    def column(get):
        return [get(p) for p in programs.values()]

    keys = ["4 nodes, 4K", "4 nodes, 2M", "64 nodes, 4K", "64 nodes, 2M"]
    series = {key: column(lambda p, key=key: 100 * p["exclusivity"][key]) for key in keys}
    plots.grouped(FOLDER / "figure1.svg", programs, series, "exclusivity (%)", (0, 100))
    series = {label: column(lambda p, key=key: 100 * p[key]["first-touch"])
              for label, key in (("pages", "page_balance"), ("accesses", "access_balance"))}
    plots.grouped(FOLDER / "figure2.svg", programs, series, "balance (%)", (0, 100))
    series = {policy: column(lambda p, policy=policy: 100 * p["access_balance"][policy])
              for policy in ("locality", "interleave", "mixed")}
    plots.grouped(FOLDER / "figure3.svg", programs, series, "access balance (%)", (0, 100))
    figures.pages_by_moves(FOLDER / "figure4.svg", list(programs), column(lambda p: p["moves"]))
    for number, machine in enumerate(MACHINES, 5):
        policies = ["random", "interleave", "locality", "balanced", "mixed"]
        gain = {n: column(lambda p, machine=machine, n=n: 100 * (p["speedup"][machine][n] - 1)) for n in policies}
        ends = {n: column(lambda p, machine=machine, n=n: [100 * (s - 1) for s in p["speedup_range"][machine][n]]) for n in policies}
        plots.grouped(FOLDER / f"figure{number}.svg", programs, gain, "improvement (%)", errors=ends)


def main():
    reuse = "--reuse" in sys.argv[1:]
    FOLDER.mkdir(parents=True, exist_ok=True)
    inherent = many_nodes(64)
    data = {"machines": list(MACHINES), "programs": {p: study(p, inherent, reuse) for p in PROGRAMS}}
    found = findings(data)
    draw(data)
    web.publish(FOLDER, data, found, page.write(data, found))


if __name__ == "__main__":
    main()
