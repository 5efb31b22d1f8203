"""The programs in the laboratory: many in one boot, each with the files that its plain run opened."""

import os
import re
import shlex
import shutil
import subprocess

import modes
import outcome

TOGETHER = 20  # programs of one boot: their files share the guest's memory
NOT_PACKED = ("/proc/", "/sys/", "/dev/", "/run/", "/tmp/")
# What starts a program there: dynamically linked, since what a static one starts is not looked at.
STARTER = ("/usr/bin/timeout", "-s", "KILL", "250")
MOST_CPUS = 8  # of the machine that the guest is: programs count them, so that the suite has no more either
SHOWN = 2000  # bytes of each output that come home; the rest as a hash

# What a program left, from inside: the hashes and the beginnings of outputs, and the files of its folder.
GUEST = """#!/bin/busybox sh
b=/bin/busybox
results=$($b dirname "$0")/results
name=$1
eval "set -- $($b cat "$($b dirname "$0")/$name.command")"
$b mkdir -p "$results" PLACE/"$name" PLACE/"$name.home" /tmp
cd PLACE/"$name"
$b ln -s ../../in in
export HOME=$PWD.home
# In a shell of its own: this one says "Terminated" on what it redirected for a command, and that is the program's.
$b sh -c 'name=$1; shift; exec "$@" >../$name.out 2>../$name.err' - "$name" "$@" </dev/null
echo $? >"$results/$name.status"
for what in out err; do
    $b sha256sum <../$name.$what >"$results/$name.$what.sum"
    $b head -c SHOWN ../$name.$what >"$results/$name.$what"
done
$b find . -mindepth 1 ! -path ./in | while read -r path; do
    sum=
    if [ -f "$path" ] && [ ! -L "$path" ]; then sum=$($b sha256sum "$path"); fi
    echo "${path#./}|$($b stat -c %A "$path")|${sum%% *}"
done >"$results/$name.files"
"""


def opened(program, folder, place, inputs):
    """Files that exist and that the plain run opened, executed or looked at."""
    log = folder / f"{program.name}.strace"
    trace = ["strace", "-f", "-qq", "-s", "4096", "-e", "trace=%file,openat", "-o", log, *STARTER, *program.command]
    outcome.run(trace, place / program.name, inputs)
    paths = set(re.findall(r'"(/[^"\\]+)"', log.read_text(errors="replace")))
    found = {os.path.normpath(path) for path in paths if not path.startswith(NOT_PACKED)}
    own = (str(folder.parent), str(place))
    return {path for path in found if os.path.isfile(path) and not path.startswith(own)}


def run_all(programs, folder, place, inputs):
    """The outcome of each program by name, and what was said of boots that failed."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    found, said = {}, []
    for first in range(0, len(programs), TOGETHER):
        part = programs[first:first + TOGETHER]
        found |= boot(part, folder / f"boot-{first // TOGETHER}", place, inputs, said)
    return found, said


def boot(programs, folder, place, inputs, said):
    folder.mkdir()
    needed = {"/bin/busybox"}.union(*(opened(program, folder, place, inputs) for program in programs))
    here = folder / "guest"
    here.mkdir()
    (here / "guest").write_text(GUEST.replace("SHOWN", str(SHOWN)).replace("PLACE", str(place)))
    (here / "guest").chmod(0o755)
    for program in programs:
        # By its full name: what starts it there has applets of the same names.
        full = shutil.which(program.command[0], path=outcome.environment(place)["PATH"]) or program.command[0]
        (here / f"{program.name}.command").write_text(shlex.join((*STARTER, full, *program.command[1:])))
    lines = [f"interleave {here}/guest {p.name}" for p in programs]
    (folder / "batch").write_text("\n".join(lines) + "\n")
    with_ = [word for path in sorted({*needed, here, inputs}, key=str) for word in ("--with", path)]
    command = [modes.NODEWISE, "lab", "--machine", "nehalem-2s", "--memory", "4G", "--cpus", max(2, len(os.sched_getaffinity(0))),
               "--batch", folder / "batch", *with_, "--bring", here / "results", "--into", folder / "brought"]
    done = subprocess.run([str(word) for word in command], cwd=here, stdin=subprocess.DEVNULL, capture_output=True,
                          env=outcome.environment(here), check=False)
    (folder / "log").write_bytes(done.stdout + done.stderr)
    if done.returncode not in range(125):
        said.append(done.stderr.decode(errors="replace").strip()[-300:])
    results = folder / "brought" / "results"
    return {p.name: read(results, p.name) for p in programs if (results / f"{p.name}.files").exists()}


def read(results, name):
    """As far as it came home: hashes stand for outputs."""
    lines = (results / f"{name}.files").read_text().splitlines()
    files = {path: (mode, sum_) for path, mode, sum_ in (line.rsplit("|", 2) for line in lines)}
    sums = [(results / f"{name}.{what}.sum").read_bytes()[:64] + b"\n" + (results / f"{name}.{what}").read_bytes()
            for what in ("out", "err")]
    return outcome.Outcome(int((results / f"{name}.status").read_text()), *sums, [], files)
