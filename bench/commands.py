"""Commands that must succeed."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = f"reproduce-{pathlib.Path(sys.argv[0]).resolve().parent.name}"


def run(command, **environment):
    """What the command prints, run in the project's folder with these variables too; ends the program if it fails."""
    done = subprocess.run([str(c) for c in command], check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          cwd=ROOT, env={**os.environ, **environment})
    if done.returncode:
        raise SystemExit(f"{PROGRAM}: {' '.join(map(str, command))}: status {done.returncode}\n{done.stderr}")
    return done.stdout


def lab(command, **environment):
    """Likewise of `nodewise lab`; once more where the guest did not come up, as happens on a host that is very busy."""
    try:
        return run(command, **environment)
    except SystemExit as why:
        if "did not come up" not in str(why):
            raise
        return run(command, **environment)
