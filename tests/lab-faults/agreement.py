"""Programs on four nodes in the laboratory, sampled by `nodewise record --via faults` inside the guest while the
laboratory counts every access of the same run. The node that the samples say uses a page most is the one that
does, on 90 % of the pages that are one node's by nine tenths and more (of fft: it has most of their samples, in the mean
over pages); the stated interval of each object's exclusivity holds the exact value, says something, and is what the
definitions say (see stated.py); its part that is chance is held to what else is known of it; and what is said of local
accesses holds their exact share, of runs with four threads and with two (see shares.py).

| program | what it is for |
|---|---|
| sor | blocks of rows, read by neighbours at the borders: one node's almost alone, and the samples say so |
| adi | two sweeps one way and one the other: another node's in turn on most pages |
| cg | a matrix that each reads its own part of: few samples of each page, short runs |
| kmedian | points that each reads its own part of over and over, and others now and then |
| fft | in place by one, fetched once by others: as far apart in accesses as is assumed, and as often by either |
| is | tables, large ones of one writer, and a small one that all read: an object of a few pages |
| shift | other owners half-way: exactly half of the accesses, if not of the time; no page is one node's |
"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy
import pandas
import shares
import stated

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import checked

ROOT = pathlib.Path(__file__).resolve().parents[2]
NODEWISE, PROGRAMS = ROOT / "target/release/nodewise", ROOT / "build/workloads"
LIBRARIES = [ROOT / f"target/release/lib/libnodewise-{name}.so" for name in ("rt", "preload")]
NODES = 4
MACHINE = ["--machine", "westmere-4s", "--cpus", str(NODES), "--memory", "1G"]
# One CPU a node, and each thread on its own. The kernel samples five times a second, and the
# emulator makes a sample a hundred times as expensive as it is. Slices are short so that every other one sees
# what the rest does.
BOUND = ["--bind", "none", "--threads", str(NODES), "--env", "OMP_PROC_BIND=close", "--env", "OMP_PLACES=threads"]
OPTIONS = "--via faults --scan-period 200ms --slice 500ms --observe-budget 60% --force"
SHIFT = "shift"
# A sample is of whoever comes first after a scan. A page of fft is transformed by its owner and then fetched by the others,
# in turn, the node before the owner's first. Scans during the rows' transforms, which take most of the time, meet a page of
# the first rows after its owner has been there as often as before: either of the two is its samples' node by little more
# than chance, the more so where virtual CPUs wait for each other (89 % of the pages agreed on a busy host, 100 % on a quiet
# one, with more than 40 samples each). So only the mean over all pages is asked for: most of the samples are the owner's.
IN_TURN = "fft"
COMMANDS = {
    "sor": "--size 512 --iterations 400",
    "adi": "--size 64 --iterations 60",
    "cg": "--size 6000 --iterations 1000",
    "kmedian": "--size 8192 --iterations 4",
    "fft": "--size 65536 --iterations 80",
    "is": "--size 262144 --iterations 1400",
    SHIFT: "--size 200000 --iterations 1200",
}
EXCLUSIVE, AGREED = 0.9, 0.9
KINDS = ["heap", "static", "mapping"]
FEW = 20  # pages of an object below which nothing is said of it
# Of so many pages, almost all of whose samples are one node's, the interval must give it more than an equal share,
# whatever is allowed for. With 1 % of the samples from others, all in one of √200 blocks, the blocks are worth 82
# samples: 6.2 % may be others' (Wilson), the odds of which times 32 are 2.1; 2 % less is for the pages of which nothing
# is assumed. They are worth no more than a page's samples for each block, and how many those are is a matter of how
# often the kernel scanned while the program ran: 82 are 6 a page. How much of the *accesses* is one node's decides
# nothing here: if the owner's samples stand for 32 times as many as the others', 99 % of them are 76 % of the samples.
MANY, ALONE, WORTH, LEAST = 200, 0.99, 82, 0.3
ENOUGH = 3  # objects at least of which a run must say so much; the longest runs take 16 samples a page and more
ROUNDING = 1e-9
COMPARED = 5  # objects at least with enough samples for two halves
FEWER = 2  # threads of the second run of each program

check = checked.Checks()


def boot(folder, programs):
    """All programs in one boot, with all threads and with fewer: the exact counts by page, and their profiles."""
    record = f"autonuma {NODEWISE} record {OPTIONS}"
    lines = [f"{record} {threads} -o /profiles/{name}{end} -- {PROGRAMS}/{name} {programs[name]}"
             for threads, end in (("", ""), (f"--threads {FEWER}", "-fewer")) for name in programs]
    (folder / "batch").write_text("\n".join(lines))
    files = [NODEWISE, *LIBRARIES, ROOT / "workloads", *(PROGRAMS / n for n in programs)]
    needed = [argument for file in files for argument in ("--with", file)]
    command = [NODEWISE, "lab", *MACHINE, *BOUND, "--huge-pages", "never", "--time-limit", "30m", *needed,
               "--pages", folder / "pages.csv", "--scaled", folder / "machine.toml", "--bring", "/profiles",
               "--into", folder / "guest", "--json", *sys.argv[1:], "--batch", folder / "batch"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    print(done.stderr, file=sys.stderr)
    if done.returncode:
        raise SystemExit(f"FAILED status {done.returncode}")
    return pandas.read_csv(folder / "pages.csv"), folder / "guest/profiles"


def samples(profile):
    """Each slice's, page by page."""
    rows = pandas.concat(pandas.read_parquet(f) for f in sorted(profile.glob("accesses-*.parquet")))
    rows = rows.loc[rows.index.repeat(rows.len)]
    rows["page"] += rows.groupby(level=0).cumcount() if rows.len.max() > 1 else 0
    rows["count"] = rows.reads + rows.writes
    threads = pandas.read_parquet(profile / "threads.parquet")
    rows["node"] = rows.thread.map(threads.node).astype(int)
    return rows[rows.thread.map(threads.process) == 0]


