"""Builds and records the kernels, and asks `nodewise simulate` what they cost in a placement."""

import json
import os
import pathlib

from commands import ROOT, run
from points import affinity, machine, policy
from programs import program
from reuse import kept
from trials import changed

NODEWISE = pathlib.Path(os.environ.get("NODEWISE", ROOT / "target/release/nodewise"))
FOLDER = ROOT / "build/outside"
FLAGS = ["-std=gnu11", "-O2", "-g", "-mavx2", "-mfma", "-Wall", "-Wextra", "-Werror", "-fopenmp"]
KERNELS = ["scan", "stream", "gemv"]


def build():
    FOLDER.mkdir(parents=True, exist_ok=True)
    for kernel in KERNELS:
        source = ROOT / "bench/outside" / f"{kernel}.c"
        run(["clang-19", *FLAGS, "-o", FOLDER / kernel, source])
        run([NODEWISE.with_name("nodewise-cc"), *FLAGS, "-o", FOLDER / f"{kernel}-recorded", source])


def record(name, threads, reuse):
    """The profile of a program with this number of threads, recorded once; the plain build tells what recording cost."""
    what = program(name, threads)
    key = "-".join(str(part).lstrip("-") for part in (what.kernel, threads, *what.arguments))
    folder = FOLDER / "profiles" / key
    if not (reuse and kept(folder)) and folder not in recorded:
        folder.parent.mkdir(parents=True, exist_ok=True)
        run([NODEWISE, "record", "--force", "--threads", threads, "--plain", FOLDER / what.kernel, "-o", folder, "--",
             FOLDER / f"{what.kernel}-recorded", *what.arguments], OMP_WAIT_POLICY="passive")
    recorded.add(folder)
    return folder


recorded = set()


def without_distance(name):
    """The machine with every memory as near as the local one: where all threads read all data, a copy on each node costs what
    pages dealt over such a machine cost."""
    told = json.loads(run([NODEWISE, "topo", "--machine", machine(name), "--json"]))
    nodes = "\n".join(f"""    {{ cpus = "{','.join(map(str, n['cpus']))}", memory = "1G", bandwidth = {n['bandwidth_MBps']:.0f} }},"""
                      for n in told["nodes"])
    rows = "\n".join(f"    {[told['latency_ns'][i][i]] * len(told['nodes'])}," for i in range(len(told["nodes"])))
    wide = sum(n["bandwidth_MBps"] for n in told["nodes"])
    file = FOLDER / f"{name}-without-distance.toml"
    file.write_text(f'name = "{name}-without-distance"\ntitle = "{name}, no memory remote"\npage_size = "4K"\nnodes = [\n{nodes}\n]\n'
                    f"latency_ns = [\n{rows}\n]\nlinks = [\n"
                    f"    {{ among = {list(range(len(told['nodes'])))}, bandwidth = {wide:.0f} }},\n]\n")
    return file


def predict(point, where, reuse, trial=None):
    """The seconds of the program's parallel regions in a placement: typical, and both ends of the range; `trial`: with what that
    changes."""
    folder = record(point.program, point.threads, reuse)
    if trial and trial.lines:
        folder = changed(folder, trial.lines)
    on, pages = machine(point.machine), policy(where, FOLDER)
    if where.pages == "local" and program(point.program, point.threads).shared:
        on, pages = without_distance(point.machine), "interleave"
    # Ends of two ranges are compared, and must be of the same assumption; that of cores would be an end of each range.
    found = json.loads(run([NODEWISE, "simulate", folder, "--machine", on, "--affinity", affinity(point, where), "--policy", pages,
                            "--core-factor", 1, *(trial.options if trial else ()), "--json"]))
    # first-touch, the baseline, is there too; it comes first or last by its time.
    wanted = [p for p in found["policies"] if (p["policy"] == "first-touch") == (where.pages == "first-touch")]
    regions = [r for r in wanted[0]["regions"] if r["function"]]
    return [sum(r["seconds"] for r in regions), *(sum(r["seconds_range"][end] for r in regions) for end in (0, 1))]
