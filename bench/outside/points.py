"""The points: what was measured where, and how the placements are written for `nodewise simulate`."""

import csv
import pathlib
from dataclasses import dataclass

HERE = pathlib.Path(__file__).parent

# A map without rules: all pages go where its default says.
MAP = """format = 1
policy = "{policy}"
machine = ""
program = ""
nodes = {nodes}
threads = 0
page_size = 4096
default = "interleave {turns}"

[kept]
mapping_local = 0.0
rules_local = 0.0
transferable_local = 0.0

[binding]
name = ""
cpus = []
nodes = []
"""


@dataclass(frozen=True)
class Placement:
    """Nodes of the threads (none: all), and where the pages are."""

    nodes: tuple
    pages: str


@dataclass(frozen=True)
class Point:
    id: str
    project: str  # what publishes it: points of one are calibrated together
    machine: str
    program: str
    threads: int
    placement: Placement
    reference: Placement
    measured: float  # run time over that of the reference


def placement(text):
    """`cpus=0,1 pages=node:0`, as README.md explains it."""
    fields = dict(field.split("=") for field in text.split())
    nodes = () if fields["cpus"] == "all" else tuple(int(n) for n in fields["cpus"].split(","))
    return Placement(nodes, fields["pages"])


def points():
    """All rows of points.csv, in their order."""
    with open(HERE / "points.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = []
    for row in rows:
        here, there = (placement(part) for part in row["placement"].split(" / "))
        found.append(Point(row["id"], row["source"].split(",")[0], row["machine"], row["program"], int(row["threads"]), here,
                           there, float(row["value"])))
    return found


def machine(name):
    return HERE / "machines" / f"{name}.toml"


def affinity(point, where):
    """Threads in equal parts on the nodes of a placement, each node's CPUs from the first on."""
    if not where.nodes:
        return "compact"
    each = point.threads // len(where.nodes)
    return "likwid:" + "@".join(f"M{node}:0-{each - 1}" for node in where.nodes)


def policy(where, folder):
    """The page policy of a placement; weights are a map's."""
    if where.pages == "local":
        return "locality"
    if ":" in where.pages and not where.pages.startswith("node:"):
        weights = [int(w) for w in where.pages.split(":")]
        turns = ",".join(str(node) for node, weight in enumerate(weights) for _ in range(weight))
        file = folder / f"weights-{'-'.join(map(str, weights))}.map"
        file.write_text(MAP.format(policy=where.pages, nodes=len(weights), turns=turns))
        return f"map:{file}"
    return where.pages
