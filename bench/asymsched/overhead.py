"""5.4: what moving memory, collecting and deciding cost; S10 from the runs of S6 and S8 and from the live loop itself."""

import contextlib
import os
import pathlib
import subprocess
import sys
import time

from judge import Check
from judge.check import Range, Test
from programs import CLUSTERING, PROGRAMS, REPEATS, THREADS
from reasons import by_value
from recordings import NODEWISE, PLAIN
from row import Row
from single import PRICES

SECONDS = 20
BALANCING = pathlib.Path("/proc/sys/kernel/numa_balancing")
DIFFERS = ("Per cent of run time; of moving the most of all runs; it costs 0.15 s/GB (Table 5). Live: CPU time of `nodewise balance "
           "--move-threads --dry-run` over the time that passed, a share of one CPU, on a host of one node that pretends to have "
           "eight; memory is that of the whole process.")


@contextlib.contextmanager
def balancing():
    """The kernel's hint faults, for as long; left as it was where we may not set it."""
    try:
        before = BALANCING.read_text(encoding="ascii")
        BALANCING.write_text("1", encoding="ascii")
    except OSError:
        yield
        return
    try:
        yield
    finally:
        BALANCING.write_text(before, encoding="ascii")


def live(*options):
    """The live loop beside the clustering program on this host, which has one node and pretends to have eight: its CPU time in per cent
    of the time that passed, after the first two seconds, and its memory in MB. Nothing is moved; who reads from where is sampled and
    decided every second. None where the kernel gives no samples. `options`: further ones of the loop's."""
    command = [PLAIN / CLUSTERING, "--size", str(PROGRAMS[CLUSTERING].size), "--iterations", "1000"]
    program = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                               env={**os.environ, "OMP_NUM_THREADS": str(3 * THREADS), "OMP_WAIT_POLICY": "passive"})
    try:
        time.sleep(2)  # until its threads are there
        command = [NODEWISE, "balance", "--pid", str(program.pid), "--move-threads", "--dry-run", "--policy", "carrefour", *options]
        loop = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                env={**os.environ, "NODEWISE_PRETEND_NODES": "8"})
        time.sleep(2)
        began, worked = time.monotonic(), cpu_seconds(loop.pid)
        time.sleep(SECONDS)
        if loop.poll() is not None:
            return None
        worked, passed, most = cpu_seconds(loop.pid) - worked, time.monotonic() - began, most_memory(loop.pid)
        loop.terminate()
        loop.wait()
    finally:
        program.kill()
        program.wait()
    return {"deciding, live": 100 * worked / passed, "memory, live (MB)": most / 1e6}


def idle_memory():
    """MB that a `nodewise` has resident at most which only prints its version. Asked by a small process: a child's most is at least what
    its parent had when it began."""
    asks = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True); "
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    printed = subprocess.run([sys.executable, "-I", "-S", "-c", asks, NODEWISE, "--version"], check=True, capture_output=True, text=True)
    return int(printed.stdout) * 1024 / 1e6


def most_memory(pid):
    """Bytes that a process has had resident at most."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))


def cpu_seconds(pid):
    """User and system time of a process so far."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def runs(single, workloads):
    """Of one repeat: most that moving took of a run, per cent."""
    every = [*single.values(), *(p for w in workloads.values() for p in w["programs"].values())]
    return {"moving": max(m for one in every for m in one["moving"])}


def all_moved(data):
    """Memory moved at a price without a budget: all of it, once a second."""
    return {**data, "moving": 100.0}


S10 = Check("S10", lambda data: data,
            lambda f: f["moving"] <= 3 and f["deciding, live"] < 0.5 and f["memory, live (MB)"] < 2,
            {"memory that never moves": lambda data: {**data, "moving": 0.0}}, {"memory moved without a budget": all_moved},
            units={"moving": " %", "deciding, live": " %"},
            remark="Memory that never moves passes wherever the row holds, by definition: the row claims that costs are small.")


# What a test of the row's reason takes away.
LESS = {"with a tenth of the observing budget, 0.2 %": ("--observe-budget", "0.2%"), "with decisions every 2 s": ("--interval", "2s")}


def by_price(alone, beside, found):
    """S10's data over the prices that S6 and S8 were run at, whose ranges `alone` and `beside` are; `found` is of the live loop."""
    one, several = (next(r for r in ranges if r.name == PRICES) for ranges in (alone, beside))

    def at(price):
        return [{**live, **runs(a, b)} for live, a, b in zip(found, one.data[price], several.data[price], strict=True)]
    return Range(one.name, one.source, {price: at(price) for price in one.data})


def judged(single, workloads, open_alone, open_beside):
    """The row, or none and why it was not tested. The last two are the ranges of S6 and of S8."""
    with balancing():
        beside = [live() for _ in range(REPEATS)]
        others = {what: live(*options) for what, options in LESS.items()}
    if None in [*beside, *others.values()]:
        most = max(runs(one, several)["moving"] for one, several in zip(single, workloads, strict=True))
        return [], ("`nodewise balance` gets no hint faults on this host, where it may not switch kernel.numa_balancing on; "
                    f"of the runs' time moving took {most:.1f} % at most.")
    moved = [runs(one, several) for one, several in zip(single, workloads, strict=True)]
    repeats = [{**one, **found} for one, found in zip(moved, beside, strict=True)]
    idle, prices = idle_memory(), by_price(open_alone, open_beside, beside)
    return [Row(S10, repeats, [prices], DIFFERS, by_value([prices], "Moving takes, % of the run time", lambda data: data["moving"]), tests=(
        Test(f"less the {idle:.0f} MB that a nodewise has resident which only prints its version",
             [{**one, "memory, live (MB)": one["memory, live (MB)"] - idle} for one in repeats], instead=True),
        *(Test(what, [{**moved[0], **found}]) for what, found in others.items())))], ""
