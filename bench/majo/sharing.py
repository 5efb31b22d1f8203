"""Who shares which pages, by Majo and Gross's section 2.2, read from a profile's tables."""

import duckdb
from programs import APART

CLASSES = ["non-shared", "node-shared", "uniformly shared"]

# Stacks and images are the paper's first category, left out there too. Initialisation does not count:
# the paper samples accesses, of which a page's first is one among thousands.
QUERY = """
WITH used AS (
    SELECT a.page, a.len, a.thread, a.thread * {nodes} // {threads} AS node
    FROM '{profile}/accesses-*.parquet' a
    JOIN '{profile}/objects*.parquet' o USING (object) JOIN '{profile}/regions*.parquet' r USING (region)
    WHERE o.kind IN ('heap', 'mapping', 'static') AND r.function NOT IN {apart}),
pages AS (
    SELECT count(DISTINCT thread) AS threads, count(DISTINCT node) AS nodes
    FROM (SELECT unnest(range(page::BIGINT, (page + len)::BIGINT)) AS page, thread, node FROM used) GROUP BY page)
SELECT CASE WHEN threads = 1 THEN 'non-shared' WHEN nodes = 1 THEN 'node-shared' ELSE 'uniformly shared' END AS class,
       count(*) FROM pages GROUP BY class
"""


def sharing(profile, nodes, threads):
    """Shares of the pages that the computation uses, by class, in per cent."""
    counts = dict(duckdb.sql(QUERY.format(profile=profile, nodes=nodes, threads=threads, apart=tuple(APART))).fetchall())
    total = max(1, sum(counts.values()))
    return {name: 100 * counts.get(name, 0) / total for name in CLASSES}
