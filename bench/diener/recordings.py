"""Recording the programs in slices of one outer iteration, and asking nodewise about the recordings."""

import json
import pathlib
import shutil
import subprocess
from dataclasses import dataclass

import slices
from programs import PROGRAMS
from reuse import kept

ROOT = pathlib.Path(__file__).resolve().parents[2]
NODEWISE = ROOT / "target/release/nodewise"
FOLDER = ROOT / "build/diener"

THREADS = 64
REPEATS = 5
# Recordings that show what an iteration is: its first region, and its accesses, which the longer one has more. bt, lu, sp and sor
# look at their error after 1, 2, 4, 8, … iterations, so that the third has nothing else in it.
SHORT, LONGER = 2, 3


@dataclass(frozen=True)
class Iteration:
    """An outer one of a program: where it begins (None: each region is one), and its accesses."""

    begins: slices.Loop | None
    accesses: int


def say(text):
    print(f"reproduce-diener: {text}", flush=True)


def folder(program, size, name):
    return FOLDER / "profiles" / size / program / str(name)


def record(program, size, name, *, iterations=None, plain=False, iteration=None, reuse=False, parallel=None):
    """A profile, whose folder is returned: in slices of regions, or of outer iterations where `iteration` says what that is.
    With `reuse` one that is there and was recorded alike. `parallel`: who initialises, if not who does in the original."""
    where = folder(program, size, name)
    command = [f"build/workloads-recorded/{program}", *PROGRAMS[program].options(size, iterations, parallel)]
    if reuse and recorded_alike(where, command, plain):
        return where
    joined = iteration is not None and iteration.begins is not None
    raw = where.with_name(f"{where.name}-regions") if joined else where
    raw.parent.mkdir(parents=True, exist_ok=True)
    extra = ["--plain", f"build/workloads/{program}"] if plain else []
    run("record", "--force", "--threads", THREADS, "--slice", "region", *extra, "-o", raw, "--", *command)
    if joined:
        slices.join(raw, where, iteration.begins)
        shutil.rmtree(raw)
    return where


def run(*arguments):
    """What nodewise prints; ends the program if it fails."""
    done = subprocess.run([str(NODEWISE), *map(str, arguments)], check=False, cwd=ROOT, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"reproduce-diener: nodewise {' '.join(map(str, arguments))}: status {done.returncode}\n{done.stderr}")
    return done.stdout


def manifest(profile):
    return json.loads((profile / "manifest.json").read_text(encoding="utf-8"))


def recorded_alike(where, command, plain):
    found = kept(where)
    if found is None or (plain and found["plain_cpu_ns"] is None):
        return False
    return found["command"] == command and found["slicing"] == "region"


def measure(program, size, reuse):
    """What an outer iteration is."""
    profiles = [record(program, size, f"{n}-iterations", iterations=n, reuse=reuse) for n in (SHORT, LONGER)]
    totals = [total(profile) for profile in profiles]
    return Iteration(slices.loop(*profiles, SHORT), totals[1] - totals[0])


def total(profile):
    """Of all accesses in a profile."""
    return report(profile, "xeon-x7550", "4K", "identity")["totals"]["accesses"]


def ask(*arguments):
    return json.loads(run(*arguments, "--json"))


def report(profile, machine, page_size, affinity, policies=("first-touch",)):
    return ask("report", profile, "--machine", machine, "--page-size", page_size, "--affinity", affinity,
               "--policy", ",".join(policies))


def simulate(profile, machine, policies, factor, plain_ns):
    """The predicted policies by name, of threads placed by what they share. `plain_ns`: CPU time of a plain run, or None."""
    known = ["--plain-cpu", f"{plain_ns}ns"] if plain_ns else []
    found = ask("simulate", profile, "--machine", machine.name, "--page-size", machine.page_size, "--cpus", machine.threads,
                "--affinity", "sharing-aware", "--policy", ",".join(policies), "--core-factor", factor, *known)
    return {plain(p["policy"]): p for p in found["policies"]}


def plain(policy):
    """`random:0` is random; mixed keeps its threshold."""
    return policy if policy.startswith("mixed") else policy.split(":")[0]


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
    file.write_text(text, encoding="utf-8")
    return file
