"""Six programs on four nodes in the laboratory, sampled by `nodewise record --via faults` inside the guest while
the laboratory counts every access of the same run. The node that the samples say uses a page most is the one
that does, on 90 % of the pages that are one node's by nine tenths and more; and the stated interval of an
object's exclusivity holds the exact value."""

import json
import pathlib
import subprocess
import sys
import tempfile

import pandas

ROOT = pathlib.Path(__file__).resolve().parents[2]
NODEWISE, PROGRAMS = ROOT / "target/release/nodewise", ROOT / "build/workloads"
LIBRARIES = [ROOT / f"target/release/lib/libnodewise-{name}.so" for name in ("rt", "preload")]
NODES = 4
MACHINE = ["--machine", "westmere-4s", "--cpus", str(NODES), "--memory", "1G"]
# One CPU a node, and each thread on its own: a thread is a node. The kernel samples five times a second, and the
# emulator makes a sample a hundred times as expensive as it is.
BOUND = ["--bind", "none", "--threads", str(NODES), "--env", "OMP_PROC_BIND=close", "--env", "OMP_PLACES=threads"]
OPTIONS = "--via faults --scan 200 --budget 60 --force"
COMMANDS = {
    "sor": "--size 512 --iterations 400",
    "adi": "--size 40 --iterations 160",
    "cg": "--size 6000 --iterations 400",
    "kmedian": "--size 8192 --iterations 4",
    "shift": "--size 200000 --iterations 1200",
    "is": "--size 131072 --iterations 600",
}
EXCLUSIVE, AGREED = 0.9, 0.9
KINDS = ["heap", "static", "mapping"]
FEW = 20  # pages of an object below which nothing is said of it
QUIET = 64  # accesses of a page below which it is hardly used at all

passed, failed = 0, 0


def check(holds, text):
    global passed, failed
    passed, failed = passed + bool(holds), failed + (not holds)
    print("ok    " if holds else "FAILED", text, flush=True)


def boot(folder, programs):
    """All programs in one boot: the exact counts by page, and their profiles."""
    lines = [f"autonuma {NODEWISE} record {OPTIONS} -o /profiles/{name} -- {PROGRAMS}/{name} {programs[name]}"
             for name in programs]
    (folder / "batch").write_text("\n".join(lines))
    files = [NODEWISE, *LIBRARIES, ROOT / "workloads", *(PROGRAMS / n for n in programs)]
    needed = [argument for file in files for argument in ("--with", file)]
    command = [NODEWISE, "lab", *MACHINE, *BOUND, "--huge-pages", "never", "--time-limit", "15m", *needed,
               "--pages", folder / "pages.csv", "--scaled", folder / "machine.toml", "--bring", "/profiles",
               "--into", folder / "guest", "--json", *sys.argv[1:], "--batch", folder / "batch"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    print(done.stderr, file=sys.stderr)
    if done.returncode:
        raise SystemExit(f"FAILED status {done.returncode}")
    return pandas.read_csv(folder / "pages.csv"), folder / "guest/profiles"


def samples(profile):
    """By page: its object, and how often each node was seen."""
    rows = pandas.concat(pandas.read_parquet(f) for f in sorted(profile.glob("accesses-*.parquet")))
    rows = rows.loc[rows.index.repeat(rows.len)]
    rows["page"] += rows.groupby(level=0).cumcount() if rows.len.max() > 1 else 0
    rows["count"] = rows.reads + rows.writes
    threads = pandas.read_parquet(profile / "threads.parquet")
    # OpenMP's threads are made in the order of their numbers, and bound in it.
    rows = rows[rows.thread.map(threads.process) == 0]
    table = rows.pivot_table(index=["object", "page"], columns="thread", values="count", aggfunc="sum", fill_value=0)
    return table.reindex(columns=range(NODES), fill_value=0).reset_index("object")


def share(counts):
    return counts.max(axis=1) / counts.sum(axis=1)


def compare(name, profile, exact, machine):
    minimum = json.loads((profile / "manifest.json").read_text())["sampling"]["minimum_samples"]
    seen = samples(profile)
    objects = pandas.read_parquet(profile / "objects.parquet")
    seen = seen[seen.object.map(objects.kind).isin(KINDS)]
    nodes = [f"node{n}" for n in range(NODES)]
    exact = exact.groupby("page")[nodes].sum().set_axis(range(NODES), axis=1)
    exact = exact[exact.sum(axis=1) >= QUIET]
    both = seen.index.intersection(exact.index)
    counted, seen = exact.loc[both], seen.loc[both]
    sampled = seen[list(range(NODES))]
    judged = sampled.sum(axis=1) >= minimum
    counted, sampled, seen = counted[judged], sampled[judged], seen[judged]
    clear = share(counted) > EXCLUSIVE
    agree = (sampled.idxmax(axis=1) == counted.idxmax(axis=1))[clear]
    check(len(counted) >= FEW, f"{name}: {len(counted)} of {len(both)} sampled pages are judged, {clear.sum()} of one node")
    if clear.sum() >= FEW:
        check(agree.mean() >= AGREED, f"{name}: the dominant node agrees on {agree.mean():.1%} of {clear.sum()} pages")
    report = json.loads(subprocess.run(
        [NODEWISE, "report", profile, "--machine", machine, "--affinity", "identity", "--json"],
        capture_output=True, text=True, check=True).stdout)
    for number, pages in seen.groupby("object").groups.items():
        if len(pages) < FEW:
            continue
        truth = share(counted.loc[pages]).mean()
        found = [o["sampled"]["range"] for o in report["objects"] if o["name"].split(" #")[0] == objects.name[number]]
        ranges = [r for r in found if r]
        # As reports print them: to a tenth of a per cent.
        holds = any(round(low, 3) <= round(truth, 3) <= round(high, 3) for low, high in ranges)
        check(holds, f"{name}, {objects.name[number]}: {truth:.3f} exactly, of {len(pages)} pages; stated {ranges}")


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        exact, profiles = boot(folder, COMMANDS)
        for run, name in enumerate(COMMANDS):
            compare(name, profiles / name, exact[exact.run == run], folder / "machine.toml")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    sys.exit(failed > 0)


main()
