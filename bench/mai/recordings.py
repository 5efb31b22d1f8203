"""Recordings of MAI's programs, calibrated by plain runs, and what `simulate` predicts from them."""

import json
import os
import pathlib
import resource

from commands import ROOT, run

NODEWISE = pathlib.Path(os.environ.get("NODEWISE", ROOT / "target/release/nodewise"))
PLAIN = ROOT / "build/workloads"
RECORDED = ROOT / "build/workloads-recorded"
FOLDER = ROOT / "build/mai"

# Recorded with as many threads as the paper's machines have processors; fewer are neighbours joined.
RECORDED_THREADS = 16
# Nodes and CPUs a node, numbered node by node.
MACHINES = {"mai-opteron-8n": (8, 2), "mai-itanium2-fss": (4, 4)}
# Size and iterations of each program, and of a quick look. The paper: 256^3, 2.0 GB, 2.4 GB.
SIZES = {"mg": (256, 4), "ictm": (8192, 1), "ondes": (160, 8)}
QUICK = {"mg": (256, 4), "ictm": (4096, 1), "ondes": (96, 5)}
# How much longer the paper's cores compute than this host's; the model otherwise takes them to be as
# fast. See docs/reproduce-mai.md.
SLOWER = 4


def command(folder, program, init, sizes):
    return [folder / program, "--init", init, "--size", sizes[0], "--iterations", sizes[1]]


def plain_seconds(program, init, sizes):
    """CPU time of the plain program with one thread: the least of three runs."""
    def spent():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    def once():
        before = spent()
        run(command(PLAIN, program, init, sizes), OMP_NUM_THREADS="1")
        return spent() - before
    return min(once() for _ in range(3))


def record(program, init, sizes, reuse):
    """The profile, a slice for each parallel region, with a plain run's CPU time beside it."""
    folder = FOLDER / "profiles" / f"{program}-{init}-{sizes[0]}-{sizes[1]}"
    if reuse and (folder / "manifest.json").exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    run([NODEWISE, "record", "--force", "--slice", "region", "-o", folder, "--",
         *command(RECORDED, program, init, sizes)], OMP_NUM_THREADS=str(RECORDED_THREADS), OMP_WAIT_POLICY="passive")
    calibration(folder).write_text(f"{plain_seconds(program, init, sizes)}\n")
    return folder


def calibration(folder):
    """CPU seconds of the plain program: with a slice a region, recording's own cost cannot be assumed."""
    return folder.with_suffix(".plain")


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
    file.write_text("\n".join(lines) + "\n")
    return f"file:{file}"


def predictions(profile, machine, threads, policies, slower=SLOWER):
    """By policy, as asked for: `random` is `random:0`. Cores are `slower` than this host's."""
    plain = slower * float(calibration(profile).read_text())
    found = json.loads(run([NODEWISE, "simulate", profile, "--machine", machine, "--threads", threads, "--affinity",
                            affinity(machine, threads), "--policy", ",".join(policies), "--plain-cpu", plain,
                            "--json"]))["policies"]
    return {p: next(f for f in found if f["policy"].split(":")[0] == p) for p in policies}
