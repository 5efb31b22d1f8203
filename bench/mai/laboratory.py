"""A check of our own, not of the paper: mg under each policy on a virtual machine of four nodes. Each page of its arrays must be on
the node that the policy's definition says. The definitions are written here a second time, from the paper's section 3.1; what two
policies have in common is counted too, so that it shows whether this tells them apart (the sums over nodes do not)."""

import csv
import json
from collections import defaultdict

from commands import lab
from recordings import FOLDER, NODEWISE, PLAIN, command

MACHINE, NODES, THREADS = "mai-itanium2-fss", 4, 8
SIZES = (32, 2)
PAGE, ITEM = 4096, 8
# Arrays have pages of their own from 64 KiB on.
SMALLEST = 16
# The least prime above the number of nodes, as workloads/mai_policies.h has it.
PRIME = 5
# mg's grids, among which each array has its number; mai_random is seeded by it.
ARRAYS = 32


def mix(x):
    """SplitMix64 (lib/src/formulas.h)."""
    mask = (1 << 64) - 1
    x = (x + 0x9e3779b97f4a7c15) & mask
    x = ((x ^ (x >> 30)) * 0xbf58476d1ce4e5b9) & mask
    x = ((x ^ (x >> 27)) * 0x94d049bb133111eb) & mask
    return x ^ (x >> 31)


def cyclic(block, _):
    return block % NODES


def skew(block, _):
    return (block + block // NODES) % NODES


def prime(block, _):
    at = block % PRIME
    return at if at < NODES else (block // PRIME * (PRIME - NODES) + at - NODES) % NODES


def random(block, seed):
    return mix(seed ^ mix(block)) * NODES >> 64


def thread_of(row, rows):
    """As schedule(static) deals rows: the first `rows mod threads` threads get one more."""
    sizes = [rows // THREADS + (t < rows % THREADS) for t in range(THREADS)]
    return next(t for t in range(THREADS) if row < sum(sizes[:t + 1]))


DEALT = {"cyclic": cyclic, "skew": skew, "prime": prime, "random": random}
POLICIES = (*DEALT, *(f"{name}-rows" for name in DEALT), "bind-block")


def edge(pages):
    """Points on the edge of a grid: the largest cube in so many pages."""
    return max(n for n in range(1, 2000) if n ** 3 <= pages * PAGE // ITEM)


def node(policy, page, pages, seed):
    """Of a page of an array; a page belongs to the row that holds its middle byte."""
    n = edge(pages)
    row = min((page * PAGE + PAGE // 2) // (n * n * ITEM), n - 1)
    if policy == "bind-block":
        return thread_of(row, n) * NODES // THREADS
    rows = policy.endswith("-rows")
    return DEALT[policy.removesuffix("-rows")](row if rows else page, seed)


def boot():
    """By policy the arrays' pages: by array (its first page's number), the number of its pages and home by page."""
    batch, pages = FOLDER / "laboratory.batch", FOLDER / "laboratory.csv"
    lines = [f"first-touch {' '.join(map(str, command(PLAIN, 'mg', 'nas', SIZES)))} --policy {p}" for p in POLICIES]
    pages.unlink(missing_ok=True)
    batch.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = json.loads(lab([NODEWISE, "lab", "--machine", MACHINE, "--cpus", THREADS, "--bind", "none", "--huge-pages", "never", "--json",
                            "--batch", batch, "--pages", pages], OMP_NUM_THREADS=str(THREADS)))["runs"]
    homes = [defaultdict(dict) for _ in POLICIES]
    with open(pages, encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["object"]:
                first = int(row["object"])
                homes[int(row["run"])][first][int(row["page"]) - first] = int(row["home"])
    for policy, one in zip(POLICIES, found, strict=True):
        if one["exit_status"]:
            raise SystemExit(f"reproduce-mai: mg --policy {policy} in the laboratory: status {one['exit_status']}")
    extents = [{o["page"]: o["pages"] for o in one["objects"] if o["pages"] >= SMALLEST} for one in found]
    return {policy: [(size, homes[i][first]) for first, size in extents[i].items()] for i, policy in enumerate(POLICIES)}


def right(policy, array):
    """Pages of an array that are where the policy says, at the best seed, and the seed."""
    pages, home = array
    seeds = range(1, ARRAYS) if policy.startswith("random") else [0]
    return max((sum(node(policy, page, pages, seed) == on for page, on in home.items()), -seed) for seed in seeds)


def measure():
    """Of the pages found under each policy, per cent that lie as each definition says; and the seeds found under random."""
    arrays = boot()
    shares, seeds = {}, {}
    for found, its in arrays.items():
        count = sum(len(home) for _, home in its)
        shares[found] = {policy: 100 * sum(right(policy, array)[0] for array in its) / count for policy in POLICIES}
        if found.startswith("random"):
            seeds[found] = [-right(found, array)[1] for array in its]
    return {"shares": shares, "seeds": seeds, "arrays": {p: len(its) for p, its in arrays.items()}}


def inputs(data):
    """What is checked, what was found, and whether it is so."""
    rows = []
    for policy, by_definition in data["shares"].items():
        next_best = max((share, other) for other, share in by_definition.items() if other != policy)
        ours = f"{by_definition[policy]:.1f} %; as {next_best[1]} says {next_best[0]:.0f} %"
        rows.append([f"pages of mg that lie as {policy} says", ours, by_definition[policy] == 100 and next_best[0] < 100])
    for policy, seeds in data["seeds"].items():
        rows.append([f"{policy}: arrays are placed by seeds of their own", ", ".join(map(str, seeds)), len(set(seeds)) == len(seeds)])
    return rows
