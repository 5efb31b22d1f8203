"""What a run of a command leaves: status, output, files. And whether two runs left the same."""

import contextlib
import dataclasses
import hashlib
import os
import re
import shutil
import signal
import stat
import subprocess

LONGEST = 300  # seconds; more is a hang
OWN_FAILURES = (125, 126, 127)
OURS = re.compile(rb"nodewise: [^\n]*\n")  # also behind a program's line that it did not end


@dataclasses.dataclass
class Outcome:
    status: int  # as a shell gives it; None: it did not end
    output: bytes
    errors: bytes  # without our lines
    said: list  # our lines on standard error
    files: dict  # path: kind, permissions, hash

    def refused(self):
        """One line before anything of the program happened."""
        return self.status in OWN_FAILURES and not self.output and not self.errors and not self.files and len(self.said) == 1

    def differences(self, other, with_errors):
        """Names of what differs, each with the first sight of it."""
        found = []
        if self.status != other.status:
            found.append(f"status {other.status} for {self.status}")
        if self.output != other.output:
            found.append(f"output {first_difference(self.output, other.output)}")
        if with_errors and self.errors != other.errors:
            found.append(f"errors {first_difference(self.errors, other.errors)}")
        if self.files != other.files:
            changed = sorted(k for k in self.files.keys() | other.files.keys() if self.files.get(k) != other.files.get(k))
            found.append(f"files {' '.join(changed[:4])}")
        return found


def first_difference(expected, found):
    was, now = expected.splitlines(), found.splitlines()
    at = next((i for i, (a, b) in enumerate(zip(was, now)) if a != b), min(len(was), len(now)))
    here = [lines[at][:100] if at < len(lines) else b"(end)" for lines in (was, now)]
    return f"at line {at + 1}: {here[1]!r} for {here[0]!r}"


def environment(home):
    return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(home),
            "LC_ALL": "C.UTF-8", "TZ": "UTC", "USER": "root", "LOGNAME": "root", "SHELL": "/bin/sh"}


def fresh(folder, inputs):
    """An empty folder in which `in` leads to the inputs, and a home beside it."""
    home = folder.with_name(folder.name + ".home")
    for path in (folder, home):
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
    (folder / "in").symlink_to(os.path.relpath(inputs, folder))
    return home


def run(command, folder, inputs, while_running=None):
    """The outcome of a command in a fresh `folder`. `while_running` is called with its process."""
    home = fresh(folder, inputs)
    logs = [folder.with_name(f"{folder.name}.{what}") for what in ("out", "err")]
    with logs[0].open("wb") as out, logs[1].open("wb") as err, \
            subprocess.Popen([str(word) for word in command], cwd=folder, env=environment(home), stdin=subprocess.DEVNULL,
                             stdout=out, stderr=err, start_new_session=True) as process:
        if while_running:
            while_running(process)
        try:
            status = process.wait(LONGEST)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    if status is not None and status < 0:
        status = 128 - status
    errors = logs[1].read_bytes()
    said = [line.decode(errors="replace") for line in OURS.findall(errors)]
    return Outcome(status, logs[0].read_bytes(), OURS.sub(b"", errors), said, files(folder))


def files(folder):
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name == "in":
            continue
        mode = path.lstat().st_mode
        content = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(mode) else ""
        found[name] = (stat.filemode(mode), content)
    return found


def plain(program, folder, inputs):
    """Twice: what is the same both times is what a run is held to. The outcome, and whether errors are the same."""
    first, second = (run(program.command, folder / program.name, inputs) for _ in range(2))
    return first, first.differences(second, False), first.errors == second.errors
