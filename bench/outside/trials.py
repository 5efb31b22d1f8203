"""What errors are tried to be explained by: a run without what a reason names, on the points that it is said of.

Which points and what is taken away was written down before the runs. A trial says what became of the errors, no more."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass

import duckdb
from tables import write

ROWS = "SELECT * REPLACE (({lines})::UBIGINT AS lines) FROM '{folder}/accesses-*.parquet' ORDER BY slice, page, len, thread, region"


@dataclass(frozen=True)
class Trial:
    """`of`: which points' programs. `options`: further ones of `simulate`. `lines`: of a row of the profile, where not its own."""

    what: str
    of: Callable
    options: tuple = ()
    lines: str = ""


TRIALS = (
    Trial("streams with 40 misses in flight, more than the 12 that the model goes to, as with a prefetcher",
          lambda name: name.startswith("STREAM") or name.endswith("sequential_reads"), ("--misses-in-flight", 40)),
    Trial("stores that fetch no line and wait for none", lambda name: name.endswith("writes"),
          lines="CASE WHEN reads = 0 THEN 0 ELSE lines END"),
    Trial("a quarter of the lines fetched, which is what reached memory of dirtest by the source's counters",
          lambda name: name.startswith("dirtest"), lines="ceil(lines / 4)"),
)


def changed(profile, lines):
    """The profile with other numbers of lines."""
    folder = profile.with_name(f"{profile.name}-changed")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(profile, folder, ignore=shutil.ignore_patterns("accesses-*", "raw"))
    manifest = json.loads((profile / "manifest.json").read_text(encoding="utf-8"))
    del manifest["crc32"]
    with duckdb.connect() as database:
        rows = ROWS.format(folder=profile, lines=lines)
        manifest["accesses"] = [{**write(database, rows, folder / "accesses-0000.parquet"), "first_slice": 0}]
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    return folder
