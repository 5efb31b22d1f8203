"""Recordings of MAI's programs, five each, and what `simulate` predicts from them."""

import json
import os
import pathlib
import subprocess

from commands import ROOT, run
from judge import cores
from reuse import kept

NODEWISE = pathlib.Path(os.environ.get("NODEWISE", ROOT / "target/release/nodewise"))
PLAIN = ROOT / "build/workloads"
RECORDED = ROOT / "build/workloads-recorded"
FOLDER = ROOT / "build/mai"

REPEATS = 5
# As the paper's machines have processors; fewer are neighbours joined.
THREADS = 16
# Nodes and CPUs a node, numbered node by node; the page size of the machine's kernel.
MACHINES = {"mai-opteron-8n": (8, 2), "mai-itanium2-fss": (4, 4)}
PAGES = {"mai-opteron-8n": "4K", "mai-itanium2-fss": "64K"}
NAMES = {"mai-opteron-8n": "Opteron", "mai-itanium2-fss": "Itanium 2"}
# Points on an edge (ictm: cells from west to east) and iterations. `fast`: arrays above what 16 windows of the model hold
# (64 MiB) by a quarter or more. `full`: NAS's class A for mg, the others as near to the paper's 2.0 and 2.4 GB as five recordings
# of each take minutes.
SIZES = {
    "fast": {"mg": (256, 1), "ictm": (3072, 1), "ondes": (96, 3)},
    "full": {"mg": (256, 4), "ictm": (8192, 1), "ondes": (160, 8)},
}
# Who touches the arrays first: one thread (the paper's Linux), or all (its Parallel-Init). mg's is NAS MG's.
INITS = {
    "master": {"mg": "master", "ictm": "master", "ondes": "master"},
    "parallel": {"mg": "nas", "ictm": "parallel", "ondes": "parallel"},
}
# What the paper calls them, and what they are called here. Where bind_all puts pages the programmer says; all nodes named is first
# touch (docs/library/bind-all.md), so that one node is what can differ.
POLICIES = {"cyclic": "cyclic", "skew_mapp": "skew", "prime_mapp": "prime", "bind_all": "node:0", "random": "random"}
# bind_block deals blocks of rows or columns to the threads that use them (3.1), and the paper's library deals rows: mai_bind_rows (3.2).
# In these programs that is what the threads of Parallel-Init touch first. simulate's policy, which does not know rows, cuts an array
# into equal parts of pages.
BY_ROWS, BY_PARTS = "bind_block", "bind_block by parts of pages"
PARTS = "bind-block"
# Not computing: first touch, verification, and what is outside of parallel regions.
APART = ("", "main", "initialise", "norm", "largest_error", "samples_right")


def command(folder, program, init, sizes):
    return [folder / program, "--init", init, "--size", sizes[0], "--iterations", sizes[1]]


def record(program, who, size, number, reuse):
    """A profile with a slice for each parallel region. The plain build runs as well, for its CPU time, which the profile then has."""
    folder = FOLDER / "profiles" / size / f"{program}-{who}" / str(number)
    words = command(RECORDED, program, INITS[who][program], SIZES[size][program])
    found = reuse and kept(folder)
    # A plain run that is too short to sample has no time.
    if found and found["command"] == [str(w) for w in words] and found["plain_cpu_ns"] is not None:
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    run([NODEWISE, "record", "--force", "--threads", THREADS, "--slice", "region", "--plain", PLAIN / program, "-o", folder, "--",
         *words], OMP_WAIT_POLICY="passive")
    return folder


def affinity(machine, threads):
    """As libnodewise and MAI bind: thread t of T on node t N / T, one to a processor."""
    nodes, cpus = MACHINES[machine]
    file = FOLDER / f"{machine}-{threads}.csv"
    used = [0] * nodes
    lines = ["thread,cpu"]
    for thread in range(threads):
        node = thread * nodes // threads
        lines.append(f"{thread},{node * cpus + used[node]}")
        used[node] += 1
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return f"file:{file}"


def simulate(profile, machine, policies, *, threads=THREADS, factor=None, pages=None):
    """By policy, as asked for (`random` is `random:0`), `views` and the local share of the accesses."""
    found = json.loads(run([NODEWISE, "simulate", profile, "--machine", machine, "--cpus", threads, "--affinity",
                            affinity(machine, threads), "--page-size", pages or PAGES[machine], "--policy", ",".join(policies),
                            "--core-factor", factor or cores.factor(machine), "--json"]))["policies"]
    by_name = {p: next(f for f in found if f["policy"].split(":")[0] == p.split(":")[0]) for p in policies}
    return {p: {"seconds": views(f), "local": f["local_fraction"]} for p, f in by_name.items()}


def views(policy):
    """Seconds: of what computes (typical, and least and most over the model's scenarios), and of the whole run."""
    parts = [r for r in policy["regions"] if r["function"] not in APART]
    low, high = (sum(r["seconds_range"][end] for r in parts) for end in (0, 1))
    return {"typical": sum(r["seconds"] for r in parts), "least": low, "most": high, "whole run": policy["seconds"]}


def verified():
    """Both ways to initialise print the same."""
    for program in SIZES["fast"]:
        lines = {subprocess.run([PLAIN / program, "--size", "small", "--init", INITS[who][program]], check=True, capture_output=True,
                                text=True).stdout for who in INITS}
        if len(lines) != 1:
            raise SystemExit(f"reproduce-mai: {program} prints {lines}")
