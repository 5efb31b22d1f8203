"""Records, simulates, judges, draws: see bench/reproduce-ars."""

import argparse
import json
import shutil
import sys
import time

import page
import recordings
from choices import CHOSEN
from findings import CHECKS, COUNTED, ranges_of, readings
from judge import inputs, judge, ledger
from judge.verdict import ROOT
from notes import Reasons, differs
from programs import CHANGES, PROGRAMS
from recordings import FOLDER, TAKES
from slices import best_shares, size
from study import Study

# Recordings that ranges are run with.
RANGE_TAKES = {"fast": range(1), "full": TAKES}


def say(text):
    print(f"reproduce-ars: {text}", file=sys.stderr, flush=True)


def verdicts(study, size_, sizes_):
    repeats, assumed = study.repeats(), study.assumed_ranges()
    why = Reasons(study, sizes_)
    found = []
    for identifier, check in CHECKS.items():
        ranges = study.open_ranges(ranges_of(identifier)) + ([] if identifier in COUNTED else assumed)
        if identifier == "A11":
            ranges += readings(repeats)
        found.append(judge(check, repeats, size=size_, basis="simulation", ranges=ranges, differs=differs(identifier),
                           reason=why.of_row(identifier), tests=why.tests(identifier)))
    return found


def sizes():
    """Of the first recording of each program: pages, accesses, and the largest local shares."""
    folders = {p: recordings.profile(p, CHOSEN.interval, 0) for p in PROGRAMS}
    return {p: (*size(folder)[:2], best_shares(folder)) for p, folder in folders.items()}


def for_docs(size_):
    """docs/reproduce-ars.md shows Figure 2: the ledger takes it over with the verdicts."""
    folder = ledger.FRESH / size_ / ledger.IMAGES
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(FOLDER / f"figure2-{CHOSEN.ratio}.svg", folder / "ars-figure2.svg")


def main():
    parser = argparse.ArgumentParser(prog="bench/reproduce-ars")
    parser.add_argument("--fast", action="store_true", help="the nightly size: ranges with one recording")
    parser.add_argument("--reuse", action="store_true", help="keep recordings that are there")
    asked = parser.parse_args()
    size_ = "fast" if asked.fast else "full"
    if not asked.reuse:
        shutil.rmtree(FOLDER / "profiles", ignore_errors=True)
    start = time.monotonic()
    wanted = [(p, take) for p in PROGRAMS for take in TAKES] + [(p, take) for p in CHANGES for take in RANGE_TAKES[size_]]
    for program, take in wanted:
        recordings.record(program, take, asked.reuse)
    say(f"recorded in {time.monotonic() - start:.0f} s")
    study = Study(RANGE_TAKES[size_])
    study.run(say)
    say(f"simulated, {time.monotonic() - start:.0f} s")
    sizes_ = sizes()
    found = verdicts(study, size_, sizes_)
    for verdict in found:
        verdict.write(ROOT / "build/reproduce" / size_)
        print(f"{verdict.id:4} {verdict.verdict:14} {page.shown(verdict)}; range {page.shares(verdict)}")
    inputs.write("ars", size_, page.INPUTS)
    page.draw(study)
    for_docs(size_)
    (FOLDER / "data.json").write_text(json.dumps([data["by_ratio"] for data in study.repeats()]) + "\n", encoding="utf-8")
    (FOLDER / "index.html").write_text(page.write(study, found, sizes_, asked.fast), encoding="utf-8")
    say(f"wrote {FOLDER / 'index.html'}, {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
