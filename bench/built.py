"""Programs that measure parts of nodewise: benches of its crates, and what makes their inputs."""

import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]


def built(package, name, kind="bench"):
    """The path of a crate's bench (or example), built as it is released."""
    command = ["cargo", "build", "--quiet", "--release", "--message-format", "json", "--package", package, f"--{kind}", name]
    printed = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    artifacts = (json.loads(line) for line in printed.splitlines() if line.startswith("{"))
    return next(a["executable"] for a in artifacts if a.get("executable") and a["target"]["name"] == name)
