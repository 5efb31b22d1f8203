"""A recording with few of its accesses, as a sampled profile has: for the tests of two reasons (M2, M6).

Majo and Gross sample by the processor (2.2): their samples cover up to 90 % of a program's pages. So each access is taken with the
probability at which that many pages have a sample. Which ones a latency threshold would choose is not modelled."""

import json
import shutil

import duckdb
import numpy
from tables import write

COVERED = 0.9
PAGES = """
SELECT a.slice, a.region, a.object, unnest(range(a.page::BIGINT, (a.page + a.len)::BIGINT)) AS page, a.thread, a.reads, a.writes, a.lines
FROM '{folder}/accesses-*.parquet' a
"""
FEW = """
SELECT slice::UINTEGER AS slice, region, object, page::UBIGINT AS page, 1::UINTEGER AS len, thread, reads::UBIGINT AS reads,
       writes::UBIGINT AS writes, least(lines, reads + writes)::UBIGINT AS lines
FROM drawn WHERE reads + writes > 0 ORDER BY slice, page, thread, region
"""


def rate(accesses):
    """The probability of an access at which `COVERED` of the pages with so many accesses have a sample."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        covered = 1 - numpy.exp(-middle * accesses).mean()
        low, high = (middle, high) if covered < COVERED else (low, middle)
    return high


def few(profile, folder, seed):
    """Writes the profile to `folder`, which is returned; the draw is the seed's."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(profile, folder, ignore=shutil.ignore_patterns("accesses-*", "raw"))
    manifest = json.loads((profile / "manifest.json").read_text(encoding="utf-8"))
    del manifest["crc32"]
    random = numpy.random.default_rng(seed)
    with duckdb.connect() as database:
        drawn = database.execute(PAGES.format(folder=profile)).fetchnumpy()
        made = drawn["reads"].astype(float) + drawn["writes"]
        chance = rate(numpy.bincount(numpy.unique(drawn["page"], return_inverse=True)[1], made))
        for kind in ("reads", "writes"):
            drawn[kind] = numpy.minimum(random.poisson(chance * drawn[kind]), drawn[kind])
        database.register("drawn", drawn)
        manifest["accesses"] = [{**write(database, FEW, folder / "accesses-0000.parquet"), "first_slice": 0}]
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    return folder
