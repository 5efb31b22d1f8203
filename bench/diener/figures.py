"""The paper's figures, drawn from what nodewise reported."""

import statistics

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

COLOURS = ["#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#9c755f"]
plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "nodewise"})


def average(values):
    return statistics.fmean(values)


def grouped(file, programs, series, ylabel, limits=None, errors=None, with_average=True):
    """Bars of several series side by side, one group a program, the mean last."""
    labels = [*programs, "average"] if with_average else list(programs)
    figure, axes = plt.subplots(figsize=(10, 3.2), layout="constrained")
    width = 0.8 / len(series)
    for i, (name, values) in enumerate(series.items()):
        shown = [*values, average(values)] if with_average else values
        at = [x + (i - (len(series) - 1) / 2) * width for x in range(len(shown))]
        axes.bar(at, shown, width, label=name, color=COLOURS[i % len(COLOURS)])
        if errors:
            low, high = zip(*errors[name])
            below = [max(0, v - l) for v, l in zip(values, low)]
            above = [max(0, h - v) for v, h in zip(values, high)]
            axes.errorbar(at[: len(values)], values, [below, above], fmt="none", ecolor="#444", elinewidth=0.7)
    axes.set_xticks(range(len(labels)), labels, rotation=30, ha="right")
    axes.set_ylabel(ylabel)
    axes.margins(x=0.01)
    axes.axhline(0, color="#444", linewidth=0.6)
    if limits:
        axes.set_ylim(*limits)
    figure.legend(loc="outside upper center", ncols=len(series), frameon=False)
    save(figure, file)


def stacked(file, programs, distributions):
    """The share of pages by number of moves (the paper's Figure 4)."""
    figure, axes = plt.subplots(figsize=(10, 3.2), layout="constrained")
    names = ["0", "1", "2", "3", "4 and more"]
    bottom = [0.0] * len(programs)
    for moves, name in enumerate(names):
        def share(pages):
            wanted = pages[moves:] if moves == len(names) - 1 else pages[moves:moves + 1]
            return 100 * sum(wanted) / max(1, sum(pages))
        values = [share(pages) for pages in distributions]
        axes.bar(range(len(programs)), values, 0.7, bottom=bottom, label=f"{name} moves", color=COLOURS[moves])
        bottom = [b + v for b, v in zip(bottom, values)]
    axes.set_xticks(range(len(programs)), programs, rotation=30, ha="right")
    axes.set_ylabel("pages (%)")
    axes.margins(x=0.01)
    figure.legend(loc="outside upper center", ncols=len(names), frameon=False)
    save(figure, file)


def save(figure, file):
    figure.savefig(file, metadata={"Date": None})
    figure.savefig(file.with_suffix(".png"), dpi=110)
    plt.close(figure)
