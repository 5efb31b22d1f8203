"""Commands that suites in Python run on this host, and what they wait for."""

import json
import os
import pathlib
import shutil
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
NODEWISE = pathlib.Path(os.environ.get("NODEWISE", ROOT / "target/release/nodewise"))
CLANG = next(filter(None, map(shutil.which, ("clang-19", "clang-20", "clang-21", "clang-22"))), "clang")


def run(*words, check=False, **options):
    """A command that has ended, and in text what it wrote. It may fail, unless `check`."""
    usual = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "errors": "replace"}
    return subprocess.run([str(word) for word in words], check=check, **usual | options)


def started(*words, **options):
    """A process that has written its first line, which says that it is ready."""
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, text=True, **options)
    process.stdout.readline()
    return process


def until(holds, seconds=120):
    """Waits until it holds; whether it did in this time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.02)
    return False


def document(*words):
    """The JSON that a nodewise command writes."""
    done = run(NODEWISE, *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def report(profile):
    """What `nodewise report` says of a profile on a machine of two nodes."""
    return document("report", profile, "--machine", "nehalem-2s", "--affinity", "scatter")


def line_of(source, text):
    """The number of the first line with this text."""
    return next(number for number, line in enumerate(source.read_text().splitlines(), 1) if text in line)
