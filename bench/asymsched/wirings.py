"""Routes of machine A that are consistent with Table 1 and with what section 1 says of its links.

A pair of nodes without a link goes over a third that has links from the one and to the other. Table 1's rows of two hops determine
eight of the twenty such routes; the others may be any that keep the text's statements: the link between 2 and 3 is used by nodes 0,
1, 2, 3, 6 and 7, that between 3 and 4 by these two alone."""

import itertools

import tomllib

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


def line(routes):
    return " ".join(f"{a}-{b}:{via}" for (a, b), via in routes.items())
