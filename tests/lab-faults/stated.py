"""What the report must say of an object's samples, computed anew from the definitions in docs/record.md, page by
page and sample by sample: no line of it comes from what it checks."""

import math

import numpy

Z = 1.959964  # the normal distribution's 97.5 % quantile
INTENSITY, EXCEPTED = 32, 0.02
FEWEST_BLOCKS = 5


def left_out(page):
    """The chance that a sample's node is the one which the page's other samples choose, at random if several tie."""
    score = 0
    for node in numpy.flatnonzero(page):
        others = page - (numpy.arange(len(page)) == node)
        chosen = numpy.flatnonzero(others == others.max())
        score += page[node] * (node in chosen) / len(chosen)
    return score / page.sum()


def student(freedom):
    """The 97.5 % quantile of Student's t, by the first terms of Fisher and Cornish."""
    return Z + (Z**3 + Z) / (4 * freedom) + (5 * Z**5 + 16 * Z**3 + 3 * Z) / (96 * freedom**2)


def block_of(pages):
    """Of each of so many pages in the order of memory, the number of its block."""
    blocks = math.isqrt(pages)
    return numpy.arange(pages) * (blocks if blocks >= FEWEST_BLOCKS else 1) // pages


def most(samples):
    """The independent samples that pages which agree are worth: a page's for each block."""
    return len(set(block_of(len(samples)))) / (1 / samples).mean()


def bounds(shares, samples):
    """Wilson's: the shares p from which the mean is z standard errors away, (mean − p)² = z² p (1 − p) / n."""
    block = block_of(len(shares))
    means = numpy.array([shares[block == b].mean() for b in range(block[-1] + 1)])
    effective = most(samples)
    if len(means) > 1 and means.var() > 0:
        error = means.std(ddof=1) / math.sqrt(len(means)) * student(len(means) - 1) / Z
        effective = min(effective, means.mean() * (1 - means.mean()) / error**2)
    mean, weight = shares.mean(), Z**2 / effective
    return numpy.clip(sorted(numpy.roots([1 + weight, -2 * mean - weight, mean**2]).real), 0, 1)


def chance(pages):
    """Bounds of the mean of the largest share of *visits*, from samples by page and node."""
    samples = pages.sum(axis=1)
    low, _ = bounds(numpy.array([left_out(page) for page in pages]), samples)
    _, high = bounds(pages.max(axis=1) / samples, samples)
    return low, high


def accesses(low, high, nodes):
    """Bounds of visits as bounds of accesses."""
    low = low / (low + INTENSITY * (1 - low)) - EXCEPTED
    high = high / (high + (1 - high) / INTENSITY) + EXCEPTED
    return max(low, 1 / nodes), min(high, 1)


def of_one_node(samples, nodes):
    """The lower bound where every page was seen from one node alone, in closed form: Wilson's is n / (n + z²)."""
    return max(1 / nodes, (n := most(samples)) / (n + INTENSITY * Z**2) - EXCEPTED)
