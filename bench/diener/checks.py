"""The paper's rows D1 to D14 as checks. A repeat's data: by program what study.behaviour gives, and under "speedup" by machine
and policy the predicted speed-ups over first-touch. Figures are per cent, but for ratios, which say so."""

from copy import deepcopy
from statistics import fmean

from judge import Check
from judge.check import BETTER
from judge.verdict import DEAD, RIVAL, spread
from programs import CHANGING, STATIC
from study import MACHINES, POLICIES, RIVALS, THRESHOLDS

CONFIGURATIONS = {"4 nodes, 4K": 84, "4 nodes, 2M": 78, "64 nodes, 4K": 73, "64 nodes, 2M": 65}  # III.B
TABLE_I = {  # row means
    "pages": {"first-touch": 54, "locality": 71, "interleave": 99, "balanced": 71, "mixed": 81},
    "accesses": {"first-touch": 42, "locality": 73, "interleave": 89, "balanced": 95, "mixed": 80},
}
GAINS = {  # V.B
    "Itanium": {"random": 5.2, "interleave": 5.7, "locality": 20.9, "balanced": 14.4, "mixed": 19.4},
    "Xeon": {"random": 8.7, "interleave": 15.8, "locality": 18.5, "balanced": 14.6, "mixed": 23.7},
    "Opteron": {"random": 6.3, "interleave": 7.2, "locality": 50.0, "balanced": 23.9, "mixed": 61.8},
}
BASE, LARGE, MANY = "4 nodes, 4K", "4 nodes, 2M", "64 nodes, 4K"
WITHIN = 1e-9  # of rounding
BALANCED = ("pages", "accesses")
LOW = 95  # D6: per cent of pages that never move


def names(data):
    """The programs that are judged; a test of a reason may leave some out."""
    return [name for name in STATIC if name in data]


def mean(data, get):
    """Over the programs, per cent."""
    return 100 * fmean(get(data[name]) for name in names(data))


def exclusivity(data, configuration):
    return mean(data, lambda p: p["exclusivity"][configuration])


def balance(data, metric, policy):
    return mean(data, lambda p: p["balance"][policy][metric])


def gain(data, machine, policy):
    """The average predicted gain over first-touch, per cent."""
    return mean(data, lambda p: p["speedup"][machine][policy] - 1)


def ratios_by_program(data, machine, policy):
    return {name: data[name]["speedup"][machine][policy] for name in names(data)}


def ratios(data, machine, policy):
    return list(ratios_by_program(data, machine, policy).values())


def gains(data, machine):
    return {policy: gain(data, machine, policy) for policy in (*RIVALS, "mixed")}


def share(values):
    values = list(values)
    return 100 * sum(values) / len(values)


def near(figures, machine):
    return all(paper / 2 <= figures[p] <= 2 * paper for p, paper in GAINS[machine].items())


def first(figures, policy):
    """By more than 2 % of the time."""
    rest = max(value for name, value in figures.items() if name != policy)
    return (100 + figures[policy]) / (100 + rest) > BETTER


# ---- What stands in. ----


def changed(edit):
    """Data in which `edit(program's data)` was applied to every program."""
    def one(data):
        copy = deepcopy(data)
        for program in copy.values():
            edit(program)
        return copy
    return one


def speed(place, stands_in, machines=tuple(m.title for m in MACHINES)):
    """`stands_in`'s times in `place`'s."""
    def edit(program):
        for machine in machines:
            program["speedup"][machine][place] = program["speedup"][machine][stands_in]
    return changed(edit)


def never_moving(program):
    for machine in program["speedup"].values():
        machine.update(dict.fromkeys(machine, 1.0))


def balanced_as(place, stands_in):
    return changed(lambda program: program["balance"].update({place: program["balance"][stands_in]}))


def all_first_touch(program):
    program["balance"] = dict.fromkeys(POLICIES, program["balance"]["first-touch"])


def uniform(program):
    program["exclusivity"] = {key: 1 / int(key.split()[0]) for key in program["exclusivity"]}


def private(program):
    program["exclusivity"] = dict.fromkeys(program["exclusivity"], 1.0)


def uniform_unless_base(program):
    program["exclusivity"] |= {LARGE: 1 / 4, MANY: 1 / 64}


