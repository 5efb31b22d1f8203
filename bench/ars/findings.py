"""The rows A1 to A11 as checks on the data of `study`."""

from statistics import median

from choices import OF_TIME, OPEN, RATIOS
from judge import Check
from judge.check import BETTER, SIMILAR, Range
from programs import ALGORITHMS, COUNTS, OTHERS, PROGRAMS, START, STATIC, table1

NAMED = {policy: name for name, policy in ALGORITHMS.items()}
BEST = 1.88  # SOR's speed-up in the paper
NONE = float("nan")  # the median of nothing: no comparison holds


def at(data, program, policy, ratio=None):
    return data["by_ratio"][ratio or data["ratio"]][program][policy]


def speedup(data, program, policy, ratio=None):
    """Over the run that is not optimised."""
    return at(data, program, START, ratio)["seconds"] / at(data, program, policy, ratio)["seconds"]


def best(data, program, ratio=None):
    return max(speedup(data, program, policy, ratio) for policy in ALGORITHMS.values())


def over(data, program, one, other):
    """How many times as fast one policy is as another."""
    return speedup(data, program, one) / speedup(data, program, other)


def share(part, whole):
    """Per cent; of nothing, none: a policy that never moves has no ping-pongs."""
    return 100 * part / whole if whole else 0.0


def similar(ratio):
    return 1 / SIMILAR <= ratio <= SIMILAR


# What takes the place of policies: figures of another one of the same run.

def still(found):
    """A policy that never moves."""
    return {**found[START], "moves": [], **dict.fromkeys(COUNTS, 0)}


def instead(policies, other):
    """Data with `other(figures by policy)` in the place of these policies."""
    def of(data):
        replaced = {ratio: {p: {**found, **{policy: other(found) for policy in policies}} for p, found in by_program.items()}
                    for ratio, by_program in data["by_ratio"].items()}
        return {**data, "by_ratio": replaced}
    return of


def named(name):
    return lambda found: found[name]


def swapped(by_policy):
    """Data with each of these policies replaced by another."""
    def of(data):
        for policy, other in by_policy.items():
            data = instead((policy,), named(other))(data)
        return data
    return of


ALL = tuple(ALGORITHMS.values())
LOCAL = {"out-u": "out-u-local", "out-w": "out-w-local"}
# The rival that moves: affinity on next touch, which fetches a page to whoever touches it.
NEXT = OTHERS["next-touch"]
DEAD = {"policies that never move": instead(ALL, still)}
TOUCH = {"next-touch in the policies' place": instead(ALL, named(NEXT))}
BEST_STATIC = {"the static optimum in the policies' place": instead(ALL, named(STATIC))}
ALIKE = "The row claims that both are alike, so that one in the other's place, and neither moving, pass by definition."
FEW = "Policies that never move have no ping-pongs and no incorrect migrations, and pass by definition: the row claims that these are few."


def faster(data):
    return {f"{p} {name}": speedup(data, p, a) for p in PROGRAMS for name, a in ALGORITHMS.items()}


def gains(data):
    found = {p: best(data, p) for p in PROGRAMS}
    return {**found, **{f"SOR at {ratio}": best(data, "SOR", ratio) for ratio in RATIOS}}


def sor_first(f):
    others = max(f[p] for p in PROGRAMS if p != "SOR")
    by_ratio = [f[f"SOR at {ratio}"] for ratio in RATIOS]
    return f["SOR"] > BETTER * others and min(by_ratio) <= BEST <= max(by_ratio)


def against_static(data):
    return {p: best(data, p) / speedup(data, p, STATIC) for p in PROGRAMS}


def static_mostly_wins(f):
    return f["WATER"] > BETTER and all(v < 0.98 or similar(v) for p, v in f.items() if p != "WATER")


def local_or_not(data):
    return {f"{p} {NAMED[a]}": over(data, p, a, f"{a}-local") for p in PROGRAMS for a in ("out-u", "out-w")}


def weighted(programs):
    return lambda data: {p: over(data, p, "out-w", "out-u") for p in programs}


def incoming(data):
    return {p: over(data, p, "in-w", "out-w") for p in PROGRAMS}


def totals(data):
    each = [at(data, p, a) for p in PROGRAMS for a in ALL]
    moved = sum(f["migrations"] for f in each)
    return {"ping-pongs": share(sum(f["ping_pongs"] for f in each), moved),
            "incorrect": share(sum(f["incorrect"] for f in each), moved)}


def multiple(data):
    found = {p: at(data, p, "out-w") for p in PROGRAMS}
    return {p: share(f["multiple"], f["migrations"]) for p, f in found.items()}


COUNTED_RIGHT = "within a factor of 3, of 25"
PAPER = {f"{p} {name}": row[0] for (p, name), row in table1().items()}


def near(name, count):
    return PAPER[name] / 3 <= count <= PAPER[name] * 3


