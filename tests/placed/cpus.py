"""Programs count CPUs: whoever is bound by `run` still sees, and hands on, those it had before."""

import json
import os
import pathlib
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
FILM = ["ffmpeg", "-nostdin", "-v", "error", "-threads", "4", "-f", "lavfi", "-i", "testsrc=size=160x120:rate=5:duration=2",
        "-c:v", "mpeg4", "-bitexact", "-f", "framemd5", "-"]


def listed(cpus):
    """Ascending, as the kernel writes them."""
    runs = []
    for cpu in cpus:
        if runs and runs[-1][1] == cpu - 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def suite(folder, placed, check):
    """`placed(policy, *command)` gives status, output and messages."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        check.skip("one CPU: there is nothing to count")
        return
    for policy in "first-touch", "interleave":
        counted(policy, placed, check, cpus)
    inside(placed, check, cpus)
    openmp(folder, placed, check, len(cpus))
    other_threads(folder, placed, check, len(cpus))
    film(placed, check)


def counted(policy, placed, check, cpus):
    status, out, said = placed(policy, "/usr/bin/python3", HERE / "counts.py")
    if status != 0:
        check(False, f"{policy}: counts: {status}, {said[-300:]}")
        return
    found, everything, last = json.loads(out), listed(cpus), listed(cpus[-1:])
    bound = [found[name] for name in ("thread kernel", "main kernel", "main kernel after")]
    check(all(list_.isdigit() for list_ in bound), f"{policy}: threads are bound: {bound}")
    names = ("start", "thread", "thread of main", "thread from main", "main")
    check(all(found[name] == cpus for name in names), f"{policy}: they see {[found[name] for name in names]}")
    expected = {**dict.fromkeys(found["children"], everything), "nproc": str(len(cpus))}
    check(found["children"] == expected, f"{policy}: children have {found['children']}")
    names = ("set", "thread of set", "thread of set of main", "thread of set from main")
    check(all(found[name] == cpus[-1:] for name in names) and found["thread of set kernel"] == last,
          f"{policy}: what the program sets holds: {[found[name] for name in names]}")
    expected = {**dict.fromkeys(found["children of set"], last), "nproc": "1"}
    check(found["children of set"] == expected, f"{policy}: children of that have {found['children of set']}")
    check(found["set back"] == cpus and found["set back kernel"] == everything,
          f"{policy}: and what it sets again: {found['set back kernel']}")


def inside(placed, check, cpus):
    """Tools that bind, inside: theirs holds."""
    look = "taskset -p $$ | cut -d: -f2; numactl -s | grep policy; nproc"
    _, out, said = placed("first-touch", "sh", "-c", look)
    check(out.split() == [f"{sum(1 << cpu for cpu in cpus):x}", "policy:", "default", str(len(cpus))],
          f"a shell's children: {out.split()} {said.splitlines()[:1]}")
    last = listed(cpus[-1:])
    for tool in ("taskset", "-c"), ("numactl", "-C"):
        status, out, said = placed("interleave", *tool, last, "/usr/bin/python3", HERE / "counts.py")
        found = json.loads(out) if status == 0 else {}
        kernel = {found.get(name) for name in ("thread kernel", "main kernel")}
        check(kernel == {last} and found["thread"] == cpus[-1:], f"{tool[0]} inside: {status}, {kernel} {said[-200:]}")


def openmp(folder, placed, check, count):
    program = folder / "places"
    subprocess.run(["cc", "-O1", "-fopenmp", "-o", program, HERE / "places.c"], check=True)
    status, out, said = placed("first-touch", program)
    other = [line for line in said.splitlines() if not line.startswith("nodewise: ")]
    once = f"seen {count}, bound 2\nthread {count} {count}\n"
    check((status, out, other) == (0, 2 * once, []), f"OpenMP, and a child: {status}, {out.split()} {other}")
    status, out, said = placed("first-touch", "env", "OMP_PLACES={0},{1}", "OMP_PROC_BIND=true", program, "child")
    check((status, out) == (0, "seen 1, bound 2\nthread 1 1\n"), f"places that the user set: {status}, {out.split()}")


def other_threads(folder, placed, check, count):
    """Threads that pthread_create does not make."""
    program = folder / "standard"
    subprocess.run(["cc", "-std=c11", "-O1", "-o", program, HERE / "standard.c"], check=True)
    status, out, _ = placed("first-touch", program)
    check((status, out) == (0, f"C11: seen {count}, of the kernel 1\ntimer: seen {count}\nits child: {count}\n"),
          f"threads of C11 and of the C library: {status}, {out.splitlines()}")


def film(placed, check):
    if not shutil.which(FILM[0]):
        check.skip("no ffmpeg")
        return
    plain = subprocess.run(FILM, capture_output=True, text=True, check=True).stdout
    for policy in "first-touch", "interleave":
        status, out, _ = placed(policy, *FILM)
        check((status, out) == (0, plain), f"{policy}: ffmpeg divides its work as without: {status}")
