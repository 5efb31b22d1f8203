"""What was looked at of rows that do not hold, in figures of the run at hand. At which values of the ranges a row would hold is added by
the judge."""

from statistics import fmean, median

from judge.check import SIMILAR


def by_value(ranges, what, figure):
    """A figure at each value of the ranges that it depends on, the median over the recordings."""
    found = {r.name: {value: f"{median(map(figure, data)):.2f}" for value, data in r.data.items()} for r in ranges}
    told = [f"{name} {', '.join(f'{value}: {text}' for value, text in values.items())}" for name, values in found.items()
            if len(set(values.values())) > 1]
    return f"{what}, by {'; '.join(told)}."


def over_best(one):
    return fmean(one["threads"]) / one["static"]["best"]["seconds"]


def far_from_best(repeats):
    """Cases whose mean is further than 5 % from their best static placement, in the median."""
    far = {name: ratio for name in repeats[0] if (ratio := median(over_best(data[name]) for data in repeats)) > SIMILAR}
    return f"Not close are {', '.join(f'{name} ({100 * (ratio - 1):.0f} % above the best)' for name, ratio in far.items()) or 'none'}."


def pages_alone(repeats):
    """Cases that are slower than the mean static placement by page migration alone: threads do not move then."""
    def over_mean(one):
        return fmean(one["pages"]) / one["static"]["mean_seconds"]
    slow = {name: ratio for name in repeats[0] if (ratio := median(over_mean(data[name]) for data in repeats)) > SIMILAR}
    named = ", ".join(f"{name} by {100 * (ratio - 1):.0f} %" for name, ratio in slow.items()) or "none"
    return f"Slower than the mean static placement by moving pages alone: {named}."
