"""Recordings of the programs, and what `simulate` makes of policies on them."""

import json
import os
import pathlib

from commands import ROOT, run
from programs import PROGRAMS
from slices import cut

NODEWISE = pathlib.Path(os.environ.get("NODEWISE", ROOT / "target/release/nodewise"))
PLAIN = ROOT / "build/workloads"
FOLDER = ROOT / "build/ars"
THREADS = 4
MACHINE = "sci-cluster-4"
# "Allocates shared data cyclically over all nodes", the paper's round-robin: by page number, whoever is first.
START = "interleave"
# Recordings of each program.
TAKES = range(3)
# Accesses after which the next thread has its turn, while recording.
TURN = 500


def record(program, take, reuse=False):
    """Every access of the program, emulated. Its threads share one CPU: whoever ends a slice sleeps until it is
    taken, and the next goes on. Who is next is the kernel's choice, so that no two takes are quite the same."""
    row, folder = PROGRAMS[program], FOLDER / "recordings" / f"{program}-{take}"
    if reuse and (folder / "manifest.json").exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    run([NODEWISE, "record", "--via", "emulate", "--force", "--threads", THREADS, "--slice", f"accesses:{TURN}", "-o", folder,
         "--", PLAIN / row.file, *row.arguments],
        OMP_WAIT_POLICY="passive", OMP_PLACES="{0}", OMP_PROC_BIND="true")
    return folder


def profile(program, accesses, take=0):
    """The program's computation in slices of so many accesses."""
    folder = FOLDER / "profiles" / f"{program}-{take}-{accesses}"
    if not (folder / "manifest.json").exists():
        cut(FOLDER / "recordings" / f"{program}-{take}", folder, PROGRAMS[program].computes, accesses)
    return folder


def simulate(folder, policies, ratio, settings):
    """By policy as written, from pages dealt round-robin, every access a transfer of its own."""
    options = [text for key, value in settings.items() for text in (f"--{key}", value)]
    found = json.loads(run([NODEWISE, "simulate", folder, "--machine", MACHINE, "--affinity", "identity", "--start",
                            START, "--policy", ",".join(policies), "--latency-ratio", ratio, "--traffic",
                            "accesses", *options, "--json"]))
    return {p["policy"]: p for p in found["policies"]}
