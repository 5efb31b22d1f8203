"""Recordings of the programs' forms, and what `report` and `simulate` say of them."""

import functools
import json
import re
import subprocess

from commands import ROOT, run
from judge import cores
from programs import APART, PROGRAMS, SHAPES, SMALL
from reuse import kept

NODEWISE = ROOT / "target/release/nodewise"
PLAIN = ROOT / "build/workloads"
FOLDER = ROOT / "build/majo"
RECORDED = FOLDER / "programs"
AS_PLACED = FOLDER / "as_placed.so"

# More accesses than any run makes: a slice is the run. Seconds would show how the host's few CPUs took turns.
ONE_SLICE = "accesses:1000000000000000"
WRAPPED = ("nw_place", "nw_place_by", "nw_describe", "nw_describe_by", "nw_distribute")


@functools.cache
def still():
    """A prefix under which addresses are the same in each run, where the kernel allows that: which pages displace each other in
    a thread's window depends on them."""
    fixed = ["setarch", "-R"]
    return fixed if subprocess.run([*fixed, "true"], check=False, capture_output=True).returncode == 0 else []


def nodewise(*arguments, **environment):
    return run([*still(), NODEWISE, *arguments], **environment)


def build():
    """The instrumented programs, each with what notes its placements, and the policy that reads the notes."""
    RECORDED.mkdir(parents=True, exist_ok=True)
    compile_c = ["cc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror"]
    run([*compile_c, "-shared", "-fPIC", "-I", ROOT / "examples/user-policy", "-o", AS_PLACED, ROOT / "bench/majo/as_placed.c"])
    note = FOLDER / "note_placement.o"
    run([*compile_c, "-I", ROOT / "lib/include", "-c", "-o", note, ROOT / "bench/majo/note_placement.c"])
    wrap = ",".join(f"--wrap={name}" for name in WRAPPED)
    run(["make", "-s", "-C", ROOT / "workloads", f"CC={NODEWISE.parent / 'nodewise-cc'}", f"OUT={RECORDED}",
         f"CFLAGS=-O2 -g {note} -Wl,{wrap}", *(RECORDED / p.file for p in PROGRAMS.values())])


def recorded(program, form, sizes, threads, machine, number, *, plain=False, reuse=False):
    """The profile of a form. One that the library places or schedules is told that it runs on `machine`; what the library would
    place is noted beside the profile. `plain`: the plain build runs as well, for its CPU time, which the profile then has."""
    row = PROGRAMS[program]
    folder = FOLDER / "profiles" / f"{program}-{form}-{sizes[0]}-{sizes[1]}-{threads}-{machine}" / str(number)
    if reuse and kept(folder) and (plain_ns(folder) or not plain):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    notes(folder).write_text("", encoding="utf-8")
    pretend = {} if form == "default" else {"NODEWISE_PRETEND": "{}x{}".format(*SHAPES[machine])}
    measured = ["--plain", PLAIN / row.file] if plain else []
    nodewise("record", "--force", "--threads", threads, "--slice", ONE_SLICE, *measured, "-o", folder, "--", RECORDED / row.file,
             *row.arguments(form, sizes), OMP_WAIT_POLICY="passive", MAJO_PLACED=str(notes(folder)), **pretend)
    return folder


def notes(profile):
    return profile.with_name(profile.name + ".placed")


def plain_ns(profile):
    """CPU time of the plain build, by the recording's clock; None where none was measured."""
    return json.loads((profile / "manifest.json").read_text(encoding="utf-8"))["plain_cpu_ns"]


def noted_bytes(profile):
    """Bytes that change their node, by the notes."""
    where, moved = {}, 0
    for line in notes(profile).read_text(encoding="utf-8").splitlines():
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
    file.write_text("thread,cpu\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return f"file:{file}"


@functools.cache
def all_local():
    """The smaller machine with its other node's memory as near as its own: what a program's computing would take, were all of its
    accesses local."""
    text = (ROOT / f"machines/{SMALL}.toml").read_text(encoding="utf-8")
    local, bandwidth = re.search(r"^ +\[(\d+), \d+\],", text, re.MULTILINE)[1], re.search(r"memory = \"6G\", bandwidth = (\d+)", text)[1]
    near = re.sub(r"^ +\[\d+, \d+\],$", f"    [{local}, {local}],", text, flags=re.MULTILINE)
    near = re.sub(r"(between = .*bandwidth = )\d+", rf"\g<1>{bandwidth}", near).replace(f'name = "{SMALL}"', f'name = "{SMALL}-near"')
    file = FOLDER / f"{SMALL}-near.toml"
    file.write_text(near, encoding="utf-8")
    return file


def simulate(profile, machine, threads, policy, *, factor=None, file=None):
    """Of the computation: seconds (typical, and least and most over the model's scenarios), remote share of the lines fetched;
    remote share of the run's accesses."""
    found = json.loads(nodewise("simulate", profile, "--machine", file or machine, "--cpus", threads, "--affinity",
                                identity(machine, threads), "--policy", policy, "--core-factor", factor or cores.factor(machine), "--json",
                                MAJO_PLACED=str(notes(profile))))
    one = next(p for p in found["policies"] if p["policy"] == str(policy))  # the baseline is there too
    parts = [r for r in one["regions"] if r["function"] not in APART]
    lines = sum(r["lines"] for r in parts)
    low, high = (sum(r["seconds_range"][end] for r in parts) for end in (0, 1))
    return {
        "seconds": {"typical": sum(r["seconds"] for r in parts), "least": low, "most": high},
        "remote lines": 100 * (1 - sum(r["lines"] * r["local_fraction"] for r in parts) / max(1, lines)),
        "remote": 100 * (1 - one["mapped"]["local_fraction"]),
        "busy": 100 * max(c["utilization"] for c in one["controllers"]),
    }


def shared(profile):
    """Per cent of the pages, stacks and images apart, that are uniformly shared on the smaller machine."""
    found = json.loads(nodewise("report", profile, "--machine", SMALL, "--affinity", identity(SMALL, 8), "--policy", "first-touch",
                                "--page-size", "4K", "--json"))
    pages = {each["class"]: each["pages"] for each in found["sharing"] if each["class"] != "private"}
    return {name: 100 * count / sum(pages.values()) for name, count in pages.items()}


