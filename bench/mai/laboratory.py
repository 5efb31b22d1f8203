"""Each policy in mg, in the laboratory: where its arrays' pages lie, shown by exact counts of who accesses
which node's memory, beside what the policy's definition makes of the accesses in a recording."""

import json

import duckdb
from commands import run
from recordings import FOLDER, NODEWISE, PLAIN, RECORDED, command

from web import Finding

MACHINE, NODES, THREADS = "mai-itanium2-fss", 4, 8
SIZES = (32, 6)
PAGE, ITEM = 4096, 8
# Arrays have pages of their own from 64 KiB on.
SMALLEST = 16
# The compiler's last steps load some values again after the recording's counters are in place, and libc's memset,
# with which rows are first touched, stores vectors, which a recording counts as words.
TOLERANCE = 0.01

PRIME = 5


def mix(x):
    """SplitMix64 (lib/src/formulas.h)."""
    mask = (1 << 64) - 1
    x = (x + 0x9e3779b97f4a7c15) & mask
    x = ((x ^ (x >> 30)) * 0xbf58476d1ce4e5b9) & mask
    x = ((x ^ (x >> 27)) * 0x94d049bb133111eb) & mask
    return x ^ (x >> 31)


def prime(block):
    at = block % PRIME
    return at if at < NODES else (block // PRIME * (PRIME - NODES) + at - NODES) % NODES


def skew(block):
    return (block + block // NODES) % NODES


def thread_of(row, rows):
    """As schedule(static) deals rows: the first `rows mod threads` threads get one more."""
    sizes = [rows // THREADS + (t < rows % THREADS) for t in range(THREADS)]
    return next(t for t in range(THREADS) if row < sum(sizes[:t + 1]))


# Policy → node of a page, by the page and by the row that holds the page's middle byte.
POLICIES = {
    "cyclic": lambda page, row, rows: page % NODES,
    "skew": lambda page, row, rows: skew(page),
    "prime": lambda page, row, rows: prime(page),
    "random": lambda page, row, rows: mix(mix(page)) * NODES >> 64,
    "cyclic-rows": lambda page, row, rows: row % NODES,
    "skew-rows": lambda page, row, rows: skew(row),
    "prime-rows": lambda page, row, rows: prime(row),
    "random-rows": lambda page, row, rows: mix(mix(row)) * NODES >> 64,
    "bind-block": lambda page, row, rows: thread_of(row, rows) * NODES // THREADS,
}

QUERY = """
SELECT o.pages, unnest(range(a.page::BIGINT, (a.page + a.len)::BIGINT)) - o.first_page AS index, t.openmp,
       a.reads + a.writes
FROM '{profile}/accesses-*.parquet' a
JOIN '{profile}/objects*.parquet' o USING (object) JOIN '{profile}/threads*.parquet' t ON t.thread = a.thread
WHERE o.kind = 'mapping' AND o.pages >= {smallest}
"""


def recorded():
    """Accesses to the arrays: pages of the array, index of the page, OpenMP thread, how many."""
    profile = FOLDER / "profiles" / "laboratory"
    run([NODEWISE, "record", "--force", "-o", profile, "--", *command(RECORDED, "mg", "parallel", SIZES)],
        OMP_NUM_THREADS=str(THREADS), OMP_WAIT_POLICY="passive")
    return duckdb.sql(QUERY.format(profile=profile, smallest=SMALLEST)).fetchall()


def edge(pages):
    """Points on the edge of a grid: the largest cube in so many pages."""
    points = pages * PAGE // ITEM
    return max(n for n in range(1, 2000) if n ** 3 <= points)


def expected(rows, policy):
    """Accesses by node of the thread and of the memory, by the policy's definition."""
    matrix = [[0] * NODES for _ in range(NODES)]
    edges = {pages: edge(pages) for pages, *_ in rows}
    for pages, page, thread, accesses in rows:
        n = edges[pages]
        row = min((page * PAGE + PAGE // 2) // (n * n * ITEM), n - 1)
        matrix[thread * NODES // THREADS][POLICIES[policy](page, row, n)] += accesses
    return matrix


def counted():
    """The same as the laboratory counts it, a matrix a policy."""
    batch = FOLDER / "laboratory.batch"
    lines = [f"first-touch {' '.join(map(str, command(PLAIN, 'mg', 'parallel', SIZES)))} --policy {p}" for p in POLICIES]
    batch.write_text("\n".join(lines) + "\n")
    found = run([NODEWISE, "lab", "--machine", MACHINE, "--cpus", THREADS, "--bind", "none", "--huge-pages", "never",
                 "--json", "--batch", batch], OMP_NUM_THREADS=str(THREADS))
    matrices = {}
    for policy, one in zip(POLICIES, json.loads(found)["runs"], strict=True):
        if one["exit_status"]:
            raise SystemExit(f"reproduce-mai: mg --policy {policy} in the laboratory: status {one['exit_status']}")
        arrays = [o["matrix"] for o in one["objects"] if o["pages"] >= SMALLEST]
        matrices[policy] = [[sum(m[c][n] for m in arrays) for n in range(NODES)] for c in range(NODES)]
    return matrices


def shares(matrix):
    total = max(1, sum(map(sum, matrix)))
    return [[cell / total for cell in row] for row in matrix]


def local(matrix):
    return sum(matrix[n][n] for n in range(NODES))


def measure():
    rows, matrices = recorded(), counted()
    return {p: {"expected": shares(expected(rows, p)), "counted": shares(matrices[p])} for p in POLICIES}


def largest_difference(policy):
    pairs = zip(policy["expected"], policy["counted"])
    return max(abs(a - b) for e, c in pairs for a, b in zip(e, c))


def findings(data):
    found = []
    for name, policy in data.items():
        difference = largest_difference(policy)
        ours = (f"local {100 * local(policy['counted']):.1f} % counted, {100 * local(policy['expected']):.1f} % by definition; "
                f"cells differ by {100 * difference:.1f} points at most")
        found.append(Finding(f"mg's pages lie as {name} says", "by definition", ours, difference <= TOLERANCE))
    return found
