"""Recordings of the programs' forms, and what `simulate` predicts from them."""

import functools
import json
import os
import pathlib
import subprocess

import duckdb
from programs import APART, PROGRAMS

ROOT = pathlib.Path(__file__).resolve().parents[2]
NODEWISE = ROOT / "target/release/nodewise"
PLAIN = ROOT / "build/workloads"
FOLDER = ROOT / "build/majo"
RECORDED = FOLDER / "programs"
AS_PLACED = FOLDER / "as_placed.so"

# More accesses than any run makes. Seconds would show how the host's few CPUs took turns.
ONE_SLICE = "accesses:1000000000000000"
# What a line costs the recorded program, typically: docs/model.md's m · 95 ns / P.
LINE_SECONDS = 0.8 * 95e-9 / 5
WRAPPED = ["nw_place", "nw_place_by", "nw_describe", "nw_describe_by", "nw_distribute"]
# Nodes and CPUs a node.
SHAPES = {"nehalem-2s": (2, 4), "westmere-4s": (4, 8)}


@functools.cache
def still():
    """A prefix under which addresses are the same in each run, where the kernel allows that: which pages
    displace each other in a thread's window depends on them."""
    fixed = ["setarch", "-R"]
    return fixed if subprocess.run([*fixed, "true"], check=False, capture_output=True).returncode == 0 else []


def nodewise(*arguments, **environment):
    """Standard output of a nodewise command that must succeed."""
    done = subprocess.run([*still(), NODEWISE, *map(str, arguments)], capture_output=True, text=True, check=False, cwd=ROOT,
                          env={**os.environ, **environment}, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise SystemExit(f"reproduce-majo: nodewise {' '.join(map(str, arguments))}: status {done.returncode}\n"
                         f"{done.stderr}")
    return done.stdout


def build():
    """The instrumented programs, each with what notes its placements, and the policy that reads the notes."""
    RECORDED.mkdir(parents=True, exist_ok=True)
    compile_c = ["cc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*compile_c, "-shared", "-fPIC", "-I", ROOT / "examples/user-policy", "-o", AS_PLACED,
                    ROOT / "bench/majo/as_placed.c"], check=True)
    note = FOLDER / "note_placement.o"
    subprocess.run([*compile_c, "-I", ROOT / "lib/include", "-c", "-o", note, ROOT / "bench/majo/note_placement.c"],
                   check=True)
    wrap = ",".join(f"--wrap={name}" for name in WRAPPED)
    subprocess.run(["make", "-s", "-C", ROOT / "workloads", f"CC={NODEWISE.parent / 'nodewise-cc'}", f"OUT={RECORDED}",
                    f"CFLAGS=-O2 -g {note} -Wl,{wrap}", *(str(RECORDED / p.file) for p in PROGRAMS.values())],
                   check=True)


def recorded(program, form, sizes, threads, machine=None, reuse=False):
    """The profile of a form. One of the library's is told that it runs on `machine`; what it would
    place is noted beside the profile."""
    row = PROGRAMS[program]
    shape = f"-{machine}" if machine else ""
    folder = FOLDER / "profiles" / f"{program}-{form}-{sizes[0]}-{threads}{shape}"
    if reuse and (folder / "manifest.json").exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    placed = notes(folder)
    placed.write_text("")
    pretend = {"NODEWISE_PRETEND": "{}x{}".format(*SHAPES[machine])} if machine else {}
    nodewise("record", "--force", "--threads", threads, "--slice", ONE_SLICE, "-o", folder, "--", RECORDED / row.file,
             *row.arguments(form, sizes), OMP_WAIT_POLICY="passive", MAJO_PLACED=str(placed), **pretend)
    return folder


def notes(profile):
    return profile.with_name(profile.name + ".placed")


def migrated(profile):
    """Bytes that change their node, by the notes: what a run at this size has to migrate."""
    where, moved = {}, 0
    for line in notes(profile).read_text().splitlines():
        first, pages, node = line.split()
        for page in range(int(first, 16), int(first, 16) + int(pages)):
            moved += where.get(page, node) != node
            where[page] = node
    return 4096 * moved


def identity(machine, threads):
    """Threads dealt evenly over the nodes in order, as libnodewise binds them: a file for --affinity."""
    nodes, cpus = SHAPES[machine]
    file = FOLDER / f"{machine}-{threads}.affinity"
    used, rows = [0] * nodes, []
    for thread in range(threads):
        node = thread * nodes // threads
        rows.append(f"{thread},{node * cpus + used[node]}")
        used[node] += 1
    file.write_text("thread,cpu\n" + "\n".join(rows) + "\n")
    return f"file:{file}"


@functools.cache
def plain_cpu(program, sizes):
    """CPU seconds of the plain build with one thread, the best of three: all forms do the same work, so their
    predictions start from the same."""
    command = [PLAIN / PROGRAMS[program].file, *PROGRAMS[program].arguments("default", sizes)]
    taken = []
    for _ in range(3):
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
        _, status, used = os.wait4(child.pid, 0)
        if status:
            raise SystemExit(f"reproduce-majo: {program}: status {status}")
        taken.append(used.ru_utime + used.ru_stime)
    return min(taken)


def lines(profile):
    (count,), = duckdb.sql(f"SELECT sum(len * lines) FROM '{profile}/accesses-*.parquet'").fetchall()
    return float(count)


def form_cpu(profile, default, seconds):
    """CPU seconds of a form, from the default's with as many threads: an access costs the same in both, and
    what fetches fewer lines waits less."""
    return max(seconds / 2, seconds + (lines(profile) - lines(default)) * LINE_SECONDS)


def simulate(profile, machine, threads, policies, cpu_seconds):
    """Predictions by policy; `as_placed.so` is where the program's own calls put its pages."""
    found = json.loads(nodewise("simulate", profile, "--machine", machine, "--affinity", identity(machine, threads),
                                "--policy", ",".join(map(str, policies)), "--plain-cpu", cpu_seconds, "--json",
                                MAJO_PLACED=str(notes(profile))))
    return {plain(p["policy"]): figures(p) for p in found["policies"]}


def plain(policy):
    return "as placed" if policy.endswith("as_placed.so") else policy


def figures(p):
    """Of the computation: what initialises and verifies is apart, as in NAS's timings."""
    regions = [r for r in p["regions"] if r["function"] not in APART]
    lines = sum(r["lines"] for r in regions)
    return {
        "seconds": sum(r["seconds"] for r in regions),
        "range": [sum(ends) for ends in zip(*(r["seconds_range"] for r in regions))],
        "remote_traffic": 100 * (1 - sum(r["lines"] * r["local_fraction"] for r in regions) / max(1, lines)),
        "busy": 100 * max(c["utilization"] for c in p["controllers"]),  # the busiest controller, over the run
        "remote_of_run": 100 * (1 - p["mapped"]["local_fraction"]),  # accesses, as the laboratory counts
    }
