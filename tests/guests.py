"""Guests of the laboratory that say what they find: a suite's script runs in one, and what it says is looked at here.

`@@ TITLE` begins each part of it; the last one's title is `end`, or `end end`."""

import json
import os
import pathlib
import subprocess

from commands import NODEWISE

HERE = pathlib.Path(__file__).resolve().parent
# Options of `lab` for the kernels that a suite runs on: the distribution's, at night the newest that the laboratory gets, too.
KERNELS = [(), ("--kernel", "6.12")] if os.environ.get("NODEWISE_NIGHTLY") else [()]


def compiled(source, folder):
    """A program for a guest, from one file of C."""
    program = folder / source.stem
    subprocess.run(["cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", program, source], check=True)
    return program


def boot(options, script, *words):
    """Runs a script in a guest: what it said, by title, which is a tuple where it has several words. SAID=FILE adds all of
    it to a file."""
    command = [NODEWISE, "lab", *options, "--with", HERE / "guest.sh", "--", script, *words]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if os.environ.get("SAID"):
        with open(os.environ["SAID"], "a", encoding="utf-8") as said:
            said.write(done.stdout + done.stderr)
    parts = {}
    for text in done.stdout.split("@@ ")[1:]:
        title, _, body = text.partition("\n")
        words = tuple(title.split())
        parts[words if len(words) > 1 else title] = body
    if "end" not in parts and ("end", "end") not in parts:
        last = title if parts else "its start"
        raise SystemExit(f"FAILED status {done.returncode} after `{last}`\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return parts


def each_kernel():
    """The options of each kernel, whose name is printed before what is found on it."""
    for kernel in KERNELS:
        if kernel:
            print(f"Linux {kernel[-1]}:")
        yield kernel


def summary(said):
    """The JSON object that a command wrote among other lines."""
    start = ("\n" + said).index("\n{")
    return json.JSONDecoder().raw_decode(said[start:])[0]
