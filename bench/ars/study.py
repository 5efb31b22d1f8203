"""What the checks are made from: predictions of every policy, by program, latency ratio and setting.

The data of one repeat: {"ratio": the one that is judged at, "by_ratio": {ratio: {program: {policy: figures}}}}."""

from concurrent.futures import ThreadPoolExecutor

import recordings
from choices import CHOSEN, ONCE, OPEN, RATIOS, varied
from judge.check import Range
from programs import CHANGES, PROGRAMS
from recordings import TAKES

# What our model assumes and varies by itself: as `simulate` calls it → in words, and where its range is from.
ASSUMED = {
    "parallelism": ("misses in flight", "2 to 12: from dependent loads to a core that fills its line buffers"),
    "assumed_ns": ("compute per access", "0.05 to 20 ns on the recording host, as an emulated run has no times"),
    "assumed_bandwidth": ("assumed bandwidths, times", "2/3 to 3/2: what is measured of nominal bandwidths (docs/model.md)"),
    "queue_ns": ("delay under load", "13 to 71 ns: fifteen published curves"),
}


class Study:
    """Predictions, made once each."""

    def __init__(self, range_takes):
        self.range_takes = range_takes
        self.found = {}  # (program, take, ratio, setting) → policy → figures

    def run(self, say):
        wanted = [(p, take, ratio, CHOSEN) for p in PROGRAMS for take in TAKES for ratio in RATIOS]
        for name in OPEN:
            for choice in varied(name).values():
                wanted += [(p, take, CHOSEN.ratio, choice) for p in PROGRAMS for take in self.range_takes]
                # What the latencies give SOR is part of one finding.
                wanted += [("SOR", take, ratio, choice) for take in self.range_takes for ratio in RATIOS]
        # What reasons are tested with.
        wanted += [(p, take, CHOSEN.ratio, ONCE) for p in PROGRAMS for take in self.range_takes]
        wanted += [(p, take, CHOSEN.ratio, CHOSEN) for p in CHANGES for take in self.range_takes]
        jobs = {}
        for program, take, ratio, choice in dict.fromkeys(wanted):
            jobs.setdefault((program, take, recordings.key(program, take, choice, ratio)), []).append((program, take, ratio, choice))
        say(f"{len(jobs)} simulations")
        with ThreadPoolExecutor(2) as pool:
            for found in pool.map(one, jobs.values()):
                self.found.update(found)

    def data(self, choice, take):
        by_ratio = {ratio: {p: self.found[p, take, ratio, choice] for p in PROGRAMS if (p, take, ratio, choice) in self.found}
                    for ratio in RATIOS}
        return {"ratio": choice.ratio, "by_ratio": by_ratio}

    def tried(self, choice):
        """The recordings that ranges are run with, at another setting."""
        return [self.data(choice, take) for take in self.range_takes]

    def changing(self, place):
        """With the program that is made to change its pattern in another one's place."""
        (name,) = CHANGES
        found = []
        for take in self.range_takes:
            by_ratio = self.data(CHOSEN, take)["by_ratio"]
            found.append({"ratio": CHOSEN.ratio, "by_ratio": {CHOSEN.ratio: {
                **by_ratio[CHOSEN.ratio], place: self.found[name, take, CHOSEN.ratio, CHOSEN]}}})
        return found

    def repeats(self):
        return [self.data(CHOSEN, take) for take in TAKES]

    def open_ranges(self, names):
        """Of what the paper does not give."""
        return [Range(name, OPEN[name][2], {value: [self.data_of(name, choice, take) for take in self.range_takes]
                                            for value, choice in varied(name).items()}) for name in names]

    def data_of(self, name, choice, take):
        if name == "latency ratio":
            return {**self.data(CHOSEN, take), "ratio": choice.ratio}
        return self.data(choice, take)

    def assumed_ranges(self):
        """Of what our model assumes. Moves do not depend on it, as there is no budget."""
        repeats = self.repeats()
        anywhere = repeats[0]["by_ratio"][CHOSEN.ratio]["SOR"]["out-u"]["scenarios"]
        ranges = []
        for varied_, (name, source) in ASSUMED.items():
            values = [s for s in anywhere if s.split()[0] == varied_]
            by_value = {"typical": repeats, **{s.split()[1]: [in_scenario(data, s) for data in repeats] for s in values}}
            ranges.append(Range(name, source, by_value))
        return ranges


def one(jobs):
    """Of settings that one call predicts: all of one program, take and ratio."""
    program, take, ratio, _ = jobs[0]
    found = recordings.simulate(program, take, [choice for *_, choice in jobs], ratio)
    return {(program, take, ratio, choice): by_policy for choice, by_policy in found.items()}


def in_scenario(data, scenario):
    """The same with times of another scenario."""
    def times(by_policy):
        return {policy: {**f, "seconds": f["scenarios"][scenario]} for policy, f in by_policy.items()}
    return {**data, "by_ratio": {ratio: {p: times(by_policy) for p, by_policy in by_program.items()}
                                 for ratio, by_program in data["by_ratio"].items()}}
