"""Ways to run a program that must not change it: the command line of each."""

import pathlib
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
NODEWISE = ROOT / "target/release/nodewise"
PRETENDED = ROOT / "tests/pretended/nodes"


def under_nodes(*command):
    return [PRETENDED, "2", "--", NODEWISE, *command]


def interleave(program, _profile):
    return under_nodes("run", "--policy", "interleave", "--", *program.command)


def mapped(program, profile):
    return under_nodes("run", "--policy", f"map:{rules(program, profile)}", "--", *program.command)


def emulate(program, profile):
    return [NODEWISE, "record", "--force", "--via", "emulate", "-o", profile, "--", *program.command]


def faults(program, profile):
    return [NODEWISE, "record", "--force", "--via", "faults", "-o", profile.with_suffix(".faults"), "--", *program.command]


def balance(program, _profile):
    return [NODEWISE, "balance", "--dry-run", "--", *program.command]


def watched(program, _profile):
    return program.command


MODES = {"interleave": interleave, "emulate": emulate, "map": mapped, "faults": faults, "balance": balance,
         "watched": watched}


def rules(program, profile):
    """A map for it: made from what emulation recorded, if it did, and all else dealt over two nodes."""
    file = profile.with_suffix(".map")
    command = [NODEWISE, "map", profile, "--machine", "nehalem-2s", "--policy", "locality", "--force", "-o", file]
    made = profile.is_dir() and subprocess.run(command, capture_output=True, check=False).returncode == 0
    text = file.read_text() if made else (
        'format = 1\npolicy = "locality"\nmachine = "nehalem-2s"\nnodes = 2\n'
        f'program = "{program.command[0]}"\nthreads = 4\npage_size = 4096\ndefault = "first-touch"\n'
        "[kept]\nmapping_local = 1.0\nrules_local = 1.0\ntransferable_local = 1.0\n"
        '[binding]\nname = "compact"\ncpus = [0, 1, 2, 3]\nnodes = [0, 0, 1, 1]\n')
    file.write_text(text.replace('default = "first-touch"', 'default = "interleave 0,1"'))
    return file


def watch(process):
    """Looks at it from outside as long as it runs, twice at most."""
    time.sleep(0.02)
    for look in (["check", "--duration", "0"], ["top", "--once"]):
        if process.poll() is None:
            subprocess.run([NODEWISE, *look, "--pid", str(process.pid)], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, timeout=120, check=False)
