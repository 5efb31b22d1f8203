"""A row of this reproduction before it is judged."""

from dataclasses import dataclass

from judge import Check


@dataclass(frozen=True)
class Row:
    """`looked_at` and `tests` are of one that does not hold."""

    check: Check
    repeats: list
    ranges: list
    differs: str
    looked_at: str = ""
    tests: tuple = ()
