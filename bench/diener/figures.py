"""The paper's Figures 1 to 7, drawn from what nodewise reported: medians over the repeats."""

import plots
from programs import STATIC
from study import MACHINES, RIVALS

NAMES = ["0", "1", "2", "3", "4 and more"]


def draw(folder, data):
    def column(get, names=STATIC):
        return [100 * get(data[name]) for name in names]

    configurations = ["4 nodes, 4K", "4 nodes, 2M", "64 nodes, 4K", "64 nodes, 2M"]
    series = {key: column(lambda p, key=key: p["exclusivity"][key]) for key in configurations}
    plots.grouped(folder / "figure1.svg", STATIC, series, "exclusivity (%)", (0, 100))
    series = {metric: column(lambda p, metric=metric: p["balance"]["first-touch"][metric]) for metric in ("pages", "accesses")}
    plots.grouped(folder / "figure2.svg", STATIC, series, "balance (%)", (0, 100))
    series = {policy: column(lambda p, policy=policy: p["balance"][policy]["accesses"])
              for policy in ("locality", "interleave", "mixed")}
    plots.grouped(folder / "figure3.svg", STATIC, series, "access balance (%)", (0, 100))
    series = {f"{name} moves": column(lambda p, n=n: p["moves"][n], list(data)) for n, name in enumerate(NAMES)}
    plots.stacked(folder / "figure4.svg", list(data), series, "pages (%)")
    for number, machine in enumerate(MACHINES, 5):
        times = {n: data[n]["scenarios"][machine.title] for n in STATIC}
        policies = [*RIVALS, "mixed"]
        bars = {p: [100 * (times[n][p]["typical"] - 1) for n in STATIC] for p in policies}
        ends = {p: [[100 * (end(times[n][p].values()) - 1) for end in (min, max)] for n in STATIC] for p in policies}
        plots.grouped(folder / f"figure{number}.svg", STATIC, bars, "improvement (%)", errors=ends)
