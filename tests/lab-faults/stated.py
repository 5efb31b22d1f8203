"""What the report must say of an object's samples, computed anew from the definitions in docs/record.md, page by
page and sample by sample: no line of it comes from what it checks. Samples are by slice, page and node."""

import math

import numpy

Z = 1.959964  # the normal distribution's 97.5 % quantile
INTENSITY, EXCEPTED = 32, 0.02
FEWEST = 5  # blocks, and slices


def left_out(page):
    """The chance that a sample's node is the one which the page's other samples choose, at random if several tie."""
    score = 0
    for node in numpy.flatnonzero(page):
        others = page - (numpy.arange(len(page)) == node)
        chosen = numpy.flatnonzero(others == others.max())
        score += page[node] * (node in chosen) / len(chosen)
    return score / page.sum()


def largest(page):
    return page.max() / page.sum()


def student(freedom):
    """The 97.5 % quantile of Student's t, by the first terms of Fisher and Cornish."""
    return Z + (Z**3 + Z) / (4 * freedom) + (5 * Z**5 + 16 * Z**3 + 3 * Z) / (96 * freedom**2)


def block_of(pages):
    """Of each of so many pages in the order of memory, the number of its block."""
    blocks = math.isqrt(pages)
    return numpy.arange(pages) * (blocks if blocks >= FEWEST else 1) // pages


def most(samples, slices):
    """The independent samples that pages which agree are worth: a page's for each block."""
    return (len(set(block_of(len(samples)))) if slices >= FEWEST else 1) / (1 / samples).mean()


def paid(variance, number):
    """For an interval that takes the normal distribution's quantile."""
    return variance * (student(number - 1) / Z) ** 2


def between_blocks(shares):
    block = block_of(len(shares))
    means = numpy.array([shares[block == b].mean() for b in range(block[-1] + 1)])
    return paid(means.var(ddof=1) / len(means), len(means)) if len(means) > 1 else 0


def over_time(samples, score, shares):
    """The jackknife: the mean without each slice. A page that has no other samples keeps what it had."""
    means = []
    for slice in samples:
        rest = samples.sum(axis=0) - slice
        changed = [score(page) if page.any() else share for page, share in zip(rest, shares)]
        means.append(numpy.mean(changed))
    number = len(means)
    return paid((number - 1) * numpy.var(means), number) if number >= FEWEST else 0


def bounds(samples, score):
    """Wilson's: the shares p from which the mean is z standard errors away, (mean − p)² = z² p (1 − p) / n."""
    pages = samples.sum(axis=0)
    shares = numpy.array([score(page) for page in pages])
    effective, mean = most(pages.sum(axis=1), len(samples)), shares.mean()
    variance = between_blocks(shares) + over_time(samples, score, shares)
    if variance > 0:
        effective = min(effective, mean * (1 - mean) / variance)
    weight = Z**2 / max(effective, 1e-12)
    return numpy.clip(sorted(numpy.roots([1 + weight, -2 * mean - weight, mean**2]).real), 0, 1)


def chance(samples):
    """Bounds of the mean of the largest share of *visits*."""
    return bounds(samples, left_out)[0], bounds(samples, largest)[1]


def accesses(low, high, nodes):
    """Bounds of visits as bounds of accesses."""
    low = low / (low + INTENSITY * (1 - low)) - EXCEPTED
    high = high / (high + (1 - high) / INTENSITY) + EXCEPTED
    return max(low, 1 / nodes), min(high, 1)


def of_one_node(samples, slices, nodes):
    """The lower bound where every page was seen from one node alone, in closed form: Wilson's is n / (n + z²)."""
    return max(1 / nodes, (n := most(samples, slices)) / (n + INTENSITY * Z**2) - EXCEPTED)


def share(local, samples, unseen):
    """Bounds of the share of the accesses of which `local` of so many samples are: √n independent samples, what they
    do not see of intensity, and anything of the pages that have none."""
    n = max(math.sqrt(samples), 1e-12)
    weight = Z**2 / n
    low, high = numpy.clip(sorted(numpy.roots([1 + weight, -2 * local - weight, local**2]).real), 0, 1)
    low, high = accesses(min(low, local), max(high, local), math.inf)
    return max(low, 0) * (1 - unseen), high * (1 - unseen) + unseen
