"""A recording's computation on shared data, cut into slices of so many accesses: a profile like any other.

The paper's histograms are of shared data, and SPLASH-2 says to measure from after initialisation. A recording
has everything, in slices so short that threads on one CPU take turns from one to the next; joined, they are
slices in which four CPUs run side by side, whatever the host."""

import functools
import json
import shutil

import duckdb
from tables import write

# Shared memory of SPLASH-2's programs is allocated: objects of their own here. The rest is the threading
# runtime's, the C library's and stacks.
SHARED = ("heap",)

COMPUTATION = """
CREATE TABLE fine AS
SELECT a.slice, a.region, a.object, unnest(range(a.page::BIGINT, (a.page + a.len)::BIGINT)) AS page, a.thread, a.reads, a.writes, a.lines
FROM '{folder}/accesses-*.parquet' a
JOIN '{folder}/objects.parquet' o USING (object) JOIN '{folder}/regions.parquet' r USING (region)
WHERE o.kind IN {shared} AND r.function IN {computes};
CREATE TABLE whole AS
SELECT slice AS fine_slice, (sum(made) OVER (ORDER BY slice) - made) // {accesses} AS cut
FROM (SELECT slice, sum(reads + writes) AS made FROM fine GROUP BY slice);
CREATE TABLE numbered AS SELECT fine_slice, (dense_rank() OVER (ORDER BY cut) - 1)::UINTEGER AS slice FROM whole;
"""
ACCESSES = """
SELECT n.slice, region, object, page::UBIGINT AS page, 1::UINTEGER AS len, thread, sum(reads)::UBIGINT AS reads,
       sum(writes)::UBIGINT AS writes, sum(lines)::UBIGINT AS lines
FROM fine f JOIN numbered n ON f.slice = n.fine_slice GROUP BY ALL ORDER BY n.slice, page, thread, region
"""
SLICES = """
SELECT n.slice, min(start_ns) AS start_ns, max(end_ns) AS end_ns
FROM numbered n JOIN '{folder}/slices.parquet' s ON s.slice = n.fine_slice GROUP BY n.slice ORDER BY n.slice
"""
# What was touched before the computation comes first, in the order of addresses.
FIRST_TOUCHES = """
SELECT page, len, object, thread, site, coalesce(n.slice, 0)::UINTEGER AS slice, region
FROM '{folder}/first_touch.parquet' t LEFT JOIN numbered n ON t.slice = n.fine_slice ORDER BY page
"""


def cut(recording, folder, computes, accesses):
    """Writes the profile to `folder`; returns its number of slices."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    manifest = json.loads((recording / "manifest.json").read_text())
    del manifest["crc32"]
    manifest["slicing"] = f"accesses:{accesses}"
    for entry in manifest["tables"].values():
        shutil.copy(recording / entry["file"], folder)
    names = {"folder": recording, "shared": f"({', '.join(map(repr, SHARED))})",
             "computes": f"({', '.join(map(repr, computes))})", "accesses": accesses}
    with duckdb.connect() as database:
        database.execute(COMPUTATION.format(**names))
        entry = {**write(database, ACCESSES.format(**names), folder / "accesses-0000.parquet"), "first_slice": 0}
        manifest["accesses"] = [entry]
        for table, query in (("slices", SLICES), ("first_touch", FIRST_TOUCHES)):
            manifest["tables"][table] = write(database, query.format(**names), folder / f"{table}.parquet")
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    return manifest["tables"]["slices"]["rows"]


@functools.cache
def size(folder):
    """Pages, accesses to them, and slices."""
    query = (f"SELECT count(DISTINCT page), sum(reads + writes)::BIGINT, count(DISTINCT slice) "
             f"FROM '{folder}/accesses-0000.parquet'")
    with duckdb.connect() as database:
        (row,) = database.execute(query).fetchall()
    return row


@functools.cache
def allocated(folder):
    """Shared pages that there are when the computation begins: touched by whoever initialised them."""
    query = (f"SELECT sum(len)::BIGINT FROM '{folder}/first_touch.parquet' JOIN '{folder}/objects.parquet' USING (object) "
             f"WHERE kind IN ({', '.join(map(repr, SHARED))})")
    with duckdb.connect() as database:
        ((pages,),) = database.execute(query).fetchall()
    return pages


@functools.cache
def remote_to_used(folder):
    """How many pages are elsewhere to one of them that a node has used so far, over nodes and intervals; pages are dealt round-robin
    and a thread is a node's, as in the simulation's beginning."""
    query = f"""
WITH first AS (SELECT thread, page, min(slice) AS slice FROM '{folder}/accesses-0000.parquet' WHERE page % 4 <> thread GROUP BY ALL),
slices AS (SELECT DISTINCT slice FROM '{folder}/accesses-0000.parquet'),
nodes AS (SELECT thread, count(*) FILTER (WHERE page % 4 <> thread) AS remote FROM (SELECT DISTINCT thread FROM first),
          (SELECT DISTINCT page FROM '{folder}/accesses-0000.parquet') GROUP BY thread),
used AS (SELECT remote, (SELECT count(*) FROM first f WHERE f.thread = n.thread AND f.slice <= s.slice) AS used FROM nodes n, slices s)
SELECT sum(remote) / sum(used) FROM used WHERE used > 0"""
    with duckdb.connect() as database:
        ((ratio,),) = database.execute(query).fetchall()
    return float(ratio)


@functools.cache
def best_shares(folder):
    """The largest local share, of a page that stays where it is best over the run, and of one that could be where it
    is best in each slice: what moving could win at most. A thread is a node's."""
    query = f"""
WITH used AS (SELECT slice, page, thread, sum(reads + writes) AS n FROM '{folder}/accesses-0000.parquet' GROUP BY ALL),
whole AS (SELECT page, thread, sum(n) AS n FROM used GROUP BY ALL)
SELECT (SELECT sum(n) FROM (SELECT max(n) AS n FROM whole GROUP BY page)) / sum(n),
       (SELECT sum(n) FROM (SELECT max(n) AS n FROM used GROUP BY slice, page)) / sum(n) FROM whole"""
    with duckdb.connect() as database:
        (row,) = database.execute(query).fetchall()
    return [float(share) for share in row]
