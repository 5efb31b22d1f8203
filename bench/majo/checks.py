"""The paper's rows M1 to M10 as checks. A repeat's data: "lab" (by program and label what the laboratory counted), "sharing" (by
program and form, per cent of pages by class), "scaling" (by program and threads, predicted seconds by form), "moving" (by program,
predicted seconds by default and of computing, and bytes migrated). Shares are per cent."""

from copy import deepcopy
from statistics import fmean

from judge import Check
from judge.check import BETTER
from judge.verdict import DEAD, RIVAL
from laboratory import PROFILED
from programs import COUNTS, EXCLUDED, LARGE, MOVED, PROGRAMS, SWEEPS, THREADS, TRANSFORMED

CHEAP, DEAR = 0.3, 5  # seconds a GB (10⁹ bytes) moved: M7
PRICES = (CHEAP, 1, DEAR)
UNIFORM = "uniformly shared"


def remote(data, program, label="default"):
    return data["lab"][f"{program} {label}"]["remote"]


def changed(edit):
    """Data in which `edit(data)` was applied to a copy."""
    def one(data):
        copy = deepcopy(data)
        edit(copy)
        return copy
    return one


def counted_as(label, stands_in):
    """In the laboratory, `stands_in`'s counts in `label`'s place, in all programs that have both."""
    def edit(data):
        for program in TRANSFORMED:
            lab = data["lab"]
            if f"{program} {label}" in lab:
                lab[f"{program} {label}"] = lab[f"{program} {stands_in}"]
    return changed(edit)


def interleaved(data):
    """Half of all accesses are remote, whoever makes them."""
    for one in data["lab"].values():
        one["remote"] = 50.0


# ---- M1 to M6: the laboratory's counts. ----


def by_default(data):
    return {program: remote(data, program) for program in (*TRANSFORMED, *EXCLUDED)}


def m1(f):
    return (abs(f["bt"] - PROGRAMS["bt"].remote) <= 8 and abs(f["ft"] - PROGRAMS["ft"].remote) <= 10
            and all(8 <= f[p] <= 51 for p in TRANSFORMED) and all(f[p] <= 8 for p in EXCLUDED))


def profiled(data):
    return {"cg": remote(data, "cg", PROFILED)} | {
        f"{p}, of its own": 100 * remote(data, p, PROFILED) / remote(data, p) for p in SWEEPS}


def m3(f):
    return f["cg"] <= 5 and all(f[f"{p}, of its own"] >= 50 for p in SWEEPS)


def transformed(data):
    each = {p: remote(data, p, "matched") for p in SWEEPS}
    return {"mean": fmean(each.values()), **each}


def m4(f):
    return f["mean"] <= 5 and all(f[p] <= 8 for p in SWEEPS)


def two_ways(program):
    return lambda data: {"profile": remote(data, program, PROFILED), "transformed": remote(data, program, "matched")}


# ---- M2, M8: the recordings' pages. ----


def all_private(data):
    for forms in data["sharing"].values():
        for classes in forms.values():
            classes.clear()


def shared_as(form, stands_in):
    def edit(data):
        for forms in data["sharing"].values():
            forms[form] = forms[stands_in]
    return changed(edit)


def uniform(data, program, form):
    return data["sharing"][program][form].get(UNIFORM, 0.0)


def sharing(data):
    found = {}
    for program in SWEEPS:
        before, after = (uniform(data, program, form) for form in ("default", "matched"))
        found |= {f"{program}, default": before, f"{program}, transformed": after}
    return found


def m8(f):
    return all(f[f"{p}, transformed"] <= f[f"{p}, default"] / 3 for p in SWEEPS)


# ---- M7: moving inside the program. ----


def moving(data):
    found = {f"{p}, % remote": remote(data, p, "redistribute") for p in MOVED}
    for program in MOVED:
        one = data["moving"][program]
        found |= {f"{program}, total over default at {price:g} s/GB": total(one, price) / one["default"] for price in PRICES}
        found[f"{program}, computing over default"] = one["computing"] / one["default"]
    return found


def total(one, price):
    return one["computing"] + one["bytes"] / 1e9 * price


def m7(f):
    def ratio(program, price):
        return f[f"{program}, total over default at {price:g} s/GB"]
    return (f["bt, % remote"] <= 3 and f["ft, % remote"] <= 10
            and all(ratio(p, DEAR) > BETTER and ratio(p, CHEAP) >= 1 / BETTER for p in MOVED))


