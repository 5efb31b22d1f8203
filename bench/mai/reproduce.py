"""Records, predicts, checks in the laboratory, draws: see bench/reproduce-mai."""

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import laboratory
import page
from findings import NAMES, findings
from recordings import FOLDER, MACHINES, QUICK, SIZES, SLOWER, predictions, record

import web

THREADS = [2, 4, 8, 16]
# What the assumption about the paper's cores is worth: the same with others.
OTHER_CORES = [1, 2, 8]
# What the paper calls them, and what they are called here; the first two are no policies of MAI.
POLICIES = {"cyclic": "cyclic", "skew_mapp": "skew", "prime_mapp": "prime", "bind_block": "bind-block",
            "random": "random"}


def say(text):
    print(f"reproduce-mai: {text}", file=sys.stderr, flush=True)


def figures(prediction, sequential, threads):
    speedup = sequential / prediction["seconds"]
    return {"seconds": prediction["seconds"], "seconds_range": prediction["seconds_range"], "speedup": speedup,
            "efficiency": speedup / threads, "local": prediction["local_fraction"],
            "latency_ns": prediction["latency_ns"]}


def on_machine(profiles, machine, counts=THREADS, slower=SLOWER):
    """By threads and policy. Sequential: one thread, what it touches beside it."""
    master, parallel = profiles["master"], profiles["parallel"]
    sequential = predictions(parallel, machine, 1, ["first-touch"], slower)["first-touch"]["seconds"]
    found = {}
    for threads in counts:
        linux = predictions(master, machine, threads, ["first-touch"], slower)["first-touch"]
        placed = predictions(parallel, machine, threads, ["first-touch", *POLICIES.values()], slower)
        by_name = {"Linux": linux, "Parallel-Init": placed["first-touch"],
                   **{name: placed[policy] for name, policy in POLICIES.items()}}
        found[str(threads)] = {name: figures(p, sequential, threads) for name, p in by_name.items()}
    return found


def on_machines(profiles, counts=THREADS, slower=SLOWER):
    with ThreadPoolExecutor(len(MACHINES)) as pool:
        return dict(zip(MACHINES, pool.map(lambda m: on_machine(profiles, m, counts, slower), MACHINES)))


def study(program, sizes, reuse):
    start = time.monotonic()
    profiles = {}
    for init in ("master", "parallel"):
        say(f"{program}: recording, the {'master initialises' if init == 'master' else 'threads initialise'}")
        profiles[init] = record(program, init, sizes, reuse)
    recorded = time.monotonic()
    say(f"{program}: predicting for {len(MACHINES)} machines")
    found = on_machines(profiles)
    cores = {str(s): on_machines(profiles, [max(THREADS)], s) for s in OTHER_CORES}
    say(f"{program}: recorded in {recorded - start:.0f} s, predicted in {time.monotonic() - recorded:.0f} s")
    return found, cores


def main():
    parser = argparse.ArgumentParser(prog="bench/reproduce-mai")
    parser.add_argument("--quick", action="store_true", help="smaller programs")
    parser.add_argument("--reuse", action="store_true", help="keep recordings that are there")
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    say("2 minutes or so" if options.quick else "8 minutes or so on 2 quiet cores")
    sizes = QUICK if options.quick else SIZES
    studied = {p: study(p, s, options.reuse) for p, s in sizes.items()}
    data = {"quick": options.quick, "sizes": sizes, "threads": THREADS, "machines": NAMES, "slower": SLOWER,
            "programs": {p: found for p, (found, _) in studied.items()},
            "cores": {p: cores for p, (_, cores) in studied.items()}}
    say("laboratory: mg under each policy")
    start = time.monotonic()
    data["laboratory"] = laboratory.measure()
    say(f"laboratory: {time.monotonic() - start:.0f} s")
    found, placed = findings(data), laboratory.findings(data["laboratory"])
    page.draw(data)
    web.publish(FOLDER, data, found + placed, page.write(data, found, placed))


if __name__ == "__main__":
    main()
