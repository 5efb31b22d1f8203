"""Judges what a paper found by a criterion that was written down before it was measured.

`criteria.csv` has the 54 findings; it is not edited. A reproduction turns each of its rows into a [`Check`]: figures and a
criterion as code. [`judge`] applies it to the median over the repeats, to each repeat, to stand-ins that must fail, and over
the ranges of what the paper leaves open. `verdict.Verdict` is what comes out, one JSON file a row."""

from judge.check import Check, judge, untested
from judge.criteria import CRITERIA, Criterion
from judge.verdict import Verdict

__all__ = ["CRITERIA", "Check", "Criterion", "Verdict", "judge", "untested"]
