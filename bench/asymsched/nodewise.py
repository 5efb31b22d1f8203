"""What `nodewise topo` says of a machine: routes, and what flows get together."""

import functools
import json
import os
import pathlib
import subprocess

from built import built

ROOT = pathlib.Path(__file__).resolve().parents[2]
NODEWISE = os.environ.get("NODEWISE", ROOT / "target/release/nodewise")
NODES = range(8)


def topo(*options):
    found = subprocess.run([NODEWISE, "topo", *options], check=True, capture_output=True, text=True)
    return json.loads(found.stdout) if "--json" in options else found.stdout


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


@functools.cache
def simulated(name="machine-a"):
    """Seconds of the simulator for a program that streams from one node's memory, by (master, other)."""
    command = [built("nodewise-simulation", "two_nodes"), name]
    lines = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()[1:]
    return {(int(m), int(o)): float(s) for m, o, s in (line.split(",") for line in lines)}
