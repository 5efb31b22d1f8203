"""Judges S1 to S13: see bench/reproduce-asymsched."""

import argparse

import drawings
import overhead
import page
import placements
import read_back
import several
import single
import table1
from judge import inputs, judge, untested
from judge.verdict import ROOT
from recordings import FOLDER, Recordings

NODES = "needs a machine of several nodes: `nodewise migrate` against migratepages"


def main():
    parser = argparse.ArgumentParser(prog="bench/reproduce-asymsched")
    parser.add_argument("--fast", action="store_true", help="few iterations, two workloads")
    parser.add_argument("--reuse", action="store_true", help="keep recordings that are there")
    parser.add_argument("--update", action="store_true", help="renew the drawings and outputs of docs/asymmetry.md, and nothing else")
    asked = parser.parse_args()
    if asked.update:
        return drawings.update()
    size = "fast" if asked.fast else "full"
    FOLDER.mkdir(parents=True, exist_ok=True)
    recordings = Recordings(size, asked.reuse)
    two, first = table1.judged(recordings)
    three, alone = single.judged(recordings)
    beside, workloads = several.judged(recordings)
    costs, why = overhead.judged(alone, workloads, three[0].ranges, beside[0].ranges)
    rows = [*two, *three, *beside, *costs, *placements.judged()]
    found = [judge(row.check, row.repeats, size=size, basis="simulation", ranges=row.ranges, differs=row.differs, reason=row.looked_at,
                   tests=row.tests) for row in rows]
    found.append(untested("S11", NODES, size=size))
    if why:
        found.append(untested("S10", why, size=size))
    found.sort(key=lambda one: int(one.id[1:]))
    for one in found:
        one.write(ROOT / "build/reproduce" / size)
        print(f"{one.id:4} {one.verdict}")
    given = read_back.all_inputs()
    inputs.write("asymsched", size, given)
    page.write(size, first, alone[0], workloads[0], found, given)
    print(f"wrote {(FOLDER / 'index.html').relative_to(ROOT)}")


if __name__ == "__main__":
    main()
