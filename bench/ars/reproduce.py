"""Records, simulates, checks, draws: see bench/reproduce-ars."""

import argparse
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from statistics import fmean, median_low

import page
import recordings
from choices import CHOSEN, KNOBS, options, policy_text
from findings import findings
from programs import ALGORITHMS, COUNTS, OTHERS, PROGRAMS
from recordings import FOLDER, START, TAKES
from slices import best_shares, size

import web

RATIOS = [10, 20, 30, 50, 100]
MIDDLE = 30
STATIC = [START, "locality"]
MEANS = ["seconds", "local_fraction", "migration_seconds"]


def say(text):
    print(f"reproduce-ars: {text}", file=sys.stderr, flush=True)


def predictions(program, ratio, policies, choice=CHOSEN, take=0):
    """By plain name of policy."""
    folder = recordings.profile(program, choice.accesses, take)
    written = {p: policy_text(p, choice) for p in policies}
    found = recordings.simulate(folder, [*STATIC, *written.values()], ratio, options(folder, choice))
    return {p: found[text] for p, text in {**{s: s for s in STATIC}, **written}.items()}


def together(takes):
    """Of several takes: mean times and shares, median counts."""
    def of(policy):
        each = [found[policy] for found in takes]
        return {**{key: fmean(p[key] for p in each) for key in MEANS},
                **{key: median_low(p[key] for p in each) for key in COUNTS}}
    return {policy: of(policy) for policy in takes[0]}


def study(program, ratios, choice=CHOSEN):
    folder = recordings.profile(program, choice.accesses)
    policies = [*ALGORITHMS.values(), *OTHERS]
    by_ratio = {r: [predictions(program, r, policies, choice, take) for take in TAKES] for r in ratios}
    pages, accesses, slices = size(folder)
    local = {p: [100 * s["local_fraction"] for s in found["slices"]] for p, found in by_ratio[MIDDLE][0].items()}
    return {"pages": pages, "accesses": accesses, "slices": slices, "best": best_shares(folder),
            "minimum_samples": options(folder, choice)["minimum-samples"], "local": local,
            "ratios": {str(r): together(takes) for r, takes in by_ratio.items()}}


def sensitivity(program, choice):
    found = predictions(program, MIDDLE, ALGORITHMS.values(), choice)
    start = found[START]["seconds"]
    return {p: {"speedup": start / found[p]["seconds"], **{c: found[p][c] for c in COUNTS}} for p in ALGORITHMS.values()}


def main():
    parser = argparse.ArgumentParser(prog="bench/reproduce-ars")
    parser.add_argument("--quick", action="store_true", help="three latency ratios, and none of the paper's open choices varied")
    parser.add_argument("--reuse", action="store_true", help="keep recordings that are there")
    asked = parser.parse_args()
    ratios = [RATIOS[0], MIDDLE, RATIOS[-1]] if asked.quick else RATIOS
    if not asked.reuse:
        shutil.rmtree(FOLDER / "profiles", ignore_errors=True)
    start = time.monotonic()
    for program in PROGRAMS:
        for take in TAKES:
            recordings.record(program, take, asked.reuse)
    say(f"recorded in {time.monotonic() - start:.0f} s")
    data = {"quick": asked.quick, "ratios": ratios, "middle": MIDDLE, "chosen": asdict(CHOSEN), "sensitivity": {}}
    with ThreadPoolExecutor(2) as pool:
        data["programs"] = dict(zip(PROGRAMS, pool.map(lambda p: study(p, ratios), PROGRAMS)))
        say(f"simulated, {time.monotonic() - start:.0f} s")
        for knob, choices in ({} if asked.quick else KNOBS).items():
            data["sensitivity"][knob] = {
                str(value): dict(zip(PROGRAMS, pool.map(lambda p, c=choice: sensitivity(p, c), PROGRAMS)))
                for value, choice in choices.items()}
            say(f"{knob}, {time.monotonic() - start:.0f} s")
        data["held"] = {}
        for knob in () if asked.quick else ("half-life", "reading"):
            data["held"][knob] = {}
            for value, choice in KNOBS[knob].items():
                studied = dict(zip(PROGRAMS, pool.map(lambda p, c=choice: study(p, ratios, c), PROGRAMS)))
                data["held"][knob][str(value)] = {f.claim: f.holds for f in findings({**data, "programs": studied})}
            say(f"findings by {knob}, {time.monotonic() - start:.0f} s")
    found = findings(data)
    page.draw(data)
    web.publish(FOLDER, data, found, page.write(data, found))


if __name__ == "__main__":
    main()
