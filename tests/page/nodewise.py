"""Profiles that are the same each time, and the command's ways to show them."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
NODEWISE = pathlib.Path(os.environ.get("NODEWISE", ROOT / "target/release/nodewise"))
SYNTHETIC = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/examples/synthetic"
FOLDER = ROOT / "build/page"
MACHINE = ["--machine", "machine-a"]


def synthetic(kind, *numbers, to=None):
    folder = FOLDER / (to or kind)
    folder.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([SYNTHETIC, kind, folder, *map(str, numbers)], check=True, stderr=subprocess.DEVNULL)
    return folder


def output(*command):
    return subprocess.run([NODEWISE, *map(str, command)], check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout


def report(profile, *options):
    return json.loads(output("report", profile, *(options or MACHINE), "--json"))


def in_a_file(profile, *options, name=None):
    """The address of the page in one file."""
    file = FOLDER / f"{name or pathlib.Path(profile).name}.html"
    output("report", profile, *MACHINE, *options, "--html", file, "--force")
    return file.as_uri(), file


@contextlib.contextmanager
def served(profile, *options):
    """The address of the page while it is served."""
    server = subprocess.Popen([NODEWISE, "serve", str(profile), *MACHINE, *map(str, options)], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, stdin=subprocess.PIPE, text=True)
    try:
        yield server.stdout.readline().strip()
    finally:
        server.terminate()
        server.wait(10)


def clean():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