def counts(data):
    found = {f"{p} {name}": at(data, p, a)["migrations"] for p in PROGRAMS for name, a in ALGORITHMS.items()}
    return {COUNTED_RIGHT: sum(near(name, count) for name, count in found.items()), **found}


def within_three(f):
    return all(near(name, count) for name, count in f.items() if name in PAPER)


EARLIER = ("LU", "WATER")
CORRECT = "correct"  # in a repeat's data: the programs whose additional migrations have to be correct


def additional(data):
    """Of the moves that Out-W makes and Out-U does not (a page to a node): how many are incorrect, and when; in percent."""
    figures = {}
    for program in data.get(CORRECT, PROGRAMS):
        more = additional_moves(data, program)
        figures[f"{program} incorrect"] = share(sum(m[3] for m in more), len(more))
    for program in EARLIER:
        figures[f"{program} when"] = when(data, program, additional_moves(data, program))
        figures[f"{program} when, Out-U"] = when(data, program, at(data, program, "out-u")["moves"])
    return figures


def additional_moves(data, program):
    made = {(page, to) for _, page, to, _ in at(data, program, "out-u")["moves"]}
    return [m for m in at(data, program, "out-w")["moves"] if (m[1], m[2]) not in made]


def when(data, program, moves):
    """The median move's time, in percent of the run's intervals."""
    return 100 * median(m[0] for m in moves) / len(at(data, program, "out-w")["locals"]) if moves else NONE


def correct_and_early(f):
    correct = all(value <= 2 for name, value in f.items() if name.endswith("incorrect"))
    return correct and all(f[f"{p} when"] < f[f"{p} when, Out-U"] for p in EARLIER)


def readings(repeats):
    """Ranges of A11 beside the open quantities: of which programs the first half of the criterion is."""
    source = ("the criterion names LU and WATER after the semicolon, of the median alone, so that its 2 % are of all programs; what "
              "section 4 says is of these two")
    return [Range("incorrect ones over", source, {"all programs": repeats, "LU and WATER": [{**d, CORRECT: EARLIER} for d in repeats]})]


W = ("out-w",)
NO_W = {"Out-W never moves": instead(W, still)}
U_FOR_W = {"Out-U in Out-W's place": instead(W, named("out-u"))}
IN_FOR_W = {"In-W in Out-W's place": instead(W, named("in-w"))}
LOCALS = tuple(LOCAL.values())
CHECKS = {check.id: check for check in (
    Check("A1", faster, lambda f: all(v > BETTER for v in f.values()), DEAD, TOUCH | BEST_STATIC),
    Check("A2", gains, sor_first, DEAD, TOUCH | BEST_STATIC),
    Check("A3", against_static, static_mostly_wins, DEAD, BEST_STATIC),
    Check("A4", local_or_not, lambda f: all(similar(v) for v in f.values()),
          {"the -local variants never move": instead(LOCALS, still),
           "neither they nor Out-U and Out-W move": instead((*LOCALS, *LOCAL), still)},
          {"Out-U and Out-W in their -local variants' place": swapped({local: plain for plain, local in LOCAL.items()}),
           "next-touch in the -local variants' place": instead(LOCALS, named(NEXT))}, remark=ALIKE),
    Check("A5", weighted(("LU", "WATER")), lambda f: all(v > BETTER for v in f.values()), NO_W, U_FOR_W),
    Check("A6", weighted(("FFT", "RADIX", "SOR")), lambda f: all(similar(v) for v in f.values()),
          {**NO_W, "neither Out-W nor Out-U moves": instead((*W, "out-u"), still)},
          {**U_FOR_W, "next-touch in Out-W's place": instead(W, named(NEXT))}, remark=ALIKE),
    Check("A7", incoming, lambda f: all((v > BETTER) == (p == "SOR") for p, v in f.items()),
          {"In-W never moves": instead(("in-w",), still)}, {"Out-W in In-W's place": instead(("in-w",), named("out-w"))}),
    Check("A8", totals, lambda f: f["ping-pongs"] <= 1 and f["incorrect"] <= 2, DEAD, TOUCH, unit=" %", remark=FEW),
    Check("A9", multiple, lambda f: f["WATER"] > 20 and all(v < 5 for p, v in f.items() if p != "WATER"), NO_W, U_FOR_W | IN_FOR_W,
          unit=" %"),
    Check("A10", counts, within_three, DEAD, {**TOUCH, "Out-U in the place of all five": instead(ALL, named("out-u"))}),
    Check("A11", additional, correct_and_early, NO_W, U_FOR_W | IN_FOR_W, unit=" %"),
)}
# Of counts and moves, not times.
COUNTED = ("A8", "A9", "A10", "A11")


def ranges_of(identifier):
    """Names of the open quantities that can matter."""
    return [name for name in OPEN if identifier not in COUNTED or name not in OF_TIME]
