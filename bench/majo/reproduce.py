"""Counts, records, predicts, judges, draws: see bench/reproduce-majo."""

import argparse
import json
import sys
import time
from statistics import median

import figures
import laboratory
import page
import ranges
import recordings
from checks import CHECKS
from judge import inputs, judge
from judge.verdict import ROOT
from programs import MOVED, REPEATS, TRANSFORMED
from recordings import FOLDER
from study import Repeat, agreement, scaled_bytes

BASIS = {"M2": "recording", "M7": "laboratory and simulation", "M8": "recording", "M9": "simulation", "M10": "simulation"}


def say(text):
    print(f"reproduce-majo: {text}", file=sys.stderr, flush=True)


def timed(what, do):
    start = time.monotonic()
    found = do()
    say(f"{what}: {time.monotonic() - start:.0f} s")
    return found


def study(size, reuse):
    """By program the repeats."""
    found = {program: [] for program in TRANSFORMED}
    for number in range(REPEATS):
        repeat = Repeat(size, number, reuse)
        for program in TRANSFORMED:
            found[program].append(timed(f"{program} {number + 1}", lambda r=repeat, p=program: r.program(p)))
    return found


def read_back(size, found, lab, compared):
    """What is checked, what was found, and whether it is so."""
    rows = [["threads, nodes", "8 on 2, 32 on 4", True], ["latencies and bandwidths of nehalem-2s", "section 2.1", True]]
    for name, (counted, predicted) in compared.items():
        rows.append([f"{name}: remote share in the laboratory and as the simulator has its pages", f"{counted:.1f}, {predicted:.1f} %",
                     abs(counted - predicted) <= 3])
    for program in MOVED:
        kernel = median(scaled_bytes(program, size, one[f"{program} redistribute"]) for one in lab)
        noted = median(one["moving"]["noted"] for one in found[program])
        rows.append([f"{program}: MB migrated as the laboratory's kernel counts, scaled; no more than the recording notes, which has pages "
                     "that were not touched too", f"{kernel / 1e6:.0f}, {noted / 1e6:.0f}", 0.75 * noted <= kernel <= noted])
    return rows


def main():
    parser = argparse.ArgumentParser(prog="bench/reproduce-majo", description="Majo and Gross (CGO 2012) on our workloads")
    parser.add_argument("--fast", action="store_true", help="smaller recordings")
    parser.add_argument("--reuse", action="store_true", help="keep recordings that are there")
    options = parser.parse_args()
    size, reuse = "fast" if options.fast else "full", options.reuse
    timed("built", recordings.build)
    # One after the other: the guest keeps two CPUs busy, and the times of plain and recorded runs count.
    lab = timed("laboratory", lambda: laboratory.measure(reuse))
    found = study(size, reuse)
    compared = timed("model beside laboratory", lambda: agreement(lab[0], reuse))
    (FOLDER / f"data-{size}.json").write_text(json.dumps({"laboratory": lab, "programs": found, "compared": compared}, indent=1) + "\n",
                                              encoding="utf-8")
    repeats = [ranges.data_of(found, size, lab, n) for n in range(REPEATS)]
    verdicts = [judge(check, repeats, size=size, basis=BASIS.get(check.id, "laboratory"), ranges=ranges.of_row(check.id, found, size, lab),
                      differs=ranges.differs(check.id, size), reason=ranges.reason(check.id, found, lab),
                      tests=ranges.tests(check.id, found, size, lab)) for check in CHECKS]
    for one in verdicts:
        one.write(ROOT / "build/reproduce" / size)
        say(f"{one.id}: {one.verdict}, {one.held} of {one.repeats}")
    checked = read_back(size, found, lab, compared)
    inputs.write("majo", size, checked)
    for what, ours, holds in checked:
        if not holds:
            say(f"not as it should be: {what}: {ours}")
    figures.draw(repeats[0])
    (FOLDER / "index.html").write_text(page.write(size, repeats[0], found, verdicts, checked), encoding="utf-8")
    say(f"wrote {FOLDER / 'index.html'}")


if __name__ == "__main__":
    main()
