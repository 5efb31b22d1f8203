"""The paper's rows I1 to I6 as checks. A repeat's data: by program and machine, predicted seconds by solution."""

from copy import deepcopy
from itertools import product

from judge import Check
from judge.check import BETTER, SIMILAR
from judge.verdict import number, spread

OPTERON, ITANIUM = "mai-opteron-8n", "mai-itanium2-fss"
SHORT = {OPTERON: "Opteron", ITANIUM: "Itanium 2"}
MAI = ("cyclic", "skew_mapp", "prime_mapp", "bind_all", "bind_block", "random")  # bind_block by rows
# The solutions that the text of 4.3 compares; bind_all only with ICTM.
COMPARED = ("Linux", "Parallel-Init", "cyclic", "bind_block")
BEHIND = 1.01  # I5
LOW, HIGH = 2, 60  # I6, per cent


def over(seconds, rival, policy):
    """How much faster than the rival, per cent."""
    return 100 * (seconds[rival] / seconds[policy] - 1)


def leads(program, machine, policy, rivals):
    """Figures: how much faster the policy is than each rival."""
    return lambda data: {f"over {r}": over(data[program][machine], r, policy) for r in rivals}


def first(figures):
    return all(100 + value > 100 * BETTER for value in figures.values())


def in_place(place, stands_in):
    """`stands_in`'s times in `place`'s."""
    def one(data):
        copy = deepcopy(data)
        for machines in copy.values():
            for seconds in machines.values():
                seconds[place] = seconds[stands_in]
        return copy
    return one


def others(policy, *more):
    return tuple(p for p in (*COMPARED, *more) if p != policy)


def places_nothing(policy):
    return {f"Parallel-Init, which places nothing, in {policy}'s place": in_place(policy, "Parallel-Init")}


SAME_BY_ROWS = ("It cannot hold by rows, the reading that it is judged by: bind_block then puts each page where Parallel-Init's threads "
                "touch it first, and is not faster than that.")


def winner(row, program, machine, policy, rival):
    return Check(row, leads(program, machine, policy, others(policy)), first, places_nothing(policy),
                 {f"{rival} in {policy}'s place": in_place(policy, rival)}, unit=" %",
                 cannot_hold=SAME_BY_ROWS if policy == "bind_block" else "")


# ---- I3: bind_all and bind_block are last as well. ----

LAST = "the slowest of the rest over the faster of bind_all and bind_block"


def ictm_opteron(data):
    seconds = data["ictm"][OPTERON]
    slower = min(seconds["bind_all"], seconds["bind_block"])
    rest = max(seconds[p] for p in ("Linux", "Parallel-Init", "cyclic"))
    return leads("ictm", OPTERON, "cyclic", others("cyclic", "bind_all"))(data) | {
        LAST: 100 * (slower / rest - 1)}


def i3_words(f):
    def time(percent):
        return f"{number(abs(percent))} % {'less' if percent < 0 else 'more'}"
    last, over = f[LAST], "; ".join(f"{name}: {spread(figure, ' %')}" for name, figure in f.items() if name != LAST)
    return (f"{over}; faster of bind_all and bind_block against the slowest other: takes {time(last.median)} time [{time(last.least)} to "
            f"{time(last.most)}] (must take more)")


def i3(f):
    last = f[LAST]
    return first({name: value for name, value in f.items() if name.startswith("over")}) and last > 0


# ---- I5: all are close. ----


def ondes(data):
    found = {}
    for machine, name in SHORT.items():
        seconds = {p: data["ondes"][machine][p] for p in COMPARED}
        found[f"slowest over fastest, {name}"] = 100 * (max(seconds.values()) / min(seconds.values()) - 1)
        found[f"bind_block behind the fastest, {name}"] = 100 * (seconds["bind_block"] / min(seconds.values()) - 1)
    return found


def i5(f):
    limits = {"slowest": SIMILAR, "bind_block": BEHIND}
    return all(100 + value <= 100 * limits[name.split(" ")[0]] for name, value in f.items())


# ---- I6: the best of MAI's policies over Linux and over Parallel-Init. ----


def gains(data):
    found = {}
    for program, machine in product(data, SHORT):
        seconds = data[program][machine]
        best = min(MAI, key=seconds.get)
        for rival in ("Linux", "Parallel-Init"):
            found[f"{program}, {SHORT[machine]}, over {rival}"] = over(seconds, rival, best)
    return found


def i6(f):
    pairs = {name.rsplit(",", 1)[0] for name in f}
    return sum(all(LOW <= f[f"{pair}, over {rival}"] <= HIGH for rival in ("Linux", "Parallel-Init")) for pair in pairs) >= 4


def nothing_placed(rival):
    """MAI's policies are all the rival."""
    def one(data):
        for policy in MAI:
            data = in_place(policy, rival)(data)
        return data
    return one


CHECKS = (
    winner("I1", "mg", OPTERON, "cyclic", "bind_block"),
    winner("I2", "mg", ITANIUM, "bind_block", "cyclic"),
    Check("I3", ictm_opteron, i3, places_nothing("cyclic"), {"bind_block in cyclic's place": in_place("cyclic", "bind_block")}, unit=" %",
          words=i3_words),
    winner("I4", "ictm", ITANIUM, "bind_block", "cyclic"),
    Check("I5", ondes, i5,
          {"Parallel-Init, which places nothing, in the place of cyclic and bind_block": nothing_placed("Parallel-Init"),
           "Linux in the place of all": lambda data: in_place("Parallel-Init", "Linux")(nothing_placed("Linux")(data))},
          {"all memory on one node in bind_block's place": in_place("bind_block", "bind_all"),
           "cyclic in bind_block's place": in_place("bind_block", "cyclic")}, unit=" %",
          remark="The row claims that all are alike, so that one in the place of all passes by definition."),
    Check("I6", gains, i6, {"Parallel-Init in the place of MAI's policies": nothing_placed("Parallel-Init")},
          {"Linux in the place of MAI's policies": nothing_placed("Linux")}, unit=" %"),
)
