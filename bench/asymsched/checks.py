"""Findings of the paper as checks, and tables in Markdown."""

from dataclasses import dataclass

from web import Finding


@dataclass
class Check(Finding):
    """A finding that is known to hold, or known not to: either may change, and is told then."""

    expected: bool = True

    @property
    def as_expected(self):
        return self.holds == self.expected


def table(heads, rows, left=1):
    """Columns from `left` on are numbers."""
    rule = [":--" if i < left else "--:" for i in range(len(heads))]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in [heads, rule, *rows]) + "\n"


def percent(share):
    """With its sign."""
    return f"{100 * share:+.0f} %".replace("-", "−")
