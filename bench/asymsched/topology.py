"""What `nodewise topo` says of a machine: routes, and what flows get together."""

import functools
import json

from commands import run
from recordings import NODEWISE

NODES = range(8)


def topo(*options):
    found = run([NODEWISE, "topo", *options])
    return json.loads(found) if "--json" in options else found


@functools.cache
def machine(name="machine-a"):
    return topo("--machine", name, "--json")


@functools.cache
def route(memory, reader, name="machine-a"):
    return next(r for r in machine(name)["routes"] if (r["memory"], r["reader"]) == (memory, reader))


def hops(memory, reader, name="machine-a"):
    return len(route(memory, reader, name)["links"])


def path(memory, reader, name="machine-a"):
    return ">".join(map(str, [memory, *route(memory, reader, name)["via"], reader]))


@functools.cache
def together(flows, name="machine-a"):
    """MB/s of all flows at once, as `topo --flows` writes them."""
    return topo("--machine", name, "--flows", flows, "--json")["total_MBps"]
