"""Routes of machine A that are consistent with Table 1 and with what section 1 says of its links.

A pair of nodes without a link goes over a third that has links from the one and to the other. Table 1's rows of two hops determine
eight of the twenty such routes; the others may be any that keep the text's statements: the link between 2 and 3 is used by nodes 0,
1, 2, 3, 6 and 7, that between 3 and 4 by these two alone."""

import functools
import itertools
import random
import re

import tomllib
from judge.check import Range
from programs import REPEATS
from recordings import FOLDER, ROOT

MACHINE = ROOT / "machines/machine-a.toml"

FIXED = {(3, 0), (0, 3), (0, 7), (7, 0), (3, 7), (5, 1), (7, 2), (1, 4)}  # rows 5 to 8, 10, 11, 13 and 16, by memory and reader
USERS = {frozenset({2, 3}): {0, 1, 2, 3, 6, 7}, frozenset({3, 4}): {3, 4}}


def machine(file):
    with open(file, "rb") as text:
        return tomllib.load(text)


def choices(described):
    """For each pair that is two hops apart the nodes that it could go over."""
    links = {(link["from"], link["to"]) for link in described["links"]}
    nodes = range(len(described["nodes"]))
    found = {}
    for route in described["routes"]:
        pair = (route["from"], route["to"])
        found[pair] = route["via"] if pair in FIXED else [k for k in nodes if (pair[0], k) in links and (k, pair[1]) in links]
    return found


def users(links, routes, ends):
    """The nodes whose traffic crosses the links between two nodes, either way."""
    found = {n for link in links if set(link) == ends for n in link}
    for (memory, reader), via in routes.items():
        if {memory, via} == ends or {via, reader} == ends:
            found |= {memory, reader}
    return found


def consistent(file):
    """Every wiring as (pair → via)."""
    described = machine(file)
    links = {(link["from"], link["to"]) for link in described["links"]}
    found = choices(described)
    for over in itertools.product(*found.values()):
        routes = dict(zip(found, over))
        if all(users(links, routes, ends) == wanted for ends, wanted in USERS.items()):
            yield routes


# Of the 31,104 consistent wirings those that rows about times are tried on; drawn with one seed, before any was tried.
SAMPLED = {"full": 10, "fast": 3}
SOURCE = ("section 1 and Table 1 leave twelve routes of two hops open: machine-a's, and wirings drawn from the 31,104 that are consistent "
          "(bench/asymsched/wirings.py)")


@functools.cache
def sample(file, folder, size):
    """By number: files of the machine with other wirings. Each is called as the machine is, which its cores are known by."""
    text, found = file.read_text(encoding="utf-8"), list(consistent(file))
    files = {}
    for number in sorted(random.Random(0).sample(range(len(found)), SAMPLED[size])):
        routes = found[number]

        def over(way, routes=routes):
            return f"{way[1]}{routes[int(way[2]), int(way[3])]}]"
        wired = folder / f"wiring-{number}" / file.name
        wired.parent.mkdir(parents=True, exist_ok=True)
        wired.write_text(re.sub(r"(\{ from = (\d+), to = (\d+), via = \[)\d+\]", over, text), encoding="utf-8")
        assert {(r["from"], r["to"]): r["via"][0] for r in machine(wired)["routes"]} == routes
        files[str(number)] = wired
    return files


def ranged(size, here, at):
    """What a row's data are on machine A as it is described (`here`, by repeat), and on the wirings: `at(repeat, file)`."""
    others = {number: [at(r, file) for r in range(REPEATS)] for number, file in sample(MACHINE, FOLDER, size).items()}
    return Range("wiring", SOURCE, {"machine-a's": here, **others})


def line(routes):
    return " ".join(f"{a}-{b}:{via}" for (a, b), via in routes.items())
