"""Recordings of the programs, and what `simulate` makes of policies on them."""

import json
import os
import pathlib
import shutil

from choices import MACHINE, options, policy_text
from commands import ROOT, run
from programs import ALGORITHMS, CHANGES, COUNTS, OTHERS, PROGRAMS, START, STATIC
from reuse import kept
from slices import allocated, cut, remote_to_used

NODEWISE = pathlib.Path(os.environ.get("NODEWISE", ROOT / "target/release/nodewise"))
PLAIN = ROOT / "build/workloads"
FOLDER = ROOT / "build/ars"
THREADS = 4
# Recordings of each program.
TAKES = range(5)
ROWS = {**PROGRAMS, **CHANGES}
# Accesses after which the next thread has its turn, while recording.
TURN = 500


def record(program, take, reuse=False):
    """Every access of the program, emulated. Its threads share one CPU: whoever ends a slice sleeps until it is
    taken, and the next goes on. Who is next is the kernel's choice, so that no two takes are quite the same."""
    row, folder = ROWS[program], FOLDER / "recordings" / f"{program}-{take}"
    if reuse and kept(folder):
        return folder
    for old in (FOLDER / "profiles").glob(f"{program}-{take}-*"):
        shutil.rmtree(old)
    folder.parent.mkdir(parents=True, exist_ok=True)
    run([NODEWISE, "record", "--via", "emulate", "--force", "--threads", THREADS, "--slice", f"accesses:{TURN}", "-o", folder,
         "--", PLAIN / row.file, *row.arguments],
        OMP_WAIT_POLICY="passive", OMP_PLACES="{0}", OMP_PROC_BIND="true")
    return folder


def profile(program, interval, take):
    """The program's computation in slices of so many accesses."""
    folder = FOLDER / "profiles" / f"{program}-{take}-{interval}"
    if not (folder / "manifest.json").exists():
        cut(FOLDER / "recordings" / f"{program}-{take}", folder, ROWS[program].computes, interval)
    return folder


def key(program, take, choice, ratio):
    """Settings that agree in this run in one call: they differ in policies' names only."""
    return (choice.interval, ratio, *options(choice, allocated(profile(program, choice.interval, take))).values())


def simulate(program, take, choices, ratio):
    """Setting → policy → figures; the settings agree in their `key`. Pages are dealt round-robin at the start."""
    folder = profile(program, choices[0].interval, take)
    plain = [START, STATIC, *OTHERS.values()]
    written = {choice: {p: policy_text(p, choice, lambda: remote_to_used(folder)) for p in ALGORITHMS.values()} for choice in choices}
    texts = dict.fromkeys([*plain, *(text for by_policy in written.values() for text in by_policy.values())])
    more = [text for name, value in options(choices[0], allocated(folder)).items() for text in (f"--{name}", value)]
    found = json.loads(run([NODEWISE, "simulate", folder, "--machine", MACHINE, "--affinity", "identity", "--start", START,
                            "--policy", ",".join(texts), "--latency-ratio", ratio, "--moves", "--json", *more]))
    by_text = {p["policy"]: figures(p) for p in found["policies"]}
    return {choice: {**{p: by_text[p] for p in plain}, **{p: by_text[text] for p, text in by_policy.items()}}
            for choice, by_policy in written.items()}


def figures(found):
    """What is judged or drawn of a policy."""
    return {**{count: found[count] for count in COUNTS}, "seconds": found["seconds"], "local": found["local_fraction"],
            "scenarios": {f"{s['varied']} {s['value']:g}": s["seconds"] for s in found["scenarios"] if s["value"] is not None},
            "locals": [s["local_fraction"] for s in found["slices"]],
            # (slice, page, where to, whether its home used it most)
            "moves": [(m["slice"], m["page"], m["to"], m["incorrect"]) for m in found.get("moves", ())]}
