"""What the paper leaves open, as chosen here, and what else was tried."""

from dataclasses import dataclass, replace

from slices import size


@dataclass(frozen=True)
class Choice:
    """One setting of everything that the paper does not give."""

    accesses: int = 20_000  # to shared data, between decisions
    half_life: int = 8  # intervals after which what was counted counts half
    threshold: float = 2.0  # times the average: the paper's
    least: float = 2.0  # a page is judged from so many times the average of all pages' accesses on: the paper's constant
    window: int = 8  # pages to each side whose accesses count too: Out-W, In-W
    weight: str = "linear"


CHOSEN = Choice()
KNOBS = {
    "slice": {n: replace(CHOSEN, accesses=n) for n in (5_000, 10_000, 20_000, 40_000, 80_000)},
    "half-life": {h: replace(CHOSEN, half_life=h) for h in (1, 2, 4, 8, 16)},
    "threshold": {t: replace(CHOSEN, threshold=t) for t in (1.5, 2.0, 2.5)},
    "least accesses": {k: replace(CHOSEN, least=k) for k in (0.0, 0.5, 1.0, 2.0, 3.0)},
    "window": {w: replace(CHOSEN, window=w) for w in (1, 4, 8, 16, 32)},
    "weight": {w: replace(CHOSEN, weight=w) for w in ("linear", "uniform")},
}


def policy_text(policy, choice):
    """As `simulate` takes it."""
    text = f"balance:{policy}"
    if policy.startswith(("out-", "in-")):
        text += f":threshold={choice.threshold:g}"
    if "-w" in policy:
        text += f":window={choice.window}:weight={choice.weight}"
    return text


def options(folder, choice):
    """Of `simulate`. The paper's threshold is constant and has no budget.

    Counts that halve every h intervals hold h to 2 h of them, 1.5 h on average."""
    pages, accesses, slices = size(folder)
    remembered = min(slices, 1.5 * choice.half_life or slices / 2)
    least = choice.least * accesses / slices * remembered / pages
    return {"half-life": choice.half_life, "budget": "none", "minimum-samples": round(least)}
