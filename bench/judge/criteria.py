"""The findings of the five papers with the criteria they are judged by."""

import csv
import pathlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Criterion:
    """One row of criteria.csv, word for word."""

    id: str
    paper: str
    place: str  # in the paper's text
    claim: str
    measure: str  # what is computed here
    holds: str  # when


def read():
    with open(pathlib.Path(__file__).with_name("criteria.csv"), encoding="utf-8") as file:
        return {row["id"]: Criterion(**row) for row in csv.DictReader(file)}


CRITERIA = read()
