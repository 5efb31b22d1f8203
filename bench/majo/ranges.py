"""What the paper leaves open and what the model assumes, row by row; where our runs are not the paper's; tests of reasons."""

from copy import deepcopy
from statistics import median

from judge import cores
from judge.check import Range, Test
from laboratory import PROFILED, SAMPLED
from programs import LARGE, MOVED, PROGRAMS, SIZES, SMALL, TRANSFORMED
from study import scaled_bytes

MODEL = ("the model's scenarios (docs/model.md): misses in flight 2 to 12, share of lines from memory, queueing, bandwidths and "
         "latencies where the machine's file assumes them, cost of recording, one at an end of its range at a time; each form "
         "at its least and at its most")
KEYS = "who makes is's keys is not said: NPB 3's create_seq is parallel, NPB 2.3's is not"
DENSITY = "2.2: the paper's profiles are sampled, with samples on up to 90 % of a program's pages"
PREDICTED = {"M7": SMALL, "M9": LARGE, "M10": LARGE}


def data_of(found, size, lab, number, view="typical"):
    """What the checks take, of one repeat."""
    each = {program: repeats[number] for program, repeats in found.items()}
    return {
        "lab": lab[number],
        "sharing": {p: one["sharing"] for p, one in each.items() if "sharing" in one},
        "scaling": {p: seconds(one["scaling"]["threads"], view) for p, one in each.items()},
        "moving": {p: moving(each[p]["moving"], p, size, lab[number], view) for p in MOVED},
    }


def seconds(by_threads, view):
    return {t: {form: one["seconds"][view] for form, one in forms.items()} for t, forms in by_threads.items()}


def moving(one, program, size, lab, view):
    times = {key: one[key]["seconds"][view] for key in ("default", "computing")}
    return {**times, "bytes": scaled_bytes(program, size, lab[f"{program} redistribute"])}


def at_factor(found, size, lab, number, machine, factor):
    """A repeat at a core factor of the machine."""
    data = data_of(found, size, lab, number)
    each = {p: repeats[number] for p, repeats in found.items()}
    if machine == LARGE:
        data["scaling"] = {p: seconds(each[p]["scaling"]["factors"][str(factor)], "typical") for p in TRANSFORMED}
    else:
        data["moving"] = {p: moving(each[p]["moving"]["factors"][str(factor)], p, size, lab[number], "typical") for p in MOVED}
    return data


def keys_by_master(data):
    copy = deepcopy(data)
    copy["lab"]["is default"] = copy["lab"]["is master"]
    return copy


def of_row(row, found, size, lab):
    numbers = range(len(lab))
    repeats = [data_of(found, size, lab, n) for n in numbers]
    if row == "M1":
        return [Range("is's keys made by", KEYS, {"all threads": repeats, "one": [keys_by_master(r) for r in repeats]})]
    if row in ("M2", "M6"):
        sampled = pages_sampled(repeats, found) if row == "M2" else [with_samples(r) for r in repeats]
        return [Range("profile", DENSITY, {"exact": repeats, "samples on 90 % of the pages": sampled})]
    if row not in PREDICTED:
        return []
    machine = PREDICTED[row]
    views = {view: [data_of(found, size, lab, n, view) for n in numbers] for view in ("least", "most")}
    factors = {f"{f:g}": [at_factor(found, size, lab, n, machine, f) for n in numbers] for f in cores.plausible(machine)}
    return [Range("model", MODEL, {"least": views["least"], "typical": repeats, "most": views["most"]}),
            Range("core factor", cores.SOURCE, factors)]


COUNTED = ("accesses as executed, over whole arrays and the whole run, on a virtual machine without caches; the paper counts traffic "
           "behind caches; five runs in one boot")
SHARED = "pages of exact recordings; the paper's are sampled, and NAS's programs have more arrays"
PREDICTION = "predicted times of what computes, as in NAS's timings; recordings with 32 threads, neighbours joined for fewer"


