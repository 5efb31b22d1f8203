"""Recording the workloads, and asking nodewise about the recordings."""

import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
NODEWISE = ROOT / "target/release/nodewise"
RECORDED = ROOT / "build/workloads-recorded"
FOLDER = ROOT / "build/diener"

THREADS = 64
THRESHOLDS = ["0.5", "0.6", "0.7", "0.8", "0.9", "0.99"]
POLICIES = ["first-touch", "random", "interleave", "locality", "balanced", "mixed"]

# Size, iterations, and accesses a slice. Arrays are large because a 2 MiB page is shared by threads
# whose parts are smaller; a slice is about one iteration, since the paper's second held several.
SIZES = {
    "sor": (8192, 6, 600_000_000),
    "cg": (3_200_000, 5, 450_000_000),
    "adi": (400, 4, 2_600_000_000),
    "fft3d": (256, 2, 2_400_000_000),
    "kmedian": (262_144, 1, 2_000_000_000),
    "bfs": (1_000_000, 8, 60_000_000),
    "shift": (96_000_000, 10, 100_000_000),
}
# As most OpenMP codes do, and as their authors would like to: the master initialises, or all do.
PROGRAMS = [f"{name}{suffix}" for name in SIZES for suffix in ("", "+")]


def command(program):
    size, iterations, _ = SIZES[program.rstrip("+")]
    init = "parallel" if program.endswith("+") else "master"
    return [str(RECORDED / program.rstrip("+")), "--init", init, "--size", str(size), "--iterations", str(iterations)]


def record(program, reuse):
    """The profile of a program with 64 threads, in slices of equal numbers of accesses."""
    folder = FOLDER / "profiles" / program.replace("+", "-parallel")
    if reuse and (folder / "manifest.json").exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    slices = f"accesses:{SIZES[program.rstrip('+')][2]}"
    environment = dict(os.environ, OMP_NUM_THREADS=str(THREADS))
    recording = [NODEWISE, "record", "--force", "--slice", slices, "-o", folder, "--", *command(program)]
    subprocess.run(recording, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return folder


def ask(*arguments):
    done = subprocess.run([NODEWISE, *map(str, arguments), "--json"], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def report(profile, machine, page_size, affinity):
    return ask("report", profile, "--machine", machine, "--page-size", page_size, "--affinity", affinity,
               "--policy", ",".join(POLICIES))


def simulate(profile, machine, page_size, min_exclusivity, threads):
    """Predictions by policy; the mixed policy under its own name whatever its threshold."""
    policies = ",".join(POLICIES[:-1] + [f"mixed:{min_exclusivity}"])
    found = ask("simulate", profile, "--machine", machine, "--page-size", page_size, "--threads", threads,
                "--affinity", "sharing-aware", "--policy", policies)
    return {plain(p["policy"]): p for p in found["policies"]}


def thresholds(profile, machine, page_size, threads):
    """Speed-up of mixed by its threshold."""
    policies = ",".join(f"mixed:{t}" for t in THRESHOLDS)
    found = ask("simulate", profile, "--machine", machine, "--page-size", page_size, "--threads", threads,
                "--affinity", "sharing-aware", "--policy", policies)
    speedups = {p["policy"]: p["speedup"] for p in found["policies"]}
    return {t: speedups[f"mixed:{t}"] for t in THRESHOLDS}


def plain(policy):
    """`mixed:0.9` is mixed, `random:0` is random."""
    return policy.split(":")[0]


def many_nodes(count):
    """A machine with one CPU a node: the paper's way to see an application's inherent exclusivity."""
    file = FOLDER / f"nodes-{count}.toml"
    rows = ",\n    ".join(str([100 if a == b else 200 for a in range(count)]) for b in range(count))
    even = ",\n    ".join([str([10000] * count)] * count)
    nodes = "\n".join(f'    {{ cpus = "{n}", memory = "4G", bandwidth = 10000 }},' for n in range(count))
    text = f"""name = "nodes-{count}"
title = "{count} nodes of one CPU, all alike"
page_size = "4K"
nodes = [
{nodes}
]
latency_ns = [
    {rows}
]
bandwidth = [
    {even}
]
[assumed]
nodes = "no real machine: one CPU a node shows what each thread has for itself"
bandwidth = "no interconnect to wait for: nothing is read off it"
latency_ns = "any remote latency serves: only exclusivity is read off this machine"
"""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file