def by_page(rows):
    """Of each page its object, and how often each node was seen."""
    table = rows.pivot_table(index=["object", "page"], columns="node", values="count", aggfunc="sum", fill_value=0)
    return table.reindex(columns=range(NODES), fill_value=0).reset_index("object")


def share(counts):
    return counts.max(axis=1) / counts.sum(axis=1)


def share_of_samples(pages):
    """Of an object's samples, those of the node that the page's other samples choose."""
    return statistics.fmean(stated.left_out(page) for page in pages)


def agreement(name, sampled, counted):
    """Of the judged pages of all objects."""
    clear = share(counted) > EXCLUSIVE
    agree = (sampled.idxmax(axis=1) == counted.idxmax(axis=1))[clear]
    enough = clear.sum() >= FEW
    check(enough and agree.mean() >= AGREED, f"{name}: the dominant node agrees on {agree.mean():.1%} of "
          f"{clear.sum()} pages of one node, of {len(sampled)} judged; {sampled.sum(axis=1).median():.0f} samples a page")


def foremost(name, sampled, counted):
    """Of the samples of all judged pages of one node: the owner's share, and that of the nodes after it in order."""
    clear = share(counted) > EXCLUSIVE
    owners, shares = counted.idxmax(axis=1)[clear].to_numpy(), sampled.div(sampled.sum(axis=1), axis=0)[clear].to_numpy()
    after = [shares[numpy.arange(len(owners)), (owners + step) % NODES].mean() for step in range(NODES)]
    check(clear.sum() >= FEW and after[0] > 0.5, f"{name}: the owner of a page has {after[0]:.1%} of its samples, the "
          f"nodes after it {', '.join(f'{one:.1%}' for one in after[1:])}; {clear.sum()} pages of one node")


def reported(profile, machine, numbers, objects):
    """What the report says of each of these objects. It numbers equal names in the order of the profile."""
    command = [NODEWISE, "report", profile, "--machine", machine, "--json"]
    said = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["objects"]
    names = objects.name.where(objects.name != "", objects.kind)[sorted(numbers)]
    called = {number: name if (names == name).sum() == 1 else f"{name} #{(names.loc[:number] == name).sum()}"
              for number, name in names.items()}
    return {number: [o for o in said if o["name"] == text] for number, text in called.items()}


def interval(name, said, seen, samples, exact):
    """What is stated of an object: it holds the exact value, to the last digit of either, and is what the
    definitions say. Returns whether it had to say much."""
    found, judged = [o["sampled"] for o in said], samples.sum(axis=0)
    if not check(len(found) == 1 and (found[0]["pages"], found[0]["judged"]) == (seen, len(judged)),
                 f"{name}: reported once, {len(judged)} of {seen} pages judged"):
        return False
    low, high = found[0]["range"]
    check(low <= exact <= high, f"{name}: {exact:.5f} exactly, {said[0]['exclusivity']:.5f} of samples; "
          f"stated {low:.5f} to {high:.5f}")
    again = stated.accesses(*stated.chance(samples), NODES)
    check(max(abs(low - again[0]), abs(high - again[1])) <= ROUNDING,
          f"{name}: by definition {again[0]:.5f} to {again[1]:.5f}")
    much = len(judged) >= MANY and share_of_samples(judged) >= ALONE and stated.most(judged.sum(axis=1), len(samples)) >= WORTH
    if much:
        check(low > LEAST, f"{name}: says that more than {LEAST:.0%} is one node's")
    alone = samples[:, judged.sum(axis=1) == judged.max(axis=1)]
    pages = alone.sum(axis=0)
    if len(pages) >= FEW:
        least = stated.of_one_node(pages.sum(axis=1), len(alone), NODES)
        check(abs(stated.accesses(*stated.chance(alone), NODES)[0] - least) <= ROUNDING,
              f"{name}: {least:.5f} at least of {len(pages)} pages seen from one node alone")
    return much