def sizes(size, which):
    chosen = {p: one.lab if which == "lab" else getattr(one, which).get(size) for p, one in PROGRAMS.items()}
    return ", ".join(f"{p} {n} ({i})" for p, (n, i) in ((p, s) for p, s in chosen.items() if s))


def differs(row, size):
    assert size in SIZES
    if row in ("M2", "M8"):
        return f"{SHARED}; size (iterations): {sizes(size, 'small')}."
    if row == "M7":
        return (f"remote shares: {COUNTED}. Times are predicted at {sizes(size, 'small')}; computing as on this machine with the other "
                "node's memory as near as its own; bytes are the laboratory's, scaled with arrays and iterations; \"slower\" is by more "
                "than 2 %.")
    if row in ("M9", "M10"):
        return f"{PREDICTION}; size (iterations): {sizes(size, 'large')}, of classes C in the paper."
    return f"{COUNTED}; initialised as in NAS (--init nas); size (iterations): {sizes(size, 'lab')}."


def reason(row, found, lab):
    """What was looked at of a row that does not hold, in this run's own figures."""
    first = lab[0]
    if row == "M3":
        by_size = first["cg profile"]["remote by size"]
        vectors = 100 * by_size[min(by_size, key=int)] / max(1, sum(by_size.values()))
        return f"{vectors:.0f} % of cg's remote accesses under the profile's placement are to vectors, which all threads gather from."
    if row == "M10":
        busy = ", ".join(f"{p} {one['default']['busy']:.0f} and {one['matched']['busy']:.0f} %"
                         for p, one in ((p, found[p][0]["scaling"]["threads"]["32"]) for p in TRANSFORMED))
        return f"The busiest controller with 32 threads, default and transformed: {busy}."
    return ""


# ---- Tests of reasons: what a row's data would be. ----


def with_remote(data, key, percent):
    copy = deepcopy(data)
    copy["lab"][key]["remote"] = percent
    return copy


def with_classes(data, classes):
    copy = deepcopy(data)
    copy["sharing"]["bt"]["default"] = classes
    return copy


def with_samples(data):
    copy = deepcopy(data)
    copy["lab"][f"ft {PROFILED}"] = copy["lab"][f"ft {SAMPLED}"]
    return copy


def by_lines(repeats, found):
    """bt's share, at the recorded size, of the lines that the model's caches let through; the other programs' of all accesses."""
    return [with_remote(d, "bt default", one["moving"]["default"]["remote lines"]) for d, one in zip(repeats, found["bt"])]


def pages_sampled(repeats, found):
    return [with_classes(d, one["sampled"]) for d, one in zip(repeats, found["bt"])]


SAMPLED_PROFILE = "as few of the accesses as a sampled profile has (samples on 90 % of the pages: 2.2)"


def tests(row, found, size, lab):
    """Runs that take away what a reason could be."""
    repeats = [data_of(found, size, lab, n) for n in range(len(lab))]
    if row == "M1":
        # The other programs' shares are still of all accesses, so the row as such is not tested.
        return [Test("counting, of bt alone and at the recorded size, the lines that the model's caches let through",
                     by_lines(repeats, found), ("bt",), instead=True)]
    if row == "M2":
        return [Test(f"with {SAMPLED_PROFILE}", pages_sampled(repeats, found))]
    if row == "M3":
        lines = [with_remote(d, f"cg {PROFILED}", one["cached"]["frequency"]) for d, one in zip(repeats, found["cg"])]
        before = median(one["cached"]["first-touch"] for one in found["cg"])
        return [Test("counting, of cg with as many rows as class B has, the lines that the model's caches let through "
                     f"({before:.0f} % are remote under first touch)", lines, open=True)]
    if row == "M6":
        return [Test(f"with a profile of {SAMPLED_PROFILE}", [with_samples(d) for d in repeats])]
    return []