def another_owner_each_slice(program):
    program["moves"], program["later_moves"] = [0.0, 0.0, 0.0, 0.0, 1.0], 1.0


def as_the_xeon(program):
    program["speedup"]["Opteron"] = program["speedup"]["Xeon"]


def ends_apart(program):
    """The threshold decides everything: locality at its low end, interleave at its high one."""
    for machine in program["speedup"].values():
        machine["mixed:0.8"], machine["mixed:0.95"] = machine["locality"], machine["interleave"]


def in_place(place):
    """The times of every other policy that the paper runs, in the place of the one that a row is about, each by itself."""
    return {f"{other} in {place}'s place": speed(place, other) for other in (*RIVALS, "mixed") if other != place}


def dead(place):
    return {f"first-touch in {place}'s place": speed(place, "first-touch")}


def balance_in_place(place):
    """The same of their balances."""
    return {f"{other} in {place}'s place": balanced_as(place, other) for other in POLICIES if other not in (place, "first-touch")}


def any_threshold(stands_in):
    """A policy without a threshold in mixed's place."""
    def edit(program):
        for machine in program["speedup"].values():
            machine.update({f"mixed:{t}": machine[stands_in] for t in THRESHOLDS})
    return changed(edit)


NOTHING = {"first-touch in every policy's place": changed(never_moving)}
EVEN = {"first-touch in every policy's place": changed(all_first_touch)}

# ---- The rows. ----


def d1(f):
    return all(abs(f[c] - paper) <= 5 + WITHIN for c, paper in CONFIGURATIONS.items())


def falls(data):
    found = {}
    rises = []
    for label, key in (("2 MiB", LARGE), ("64 nodes", MANY)):
        each = [100 * (data[name]["exclusivity"][BASE] - data[name]["exclusivity"][key]) for name in names(data)]
        rises.append(-min(each))
        found |= {f"programs, {label}": share(fall <= 15 for fall in each), f"largest fall, {label}": max(each)}
    return found | {"largest rise": max(0.0, *rises)}


def d2_words(f):
    each = (f"{label}: {spread(f[f'programs, {label}'], ' %')} of programs fall by at most 15 points, the most by "
            f"{spread(f[f'largest fall, {label}'])}" for label in ("2 MiB", "64 nodes"))
    return f"{'; '.join(each)}; the largest rise: {spread(f['largest rise'])}"


def d2(f):
    return f["programs, 2 MiB"] >= 75 and f["programs, 64 nodes"] >= 75 and f["largest rise"] <= 1


def table(data):
    return {f"{policy}, {metric}": balance(data, metric, policy) for metric, row in TABLE_I.items() for policy in row}


def d3(f):
    return all(abs(f[f"{policy}, {metric}"] - paper) <= 8 for metric, row in TABLE_I.items() for policy, paper in row.items())


def against_first_touch(data):
    lower = share(data[n]["balance"]["locality"]["accesses"] < data[n]["balance"]["first-touch"]["accesses"] for n in names(data))
    a, b = (balance(data, "accesses", policy) for policy in ("first-touch", "locality"))
    return {"first-touch": a, "locality": b, "difference": b - a, "programs where it is lower": lower}


def d5(f):
    highest = min(f["interleave"], f["balanced"])
    return f["locality"] < f["mixed"] < f["interleave"] and max(f["first-touch"], f["locality"], f["mixed"]) < highest


def moves(data):
    found = {f"{name}, never": 100 * data[name]["moves"][0] for name in names(data)}
    return found | {f"{CHANGING}, at most once": 100 * sum(data[CHANGING]["moves"][:2])}


def d6(f):
    return all(value >= (75 if name.startswith(CHANGING) else LOW) for name, value in f.items())


def d7(f):
    return f["locality"] > f["mixed"] > f["balanced"] > f["interleave"] and min(f.values()) > 0 and near(f, "Itanium")


def d8(f):
    return first(f, "mixed") and near(f, "Xeon")


def d9(f):
    second = max(value for name, value in f.items() if name != "mixed")
    return first(f, "mixed") and f["locality"] == second and near(f, "Opteron")


def of_mixed(data):
    return {m.title: gain(data, m.title, "mixed") for m in MACHINES}