def by_slice(rows, pages):
    """Samples of these pages by slice, page and node; slices that have none are left out."""
    rows = rows[rows.page.isin(pages)]
    slices = numpy.unique(rows.slice)
    counts = numpy.zeros((len(slices), len(pages), NODES), dtype=int)
    at = numpy.searchsorted(slices, rows.slice), pages.get_indexer(rows.page), rows.node
    numpy.add.at(counts, at, rows["count"])
    return counts


def halves(rows, minimum):
    """Every other slice and the rest are two recordings of the same program, whose phases either sees by draws: the
    bounds of either hold the same share. Returns both, if enough pages are judged in both."""
    parts = [rows[rows.slice % 2 == part] for part in range(2)]
    judged = [by_page(part)[list(range(NODES))].sum(axis=1) >= minimum for part in parts]
    pages = judged[0].index[judged[0]].intersection(judged[1].index[judged[1]])
    return tuple(stated.chance(by_slice(part, pages)) for part in parts) if len(pages) >= FEW else None


def overlap(compared):
    """Were the bounds no wider than they must be, they would lie apart once in 200 times, and those of two objects
    of eight in one run of 1,500; were they half as wide, once in 6 times, and of two objects in 4 runs of 10."""
    for name, (one, other) in compared.items():
        print(f"      {name}: {one[0]:.3f} to {one[1]:.3f} of visits by half of the slices, {other[0]:.3f} to "
              f"{other[1]:.3f} by the other")
    apart = [name for name, (one, other) in compared.items() if one[0] > other[1] or other[0] > one[1]]
    check(len(compared) >= COMPARED and len(apart) <= 1,
          f"of {len(compared)} objects {len(apart)} differ between halves of the slices: {', '.join(apart) or 'none'}")


def compare(name, profile, exact, machine):
    """Returns how many intervals had to say much, and by object what halves of the slices say."""
    minimum = json.loads((profile / "manifest.json").read_text())["sampling"]["minimum_samples"]
    rows, objects = samples(profile), pandas.read_parquet(profile / "objects.parquet")
    said = reported(profile, machine, rows.object.unique(), objects)
    rows = rows[rows.object.map(objects.kind).isin(KINDS)]
    seen = by_page(rows)
    nodes = [f"node{n}" for n in range(NODES)]
    exact = exact.groupby("page")[nodes].sum().set_axis(range(NODES), axis=1)
    judged = seen[seen[list(range(NODES))].sum(axis=1) >= minimum]
    if not check(judged.index.isin(exact.index).all(), f"{name}: every judged page was accessed"):
        return 0, {}
    counted, told, compared = exact.loc[judged.index], [], {}
    if name != SHIFT:
        (foremost if name == IN_TURN else agreement)(name, judged[list(range(NODES))], counted)
    for number, pages in judged.groupby("object").groups.items():
        if len(pages) < FEW:
            continue
        title, truth = f"{name}, {objects.name[number] or objects.kind[number]}", share(counted.loc[pages]).mean()
        own = rows[rows.object == number]
        told.append(interval(title, said[number], (seen.object == number).sum(), by_slice(own, pages), truth))
        compared[title] = halves(own, minimum)
        if name == SHIFT:
            check(abs(truth - 0.5) < 0.01, f"{title}: two nodes' alike")
    check(told, f"{name}: {len(told)} objects have {FEW} judged pages")
    return sum(told), {title: both for title, both in compared.items() if both}


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        exact, profiles = boot(folder, COMMANDS)
        told = [compare(name, profiles / name, exact[exact.run == run], folder / "machine.toml")
                for run, name in enumerate(COMMANDS)]
        much = sum(count for count, _ in told)
        check(much >= ENOUGH, f"{much} objects of {MANY} and more pages are one node's almost alone")
        overlap({title: both for _, compared in told for title, both in compared.items()})
        runs = {f"{name}{end}": profiles / f"{name}{end}" for end in ("", "-fewer") for name in COMMANDS}
        shares.held(check, NODEWISE, folder / "machine.toml", exact, runs)
    check.end()


main()
