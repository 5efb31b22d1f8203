"""What the paper leaves open, as chosen here, and what else was tried."""

from dataclasses import dataclass, replace

from slices import allocated


@dataclass(frozen=True)
class Choice:
    """One setting of everything that the paper does not give."""

    accesses: int = 20_000  # to shared data, between decisions
    half_life: int = 8  # intervals after which what was counted counts half
    threshold: float = 2.0  # times the average: the paper's
    least: float = 2.0  # a page is judged from so many times an average page's accesses on: the paper's constant
    against: str = "page"  # whose average Out-U and Out-W compare with: the page's own, or all pages' of its home
    difference: bool = False  # "the difference between … and the average exceeds" twice the average, taken literally
    window: int = 8  # pages to each side whose accesses count too: Out-W, In-W
    weight: str = "linear"


CHOSEN = Choice()
KNOBS = {
    "slice": {n: replace(CHOSEN, accesses=n) for n in (5_000, 10_000, 20_000, 40_000, 80_000)},
    "half-life": {h: replace(CHOSEN, half_life=h) for h in (1, 2, 4, 8, 16)},
    "threshold": {t: replace(CHOSEN, threshold=t) for t in (1.5, 2.0, 2.5)},
    "least accesses": {k: replace(CHOSEN, least=k) for k in (0.0, 0.5, 1.0, 2.0, 3.0)},
    "window": {w: replace(CHOSEN, window=w) for w in (1, 4, 8, 16, 32)},
    "reading": {"chosen": CHOSEN, "page": replace(CHOSEN, least=0.0), "all": replace(CHOSEN, against="all", least=0.0),
                "all, from the constant on": replace(CHOSEN, against="all"),
                "difference": replace(CHOSEN, difference=True, least=0.0),
                "difference, from the constant on": replace(CHOSEN, difference=True)},
    "weight": {w: replace(CHOSEN, weight=w) for w in ("linear", "uniform")},
}


# max - average > 2 * average as multiples of what the policies take: over all four nodes, of which a home does not see
# its own, the average is three quarters of the remote nodes'; In-W's is over pages.
DIFFERENCE = {"out-u": 2.25, "out-w": 2.25, "in-w": 3.0}


def policy_text(policy, choice):
    """As `simulate` takes it."""
    text = f"balance:{policy}"
    if policy.startswith(("out-", "in-")):
        text += f":threshold={DIFFERENCE.get(policy, 2.0) if choice.difference else choice.threshold:g}"
    if "-w" in policy:
        text += f":window={choice.window}:weight={choice.weight}"
    if policy in ("out-u", "out-w") and choice.against != "page":
        text += f":against={choice.against}"
    return text


def options(folder, choice):
    """Of `simulate`. The paper's threshold is constant and has no budget.

    Nothing here is known only afterwards: how long an interval is, how many are remembered (counts that halve every h
    intervals hold h to 2 h of them, 1.5 h on average), and how many pages the program has allocated when it begins to
    compute, over which these accesses are spread."""
    remembered = 1.5 * choice.half_life
    least = choice.least * choice.accesses * remembered / allocated(folder)
    return {"half-life": choice.half_life, "budget": "none", "minimum-samples": max(round(least), 1)}