def d10(f):
    return all((100 + f["Opteron"]) / (100 + f[other]) > BETTER for other in ("Xeon", "Itanium"))


def worst_of_mixed(data):
    each = {f"worst, {m.title}": min(ratios(data, m.title, "mixed")) for m in MACHINES}
    return {"worst": min(each.values()), **each}


def losers(data):
    return {machine: sum(ratio < 0.98 for ratio in ratios(data, machine, "locality")) for machine in ("Xeon", "Opteron")}


def by_threshold(data):
    return {f"{m.title}, {t}": gain(data, m.title, f"mixed:{t}") for m in MACHINES for t in THRESHOLDS}


def d13(f):
    return all(abs(f[f"{m.title}, {t}"] - f[f"{m.title}, 0.9"]) <= 3 for m in MACHINES for t in THRESHOLDS)


NO_POLICY = "The row is about programs; no policy is judged, so that programs without the property stand in."
PROGRAMS_ALONE = {DEAD: NO_POLICY, RIVAL: NO_POLICY}
FIRST_TOUCH = {RIVAL: "The rival is first-touch, which is also the policy that moves nothing: one stand-in is both."}
DEFINED = "First-touch in its place passes by definition, as the row claims no more than that nothing is lost."
NO_THRESHOLD = "A policy without a threshold passes by definition, as it is the same at each."

CHECKS = [
    Check("D1", lambda d: {c: exclusivity(d, c) for c in CONFIGURATIONS}, d1,
          inputs={"programs whose threads share every page evenly": changed(uniform),
                  "programs whose threads share no page": changed(private)}, unit=" %", lacks=PROGRAMS_ALONE),
    Check("D2", falls, d2, inputs={"programs that share every page evenly once pages are large or nodes many":
                                   changed(uniform_unless_base)}, lacks=PROGRAMS_ALONE, words=d2_words),
    Check("D3", table, d3, EVEN, balance_in_place("mixed"), unit=" %"),
    Check("D4", against_first_touch, lambda f: f["difference"] >= 10 and f["programs where it is lower"] <= 25,
          {"first-touch in locality's place": balanced_as("locality", "first-touch")}, others=balance_in_place("locality"),
          lacks=FIRST_TOUCH, unit=" %", units={"difference": " points"}),
    Check("D5", lambda d: {p: balance(d, "accesses", p) for p in POLICIES if p != "random"}, d5,
          EVEN, balance_in_place("mixed"), unit=" %"),
    Check("D6", moves, d6, inputs={"programs whose pages change owner in each slice": changed(another_owner_each_slice)}, unit=" %",
          lacks=PROGRAMS_ALONE),
    Check("D7", lambda d: gains(d, "Itanium"), d7, NOTHING, in_place("locality"), unit=" %"),
    Check("D8", lambda d: gains(d, "Xeon"), d8, NOTHING | dead("mixed"), in_place("mixed"), unit=" %"),
    Check("D9", lambda d: gains(d, "Opteron"), d9, NOTHING | dead("mixed"), in_place("mixed"), unit=" %"),
    Check("D10", of_mixed, d10, dead("mixed"), inputs={"the Xeon in the Opteron's place": changed(as_the_xeon)},
          others=in_place("mixed"), unit=" %", lacks={RIVAL: "Machines are compared, not policies: a rival of the Opteron stands in."}),
    Check("D11", worst_of_mixed, lambda f: f["worst"] >= 0.99, dead("mixed"), others=in_place("mixed"),
          lacks=FIRST_TOUCH, remark=DEFINED),
    Check("D12", losers, lambda f: f["Xeon"] >= 1 and f["Opteron"] >= 1, dead("locality"), others=in_place("locality"),
          lacks=FIRST_TOUCH),
    Check("D13", by_threshold, d13, NOTHING, {f"{p} in mixed's place": any_threshold(p) for p in RIVALS},
          {"locality at 0.8 and interleave at 0.95 in mixed's place": changed(ends_apart)}, " %", remark=NO_THRESHOLD),
    Check("D14", lambda d: {m.title: min(ratios(d, m.title, "random")) for m in MACHINES}, lambda f: f["Xeon"] < 0.9,
          dead("random"), others=in_place("random"), lacks=FIRST_TOUCH),
]
