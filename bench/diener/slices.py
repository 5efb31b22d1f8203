"""Slices of one outer iteration: a recording whose slices end with each parallel region, joined from one iteration's first region
to the next one's. `record --slice` itself ends slices by time, accesses or region; where a number of accesses is reached inside a region,
which of 64 threads on few CPUs have done their part differs from iteration to iteration."""

import json
import shutil
from dataclasses import dataclass

import duckdb
from tables import write


@dataclass(frozen=True)
class Loop:
    """The region that begins an outer iteration, and how often an iteration has it; without one each slice is an iteration."""

    function: str
    line: int
    times: int


REGIONS = """
SELECT r.function, r.line, count(DISTINCT a.slice) AS times, min(a.slice) AS began
FROM '{folder}/accesses-*.parquet' a JOIN '{folder}/regions.parquet' r USING (region) WHERE a.region > 0 GROUP BY ALL
"""
# A slice of the recording belongs to the iteration whose first region it has, or the last before it that has it.
NUMBERED = """
CREATE TABLE numbered AS
WITH begun AS (
    SELECT DISTINCT a.slice FROM '{folder}/accesses-*.parquet' a JOIN '{folder}/regions.parquet' r USING (region)
    WHERE r.function = '{function}' AND r.line = {line})
SELECT fine, (dense_rank() OVER (ORDER BY iteration) - 1)::UINTEGER AS slice
FROM (SELECT s.slice AS fine, (count(b.slice) OVER (ORDER BY s.slice) + {times} - 1) // {times} AS iteration
      FROM '{folder}/slices.parquet' s LEFT JOIN begun b USING (slice))
"""
ACCESSES = """
SELECT n.slice, region, object, page, len, thread, sum(reads)::UBIGINT AS reads, sum(writes)::UBIGINT AS writes,
       sum(lines)::UBIGINT AS lines
FROM '{folder}/accesses-*.parquet' a JOIN numbered n ON n.fine = a.slice GROUP BY ALL ORDER BY n.slice, page, len, thread, region
"""
SLICES = """
SELECT n.slice, min(start_ns) AS start_ns, max(end_ns) AS end_ns
FROM numbered n JOIN '{folder}/slices.parquet' s ON s.slice = n.fine GROUP BY n.slice ORDER BY n.slice
"""
FIRST_TOUCHES = """
SELECT page, len, object, thread, site, n.slice, region
FROM '{folder}/first_touch.parquet' t JOIN numbered n ON n.fine = t.slice ORDER BY page
"""


def regions(profile):
    with duckdb.connect() as database:
        rows = database.execute(REGIONS.format(folder=profile)).fetchall()
    return {(function, line): (times, began) for function, line, times, began in rows}


def loop(short, longer, iterations):
    """What begins an iteration: of the regions that only the loop has, one that it has least often, and first. `short` and
    `longer` are recordings of `iterations` and of one more; None where no region is in each iteration."""
    before, after = regions(short), regions(longer)
    found = []
    for place, (times, began) in after.items():
        each = times - before.get(place, (0, 0))[0]
        if each > 0 and times == each * (iterations + 1):
            found.append((each, began, place))
    if not found:
        return None
    each, _, (function, line) = min(found)
    return Loop(function, line, each)


def join(recording, folder, begins):
    """Writes the profile whose slices are: all before the loop, then one outer iteration each; the last has what follows too."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(recording, folder, ignore=shutil.ignore_patterns("accesses-*", "raw"))
    manifest = json.loads((recording / "manifest.json").read_text(encoding="utf-8"))
    del manifest["crc32"]
    names = {"folder": recording, "function": begins.function, "line": begins.line, "times": begins.times}
    with duckdb.connect() as database:
        database.execute("SET threads = 1")
        database.execute(NUMBERED.format(**names))
        manifest["accesses"] = [{**write(database, ACCESSES.format(**names), folder / "accesses-0000.parquet"), "first_slice": 0}]
        for table, query in (("slices", SLICES), ("first_touch", FIRST_TOUCHES)):
            manifest["tables"][table] = write(database, query.format(**names), folder / f"{table}.parquet")
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
