"""What other tools read in a profile: pandas and DuckDB agree with each other and with `nodewise`."""

import json
import pathlib
import subprocess
import sys
import unittest

import duckdb
import pandas

FOLDER = pathlib.Path(sys.argv.pop())
NODEWISE = "target/release/nodewise"


class Profile(unittest.TestCase):
    """Laws over one recorded profile."""

    @classmethod
    def setUpClass(cls):
        cls.manifest = json.loads((FOLDER / "manifest.json").read_text())
        files = [FOLDER / group["file"] for group in cls.manifest["accesses"]]
        cls.accesses = pandas.concat(map(pandas.read_parquet, files), ignore_index=True)
        report = subprocess.run(
            [NODEWISE, "report", FOLDER, "--machine", "machine-a", "--json"], check=True, capture_output=True
        )
        cls.report = json.loads(report.stdout)

    def table(self, name):
        return pandas.read_parquet(FOLDER / self.manifest["tables"][name]["file"])

    def test_manifest_lists_every_row(self):
        self.assertEqual(self.manifest["format"], 1)
        self.assertEqual(sum(group["rows"] for group in self.manifest["accesses"]), len(self.accesses))
        for name, entry in self.manifest["tables"].items():
            self.assertEqual(entry["rows"], len(self.table(name)), name)

    def test_duckdb_counts_as_pandas_does(self):
        query = f"SELECT sum(len * reads), sum(len * writes), sum(len * lines) FROM '{FOLDER}/accesses-*.parquet'"
        a = self.accesses
        expected = [int((a.len * column).sum()) for column in (a.reads, a.writes, a.lines)]
        self.assertEqual([int(n) for n in duckdb.sql(query).fetchall()[0]], expected)
        self.assertGreater(min(expected), 0)

    def test_report_counts_as_pandas_does(self):
        a = self.accesses
        total = (a.len * (a.reads + a.writes)).groupby(a.object).sum()
        objects = self.table("objects").assign(total=total.reindex(range(len(self.table("objects"))), fill_value=0))
        for reported in self.report["objects"]:
            name = reported["name"].split(" #")[0]  # the report numbers objects of one name
            same = objects[(objects.name == name) & (objects.total == reported["accesses"])]
            self.assertFalse(same.empty, reported)

    def test_rows_ascend_by_slice_and_page(self):
        keys = self.accesses[["slice", "page"]].apply(tuple, axis=1)
        self.assertTrue(keys.is_monotonic_increasing)

    def test_identifiers_join(self):
        for column, name in [("object", "objects"), ("thread", "threads"), ("region", "regions"), ("slice", "slices")]:
            known = set(self.table(name)[column])
            self.assertLessEqual(set(self.accesses[column]), known, name)

    def test_every_accessed_page_was_first_touched_once(self):
        def pages(rows):
            return rows.loc[rows.index.repeat(rows.len)].groupby(level=0).cumcount() + rows.page.repeat(rows.len)

        touched = pages(self.table("first_touch"))
        self.assertTrue(touched.is_unique)
        self.assertEqual(set(pages(self.accesses)), set(touched))

    def test_eight_threads_share_the_gathered_vector(self):
        a = self.accesses.merge(self.table("objects")[["object", "name", "kind"]], on="object")
        heap = a[a.kind == "heap"].groupby("name").thread.nunique()
        self.assertGreaterEqual(heap.max(), 8, heap)


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=2).result
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed")
    sys.exit(failed > 0)
