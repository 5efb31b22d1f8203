"""Exact counts: the programs' forms on virtual machines, one boot a machine."""

import json
import os
import subprocess

from programs import PROGRAMS
from recordings import FOLDER, NODEWISE, PLAIN, nodewise, recorded

# Virtual CPUs of each machine: the paper's first has as many, its second is scaled to two a node.
MACHINES = {"nehalem-2s": 8, "westmere-4s": 8}
PROFILED = "profile-based"
# Pages of an array: 64 KiB, from which on an allocation has pages of its own.
SMALLEST = 16


def frequency(program, machine):
    """The paper's profile-based placement: each page where it is accessed most, from a recording here."""
    threads = MACHINES[machine]
    scaled = FOLDER / f"{machine}.toml"
    if not scaled.exists():
        nodewise("lab", "--machine", machine, "--cpus", threads, "--scaled", scaled)
    profile = recorded(program, "default", PROGRAMS[program].sizes.lab, threads)
    rules = FOLDER / "maps" / f"{program}.{machine}.map"
    rules.parent.mkdir(exist_ok=True)
    nodewise("map", profile, "--force", "--machine", scaled, "--affinity", "compact", "--policy", "frequency",
             "-o", rules)
    return f"map:{rules.relative_to(FOLDER.parents[1])}"


def lines(machine):
    """What is run: (program, form) and the batch file's line."""
    found = {}
    for name, program in PROGRAMS.items():
        runs = [(form, "first-touch", form) for form in ("default", *program.forms)]
        if program.forms:
            runs.insert(1, (PROFILED, frequency(name, machine), "default"))
        for label, policy, form in runs:
            command = [str(PLAIN / program.file), *program.arguments(form, program.sizes.lab)]
            found[name, label] = " ".join([policy, *command])
    return found


def measure(machine):
    """Of each program and form: remote share of accesses to objects, and bytes the kernel migrated."""
    wanted = lines(machine)
    batch = FOLDER / f"{machine}.batch"
    batch.write_text("\n".join(wanted.values()) + "\n")
    cpus = MACHINES[machine]
    command = [NODEWISE, "lab", "--machine", machine, "--cpus", str(cpus), "--huge-pages", "never", "--json",
               "--batch", str(batch)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(cpus)}
    for _ in range(2):  # on a host that is very busy a guest may not come up
        done = subprocess.run(command, check=False, capture_output=True, text=True,
                              env=environment, cwd=FOLDER.parents[1])
        if "did not come up" not in done.stderr:
            break
    (FOLDER / f"{machine}.lab.log").write_text(done.stderr)
    if done.returncode:
        raise SystemExit(f"reproduce-majo: lab on {machine}: status {done.returncode}\n{done.stderr[-2000:]}")
    runs = json.loads(done.stdout)["runs"]
    return {key: figures(key, run) for key, run in zip(wanted, runs, strict=True)}


def figures(key, run):
    """Over arrays alone: the executable's own data are a few pages, which libraries read tables from."""
    if run["exit_status"] or not run["over_objects"]:
        raise SystemExit(f"reproduce-majo: {' '.join(key)}: status {run['exit_status']}, {run['notes']}")
    arrays = [o["matrix"] for o in run["objects"] if o["pages"] >= SMALLEST]
    local, total = sum(m[n][n] for m in arrays for n in range(len(m))), sum(sum(map(sum, m)) for m in arrays)
    return {
        "remote": 100 * (1 - local / total),
        "accesses": total,
        "migrated_bytes": 4096 * run["kernel"].get("pgmigrate_success", 0),
    }
