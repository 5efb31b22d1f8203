"""Records, predicts, judges, checks in the laboratory, draws: see bench/reproduce-mai."""

import argparse
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import laboratory
import page
import ranges
from checks import CHECKS
from judge import inputs, judge
from judge.verdict import ROOT
from recordings import FOLDER, REPEATS, verified
from study import PROGRAMS, by_repeat, repeat


def say(text):
    print(f"reproduce-mai: {text}", file=sys.stderr, flush=True)


def timed(what, do):
    start = time.monotonic()
    found = do()
    say(f"{what}: {time.monotonic() - start:.0f} s")
    return found


def study(program, size, reuse):
    """The repeats of a program."""
    return [timed(f"{program} {number + 1}", lambda n=number: repeat(program, size, n, reuse)) for number in range(REPEATS)]


def main():
    parser = argparse.ArgumentParser(prog="bench/reproduce-mai")
    parser.add_argument("--fast", action="store_true", help="smaller programs")
    parser.add_argument("--reuse", action="store_true", help="keep recordings that are there")
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    size = "fast" if options.fast else "full"
    verified()
    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(PROGRAMS, pool.map(lambda p: study(p, size, options.reuse), PROGRAMS)))
    checked = timed("laboratory", laboratory.measure)
    (FOLDER / f"data-{size}.json").write_text(json.dumps({"programs": found, "laboratory": checked}, indent=1) + "\n", encoding="utf-8")
    repeats = by_repeat(found)
    verdicts = [judge(check, repeats, size=size, basis="simulation", ranges=ranges.of_row(check.id, found),
                      differs=ranges.differs(check.id, size), reason=ranges.reason(check.id, found),
                      tests=ranges.tests(check.id, found)) for check in CHECKS]
    for one in verdicts:
        one.write(ROOT / "build/reproduce" / size)
        say(f"{one.id}: {one.verdict}, {one.held} of {one.repeats}")
    rows = laboratory.inputs(checked)
    inputs.write("mai", size, rows)
    for what, ours, holds in rows:
        if not holds:
            say(f"not as it should be: {what}: {ours}")
    page.draw(found)
    (FOLDER / "index.html").write_text(page.write(size, found, verdicts, rows), encoding="utf-8")
    say(f"wrote {FOLDER / 'index.html'}")


if __name__ == "__main__":
    main()
