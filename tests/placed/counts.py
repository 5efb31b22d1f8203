"""What a program knows of its CPUs before, while and after its threads are bound for it, and what it hands to what it
starts. Prints one JSON object; lists of CPUs are the kernel's, by /proc, where the name ends in `kernel`."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading

LOOK = ["grep", "-o", "Cpus_allowed_list.*", "/proc/self/status"]
found = {}


def kernel():
    with open("/proc/thread-self/status", encoding="ascii") as lines:
        return next(line.split()[1] for line in lines if line.startswith("Cpus_allowed_list"))


def seen(tid=0):
    return sorted(os.sched_getaffinity(tid))


def in_a_thread(name):
    def work():
        found[name], found[f"{name} kernel"] = seen(), kernel()
        found[f"{name} of main"] = seen(os.getpid())
        told.set()
        looked.wait()

    told, looked = threading.Event(), threading.Event()
    thread = threading.Thread(target=work)
    thread.start()
    told.wait()
    found[f"{name} from main"] = seen(thread.native_id)
    looked.set()
    thread.join()


def listed(text):
    return text.split(":")[1].strip()


def forked(work):
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.dup2(writer, 1)
        work()
        os._exit(0)
    os.close(writer)
    with open(reader, encoding="ascii") as output:
        text = output.read()
    os.wait()
    return text


def spawned():
    reader, writer = os.pipe()
    os.posix_spawnp(LOOK[0], LOOK, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, writer, 1)])
    os.close(writer)
    with open(reader, encoding="ascii") as output:
        text = output.read()
    os.wait()
    return text


def in_a_shell():
    with tempfile.NamedTemporaryFile("r") as output:
        os.system(f"{' '.join(LOOK)} >{output.name}")
        return output.read()


def refused():
    with contextlib.suppress(OSError):
        os.execv("/absent", ["absent"])


def children(name):
    found[name] = {
        "subprocess": listed(subprocess.run(LOOK, capture_output=True, text=True, check=True).stdout),
        "posix_spawn": listed(spawned()),
        "popen": listed(os.popen(" ".join(LOOK)).read()),
        "system": listed(in_a_shell()),
        "fork": forked(lambda: print(kernel(), flush=True)).strip(),
        "fork, exec": listed(forked(lambda: os.execvp(LOOK[0], LOOK))),
        "nproc": subprocess.run(["nproc"], capture_output=True, text=True, check=True).stdout.strip(),
    }
    refused()


found["start"] = seen()
in_a_thread("thread")
found["main"], found["main kernel"] = seen(), kernel()
children("children")
found["main kernel after"] = kernel()
os.sched_setaffinity(0, {found["start"][-1]})
found["set"] = seen()
in_a_thread("thread of set")
children("children of set")
os.sched_setaffinity(0, found["start"])
found["set back"], found["set back kernel"] = seen(), kernel()
json.dump(found, sys.stdout)
