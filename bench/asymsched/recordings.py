"""Five recordings of each program, with as many threads as they have CPUs, and what `simulate` says of them."""

import functools
import hashlib
import json
import os
import pathlib

from commands import run
from judge import cores
from programs import PROGRAMS, REPEATS, THREADS
from reuse import kept

ROOT = pathlib.Path(__file__).resolve().parents[2]
NODEWISE = os.environ.get("NODEWISE", ROOT / "target/release/nodewise")
FOLDER = ROOT / "build/asymsched"
SIMULATED = FOLDER / "simulated"
RECORDED, PLAIN = ROOT / "build/workloads-recorded", ROOT / "build/workloads"
MACHINE = "machine-a"
# What the paper's own mover needs, the copy included (Table 5: 3.05 s for is.D's 20 GB, 1.5 s for SPECjbb's 10 GB).
PRICE = 0.15


class Recordings:
    """Of one run of the reproduction, which has a size; `keep` takes recordings that are there."""

    def __init__(self, size, keep):
        self.size, self.keep, self.done = size, keep, set()

    def record(self, name, threads, repeat):
        program, folder = PROGRAMS[name], FOLDER / self.size / f"{name}-{threads}-{repeat}"
        if folder in self.done or (self.keep and (kept(folder) or {}).get("plain_cpu_ns")):
            return folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        run([NODEWISE, "record", "--force", "--threads", threads, "--slice", f"accesses:{program.slice}", "--plain", PLAIN / name,
             "-o", folder, "--", RECORDED / name, "--init", program.init, "--size", program.size,
             "--iterations", program.iterations[self.size]], OMP_WAIT_POLICY="passive")
        self.done.add(folder)
        return folder

    def simulate(self, name, threads, repeat, *options, machine=MACHINE):
        """`simulate --affinity asym` of one recording, as JSON."""
        return simulate([self.record(name, threads, repeat)], "--affinity", "asym", "--policy", "first-touch", *options, machine=machine)

    def moved(self, workload, repeat, *options):
        """`simulate --move-threads` of programs at once, each on its number of nodes."""
        folders = [self.record(name, THREADS * nodes, repeat) for name, nodes in workload.items()]
        price = () if "--migration-cost" in options else ("--migration-cost", PRICE)
        return simulate(folders, "--affinity", "asym", "--move-threads", "--policy", "balance:carrefour", "--migrate-budget", "none",
                        *price, *options)

    def all(self):
        """Records everything, so that it is there."""
        return [self.record(name, threads, repeat) for name, threads in wanted(self.size) for repeat in range(REPEATS)]


def simulate(folders, *options, machine=MACHINE):
    """The document; from `SIMULATED`, if the same program said it of the same recordings before, as a whole run takes hours."""
    given = [*options]
    if "--core-factor" not in given:
        given += ["--core-factor", cores.factor(cores_of(machine))]
    command = list(map(str, ["simulate", *folders, "--machine", machine, *given, "--json"]))
    files = [NODEWISE, *(folder / "manifest.json" for folder in folders)] + [machine] * pathlib.Path(machine).is_file()
    asked = json.dumps([command, list(map(digest, files))])
    kept = SIMULATED / f"{hashlib.sha256(asked.encode()).hexdigest()}.json"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        said = run([NODEWISE, *command])
        whole_only = kept.with_suffix(f".{os.getpid()}")
        whole_only.write_text(said, encoding="utf-8")
        whole_only.replace(kept)
    return json.loads(kept.read_text(encoding="utf-8"))


@functools.cache
def digest(file):
    return hashlib.sha256(pathlib.Path(file).read_bytes()).hexdigest()


def cores_of(machine):
    """The machine's name in judge/cores.csv; a file is called after it."""
    return pathlib.Path(machine).stem if str(machine).endswith(".toml") else machine


def wanted(size):
    """(program, threads) of all parts: two nodes for Tables 1 and 3, three for Figures 2 to 5, five for Table 2, sets for Figure 6."""
    from programs import CLUSTERING, WORKLOADS
    three = [(name, 3 * THREADS) for name in PROGRAMS]
    several = [(name, THREADS * nodes) for workload in WORKLOADS[size] for name, nodes in workload.items()]
    return list(dict.fromkeys([(CLUSTERING, 2 * THREADS), (CLUSTERING, 5 * THREADS), *three, *several]))
