"""Bars and curves for the reproduction pages: an SVG and a PNG each, the same bytes for the same numbers."""

import statistics

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

COLOURS = ["#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#9c755f", "#444444"]
plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "nodewise"})


def average(values):
    return statistics.fmean(values)


def chart():
    return plt.subplots(figsize=(10, 3.2), layout="constrained")


def finish(figure, axes, file, labels, columns):
    """What all bars have: names below, a legend above."""
    axes.set_xticks(range(len(labels)), labels, rotation=30, ha="right")
    axes.margins(x=0.01)
    save(figure, file, columns)


def save(figure, file, columns):
    figure.legend(loc="outside upper center", ncols=columns, frameon=False)
    figure.savefig(file, metadata={"Date": None})
    figure.savefig(file.with_suffix(".png"), dpi=110)
    plt.close(figure)


def grouped(file, programs, series, ylabel, limits=None, errors=None, with_average=True):
    """Bars of several series side by side, one group a program, the mean last. A value may be None."""
    labels = [*programs, "average"] if with_average else list(programs)
    figure, axes = chart()
    width = 0.8 / len(series)
    for i, (name, values) in enumerate(series.items()):
        shown = [*values, average(values)] if with_average else values
        at = [x + (i - (len(series) - 1) / 2) * width for x in range(len(shown))]
        there = [(x, v) for x, v in zip(at, shown) if v is not None]
        axes.bar([x for x, _ in there], [v for _, v in there], width, label=name, color=COLOURS[i % len(COLOURS)])
        if errors:
            low, high = zip(*errors[name])
            below = [max(0, v - x) for v, x in zip(values, low)]
            above = [max(0, x - v) for v, x in zip(values, high)]
            axes.errorbar(at[: len(values)], values, [below, above], fmt="none", ecolor="#444", elinewidth=0.7)
    axes.set_ylabel(ylabel)
    axes.axhline(0, color="#444", linewidth=0.6)
    if limits:
        axes.set_ylim(*limits)
    finish(figure, axes, file, labels, len(series))


def stacked(file, labels, series, ylabel):
    """Bars of several series on top of one another."""
    figure, axes = chart()
    bottom = [0.0] * len(labels)
    for i, (name, values) in enumerate(series.items()):
        axes.bar(range(len(labels)), values, 0.7, bottom=bottom, label=name, color=COLOURS[i % len(COLOURS)])
        bottom = [b + v for b, v in zip(bottom, values)]
    axes.set_ylabel(ylabel)
    finish(figure, axes, file, labels, len(series))


def curves(file, at, series, xlabel, ylabel):
    """A line a series; points at `at`, or evenly from 0 to 1."""
    figure, axes = chart()
    for i, (name, values) in enumerate(series.items()):
        where = at or [k / max(1, len(values) - 1) for k in range(len(values))]
        axes.plot(where, values, label=name, color=COLOURS[i % len(COLOURS)], marker="o" if at else None, markersize=3,
                  linewidth=1.2)
    if at:
        axes.set_xticks(at)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.set_ylim(bottom=0)
    save(figure, file, len(series))