def nothing_moves(data):
    for program in MOVED:
        data["lab"][f"{program} redistribute"] = data["lab"][f"{program} default"]
        data["moving"][program] |= {"computing": data["moving"][program]["default"], "bytes": 0}


def moves_for_nothing(data):
    for program in MOVED:
        data["moving"][program]["bytes"] = 0


# ---- M9, M10: the larger machine. ----


def gain(data, program, threads):
    forms = data["scaling"][program][str(threads)]
    return forms["default"] / forms["matched"]


def gains(data):
    each = {p: gain(data, p, THREADS[LARGE]) for p in TRANSFORMED}
    return {"mean": fmean(each.values()), "best": max(each.values()), **each}


def m9(f):
    return f["mean"] >= 1.3 and f["best"] >= 2 and all(f[p] > BETTER for p in TRANSFORMED)


def scaling(data):
    return {f"{p}, {COUNTS[-1]} over {COUNTS[0]} threads": gain(data, p, COUNTS[-1]) / gain(data, p, COUNTS[0]) for p in TRANSFORMED}


def m10(f):
    return all(value > BETTER for value in f.values())


def default_everywhere(data):
    for by_threads in data["scaling"].values():
        for forms in by_threads.values():
            forms["matched"] = forms["default"]


NOT_TRANSFORMED = {"the default form in the transformed one's place": counted_as("matched", "default")}
NOT_FASTER = {"the default form in the transformed one's place": changed(default_everywhere)}
BY_PROFILE = {"the profile's placement in its place": counted_as("matched", PROFILED)}

NO_POLICY = "The row is about programs as they are; nothing is placed, so that programs without the property stand in."
PROGRAMS_ALONE = {DEAD: NO_POLICY, RIVAL: NO_POLICY}
ONE = {RIVAL: "The rival is the default form, which is also the one that places nothing: one stand-in is both."}
NO_MOVES = {RIVAL: "The rival is the default form, which is also the one in which nothing moves: one stand-in is both."}
ALIKE = "The row claims that both are alike, so that one in the other's place passes by definition."
ACCESSES = ("Programs and initialisation are the original benchmark's, threads, nodes and placements the text's, and accesses are counted: "
            "no model is in the figures. Where sizes differ, the row says so. Not run: traffic behind caches, which the paper counts "
            "(2.1), but for bt (M1) and cg (M3).")
PAGES = ("The text says which pages are shared uniformly, and pages are counted in exact recordings: no model is in the figures. Where "
         "sizes differ, the row says so. Not run: what few samples make of them, but for bt (M2).")
BY_EXACT_PROFILE = f"{ACCESSES} Nor placement by a profile of few samples, but for ft (M6)."

CHECKS = (
    Check("M1", by_default, m1, inputs={"pages dealt in turn: half of all accesses remote": changed(interleaved)}, unit=" %",
          lacks=PROGRAMS_ALONE, not_run="Traffic behind caches, which the paper counts (2.1), but for bt (a test of the row)."),
    Check("M2", lambda data: {"bt": uniform(data, "bt", "default")}, lambda f: 25 <= f["bt"] <= 45,
          inputs={"no page shared": changed(all_private)}, unit=" %", lacks=PROGRAMS_ALONE),
    Check("M3", profiled, m3, {"first touch in the profile's place": counted_as(PROFILED, "default")},
          {"the transformed form in the profile's place": counted_as(PROFILED, "matched")}, unit=" %", not_run=BY_EXACT_PROFILE),
    Check("M4", transformed, m4, NOT_TRANSFORMED, BY_PROFILE, unit=" %", not_run=ACCESSES),
    Check("M5", two_ways("cg"), lambda f: abs(f["profile"] - f["transformed"]) <= 2, NOT_TRANSFORMED, BY_PROFILE, unit=" %",
          remark=ALIKE, not_run=BY_EXACT_PROFILE),
    Check("M6", two_ways("ft"), lambda f: f["profile"] - f["transformed"] >= 3, NOT_TRANSFORMED, BY_PROFILE, unit=" %"),
    Check("M7", moving, m7, {"nothing moves": changed(nothing_moves)}, inputs={"moving costs nothing": changed(moves_for_nothing)},
          lacks=NO_MOVES),
    Check("M8", sharing, m8, {"the default form in the transformed one's place": shared_as("matched", "default")}, unit=" %", lacks=ONE,
          not_run=PAGES),
    Check("M9", gains, m9, NOT_FASTER, unit=" ×", lacks=ONE),
    Check("M10", scaling, m10, NOT_FASTER, unit=" ×", lacks=ONE),
)
