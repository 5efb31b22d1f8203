"""Runs, records, predicts, draws, checks: see bench/reproduce-majo."""

import argparse
import sys
import time

import laboratory
import page
import recordings
from findings import findings
from programs import PROGRAMS, TRANSFORMED
from recordings import AS_PLACED, FOLDER, SHAPES
from sharing import sharing

import web

# Threads of the predictions. The paper's 8 on the smaller machine, its four settings on the larger.
THREADS = {"nehalem-2s": [4, 8], "westmere-4s": [4, 8, 16, 32]}
QUICK = {"nehalem-2s": [8], "westmere-4s": [8, 32]}
STUDIED = ("nehalem-2s", 8)


def say(text):
    print(f"reproduce-majo: {text}", file=sys.stderr, flush=True)


class Study:
    """What the options leave of the whole."""

    def __init__(self, options):
        self.reuse = options.reuse
        self.threads = QUICK if options.quick else THREADS
        self.quick = options.quick

    def sizes(self, program):
        row = PROGRAMS[program].sizes
        return row.quick if self.quick else row.recorded

    def record(self, program, form, threads, machine=None):
        return recordings.recorded(program, form, self.sizes(program), threads, machine, self.reuse)

    def behaviour(self, program):
        """Who shares pages, form by form, and what redistributing moves at this size."""
        machine, threads = STUDIED
        found = {"sharing": {}}
        for form in ("default", *PROGRAMS[program].forms):
            profile = self.record(program, form, threads, machine if form != "default" else None)
            found["sharing"][form] = sharing(profile, SHAPES[machine][0], threads)
            if form == "redistribute":
                found["migrated_bytes"] = recordings.migrated(profile)
        return found

    def predictions(self, program):
        """Predicted times by machine, threads and form; and of one thread on its own node."""
        alone = self.record(program, "default", 1)
        cpu = recordings.plain_cpu(program, self.sizes(program))
        found = {}
        for machine, counts in self.threads.items():
            one = recordings.simulate(alone, machine, 1, ["first-touch"], cpu)["first-touch"]
            found[machine] = {"1": {"default": one}}
            for threads in counts:
                default = self.record(program, "default", threads)
                matched = self.record(program, "matched", threads, machine)
                by_policy = recordings.simulate(default, machine, threads, ["first-touch", "frequency"], cpu)
                placed = recordings.simulate(matched, machine, threads, ["first-touch", AS_PLACED],
                                              recordings.form_cpu(matched, default, cpu))
                found[machine][str(threads)] = {"default": by_policy["first-touch"],
                                                laboratory.PROFILED: by_policy["frequency"],
                                                "matched": placed["as placed"]}
        return found


def timed(what, do):
    start = time.monotonic()
    found = do()
    say(f"{what}: {time.monotonic() - start:.0f} s")
    return found


def agreement(measured):
    """The model's remote share of exactly what the laboratory ran, beside what was counted there."""
    machine, threads = STUDIED
    found = {}
    for name in TRANSFORMED:
        sizes = PROGRAMS[name].sizes.lab
        cpu = recordings.plain_cpu(name, sizes)
        profiles = {form: recordings.recorded(name, form, sizes, threads, machine if form == "matched" else None)
                    for form in ("default", "matched")}
        asked = {"default": "first-touch", "matched": AS_PLACED}
        predicted = {form: recordings.simulate(profiles[form], machine, threads, [policy], cpu)[recordings.plain(str(policy))]
                     for form, policy in asked.items()}
        found[name] = {form: [measured[f"{name} {form}"]["remote"], predicted[form]["remote_of_run"]] for form in predicted}
    return found


def main():
    parser = argparse.ArgumentParser(prog="reproduce-majo", description="Majo and Gross (CGO 2012) on our workloads")
    parser.add_argument("--quick", action="store_true", help="smaller recordings and fewer settings")
    parser.add_argument("--reuse", action="store_true", help="keep recordings that are there")
    study = Study(parser.parse_args())
    timed("built", recordings.build)
    data = {"laboratory": {}}
    for machine in laboratory.MACHINES:
        runs = timed(f"laboratory, {machine}", lambda m=machine: laboratory.measure(m))
        data["laboratory"][machine] = {" ".join(key): run for key, run in runs.items()}
    data["agreement"] = timed("model beside laboratory", lambda: agreement(data["laboratory"][STUDIED[0]]))
    data["behaviour"] = {name: timed(f"{name}, sharing", lambda n=name: study.behaviour(n)) for name in PROGRAMS}
    data["predictions"] = {name: timed(f"{name}, predicted", lambda n=name: study.predictions(n)) for name in TRANSFORMED}
    found = findings(data)
    page.draw(data)
    web.publish(FOLDER, data, found, page.write(data, found))


if __name__ == "__main__":
    main()
