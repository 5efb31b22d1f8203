"""Recordings of the programs with as many threads as they have CPUs, and what `simulate` predicts of them."""

import json

from commands import run
from nodewise import NODEWISE, ROOT
from programs import PROGRAMS, THREADS

FOLDER = ROOT / "build/asymsched"
RECORDED = ROOT / "build/workloads-recorded"
DYNAMIC = "balance:carrefour"
# Moving a page costs what the paper's own mover needs (Table 5: 3.05 s for is.D's 20 GB, 1.5 s for SPECjbb's 10 GB);
# its dynamic migration has no budget.
OPTIONS = ("--machine", "machine-a", "--policy", f"first-touch,{DYNAMIC}", "--migration-cost", "0.15", "--migrate-budget", "none")
# Whether recordings that are there are kept.
keep = False


done_now = set()


def record(name, threads):
    row, folder = PROGRAMS[name], FOLDER / "profiles" / f"{name}-{threads}"
    if folder in done_now or (keep and (folder / "manifest.json").exists()):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    run([NODEWISE, "record", "--force", "--threads", threads, "--slice", f"accesses:{row.slice}", "-o", folder, "--",
         RECORDED / name, "--init", row.init, "--size", row.size, "--iterations", row.iterations], OMP_WAIT_POLICY="passive")
    done_now.add(folder)
    return folder


def alone(name, nodes):
    """`choice` of the program on so many nodes, and how large it is."""
    return json.loads(run([NODEWISE, "simulate", record(name, THREADS * nodes), "--affinity", "asym", *OPTIONS, "--json"]))


def at_once(workload):
    folders = [record(name, THREADS * nodes) for name, nodes in workload.items()]
    return json.loads(run([NODEWISE, "simulate", *folders, "--affinity", "asym", "--repeat", *OPTIONS, "--json"]))
