"""What the paper found, as checks over the sweep of latency ratios."""

from programs import ALGORITHMS, PROGRAMS
from recordings import START

from web import Finding

# Times that differ by less do not differ: the paper reads bars off a figure.
SAME = 0.02
# "Both algorithms behave similarly", "the distance … is insignificant".
SIMILAR = 0.10
# "Scarcely": of a hundred migrations, so many. The paper has 3 of 96, 2 of 27, 1 of 16.
SCARCE = 0.10
SCARCE_WHY = {
    "incorrect": "They are Out-W's and In-W's, pages moved with their neighbours or fetched by who came first; Out-U has hardly "
                 "any. The paper's monitor sees misses behind caches, ours every access, so that what others read again and "
                 "again of a page weighs more.",
    "ping_pongs": "They follow from incorrect moves: a page comes back once its old home's accesses are seen as remote ones.",
}


def findings(data):
    checks = [faster(data), sor_gains_most(data)]
    checks += [weighted_wins(data, p) for p in ("LU", "WATER")]
    checks += [weighted_equals(data, p) for p in ("FFT", "RADIX", "SOR")]
    checks += [incoming_wins(data, p) for p in PROGRAMS]
    checks += [local_hardly_matters(data), *(static_wins(data, p) for p in PROGRAMS)]
    return checks + [scarce(data, "incorrect", "7 kinds of 25 have 1 to 3"), scarce(data, "ping_pongs", "one, in WATER"),
                     water_moves_again(data)]


def at(data, program, policy, ratio):
    return data["programs"][program]["ratios"][str(ratio)][policy]


def speedup(data, program, policy, ratio):
    """Over the run that is not optimised."""
    return at(data, program, START, ratio)["seconds"] / at(data, program, policy, ratio)["seconds"]


def gains(data, program, policy):
    """By ratio."""
    return {r: speedup(data, program, policy, r) for r in data["ratios"]}


def best(data, program, ratio):
    return max(speedup(data, program, policy, ratio) for policy in ALGORITHMS.values())


def span(values, unit="", digits=2):
    low, high = min(values), max(values)
    one = f"{low:.{digits}f}"
    return (one if f"{high:.{digits}f}" == one else f"{one}–{high:.{digits}f}") + unit


def counted(data, program, policy):
    """Table 1's counts, at the ratio in the middle."""
    return at(data, program, policy, data["middle"])


def faster(data):
    least = {p: min(speedup(data, p, a, r) for a in ALGORITHMS.values() for r in data["ratios"]) for p in PROGRAMS}
    most = {p: max(best(data, p, r) for r in data["ratios"]) for p in PROGRAMS}
    ours = ", ".join(f"{p} {span((least[p], most[p]))} times" for p in PROGRAMS)
    slow = [p for p, v in least.items() if v <= 1]
    return Finding("All programs run faster after migration, whichever algorithm", "all", ours, not slow,
                   f"Not {', '.join(slow)}: pages come back more often than they gain." if slow else "")


def sor_gains_most(data):
    rivals = {r: max((best(data, p, r), p) for p in PROGRAMS if p != "SOR") for r in data["ratios"]}
    lost = [r for r, (v, _) in rivals.items() if best(data, "SOR", r) < v * (1 - SAME)]
    ours = ", ".join(f"{r}: SOR {best(data, 'SOR', r):.2f}, {p} {v:.2f}" for r, (v, p) in rivals.items())
    return Finding("SOR gains most", "1.88", ours, not lost,
                   "Its pages have one user each; what it gains is what the threshold lets move." if lost else "")


def ratio_of(data, program, a, b):
    """Time of b over time of a, by latency ratio: above 1, a is faster."""
    return {r: speedup(data, program, a, r) / speedup(data, program, b, r) for r in data["ratios"]}


def weighted_wins(data, program):
    found = ratio_of(data, program, "out-w", "out-u")
    holds = min(found.values()) >= 1 - SAME
    return Finding(f"{program}: Out-W is no slower than Out-U", "faster", span(found.values(), " times as fast"), holds,
                   "" if holds else wrong_neighbours(data, program))


def wrong_neighbours(data, program):
    """What the sums of Out-W do where they lose."""
    u, w = (counted(data, program, policy) for policy in ("out-u", "out-w"))
    text = (f"It migrates more, as in the paper ({w['migrations']}, Out-U {u['migrations']}), but {w['incorrect']} times away "
            "from the node that uses the page most. A home sees no local accesses: of pages that are where they belong it "
            "sees what others read across the borders of parts, and a sum lends that to pages around which nobody else uses.")
    narrow = data["sensitivity"].get("window", {}).get("1")
    if narrow:
        text += f" With a window of 1 page it is at {narrow[program]['out-w']['speedup']:.2f} (Out-U "
        text += f"{narrow[program]['out-u']['speedup']:.2f})."
    return text


def weighted_equals(data, program):
    found = ratio_of(data, program, "out-w", "out-u")
    holds = all(abs(v - 1) <= SIMILAR for v in found.values())
    return Finding(f"{program}: Out-W and Out-U behave similarly (within {100 * SIMILAR:.0f} %)", "similarly",
                   span(found.values(), " times as fast"), holds, "" if holds else wrong_neighbours(data, program))


def incoming_wins(data, program):
    found = {r: speedup(data, program, "in-w", r) / max(speedup(data, program, a, r) for a in ("out-u", "out-w"))
             for r in data["ratios"]}
    ours = span(found.values(), " times as fast as the better of Out-U and Out-W")
    if program == "SOR":
        holds, claim = min(found.values()) >= 1 - SAME, "SOR: In-W is best"
    else:
        holds, claim = max(found.values()) <= 1 + SAME, f"{program}: In-W is not better than Out-U and Out-W"
    return Finding(claim, "only SOR gains by it", ours, holds,
                   "" if holds else lately(program))


def lately(program):
    if program == "SOR":
        return "Its sums reach the threshold as late as the others'."
    return ("As the paper expected of it: direct neighbours are remote to the same node, so its sums pass the threshold first. "
            "That gains more here than its incorrect moves cost.")


def local_hardly_matters(data):
    found = {(p, a): list(ratio_of(data, p, f"{a}-local", a).values()) for p in PROGRAMS for a in ("out-u", "out-w")}
    far = [f"{p} {a} {span(v)}" for (p, a), v in found.items() if any(abs(x - 1) > SIMILAR for x in v)]
    every = [x for v in found.values() for x in v]
    return Finding(f"Knowing local accesses hardly matters (within {100 * SIMILAR:.0f} %)", "insignificant",
                   span(every, " times as fast with"), not far,
                   f"Not {'; '.join(far)}. With them a page has the accesses it is judged by sooner, since its home's "
                   "count too, and Out-W knows that a page's own node uses it more than its neighbours' users do." if far else "")


def static_wins(data, program):
    found = {r: speedup(data, program, "locality", r) / best(data, program, r) for r in data["ratios"]}
    ours = span(found.values(), " times as fast as the best algorithm")
    if program == "WATER":
        holds, claim = max(found.values()) <= 1 + SAME, "WATER: migration beats the static optimum"
    else:
        holds, claim = min(found.values()) >= 1 - SAME, f"{program}: the static optimum is no slower than migration"
    stay, move = data["programs"][program]["best"]
    why = (f"Placed once and for all {100 * stay:.0f} % of its accesses are local; with every page where it is used most in each "
           f"slice, for nothing and known beforehand, {100 * move:.0f} % would be. Molecules keep their owner, and who reads "
           "them is spread evenly over the half that does: there is little that changes.")
    return Finding(claim, "in most cases the optimised version is better, not for WATER", ours, holds, "" if holds else why)


def scarce(data, count, paper):
    found = {(p, name): counted(data, p, policy) for p in PROGRAMS for name, policy in ALGORITHMS.items()}
    shares = {key: (c[count], c["migrations"]) for key, c in found.items() if c[count]}
    many = [f"{p} {name} {n} of {all_}" for (p, name), (n, all_) in shares.items() if n > SCARCE * all_]
    each = {name: [found[p, name] for p in PROGRAMS] for name in ALGORITHMS}
    ours = ", ".join(f"{name} {sum(c[count] for c in cs)} of {sum(c['migrations'] for c in cs)}" for name, cs in each.items())
    word = {"incorrect": "Incorrect migrations", "ping_pongs": "Ping-pongs"}[count]
    return Finding(f"{word} are scarce (at most {100 * SCARCE:.0f} % of migrations)", paper, ours, not many,
                   f"Not {'; '.join(many)}. {SCARCE_WHY[count]}" if many else "")


def water_moves_again(data):
    found = {p: counted(data, p, "out-w")["multiple"] for p in PROGRAMS}
    holds = found["WATER"] > 0 and found["WATER"] == max(found.values())
    return Finding("Pages of WATER move more than once, those of others hardly (Out-W)", "WATER 43, others 0",
                   ", ".join(f"{p} {n}" for p, n in found.items()), holds, "" if holds else
                   "FFT's are moved for its transposes, which read all pages, as WATER's for its forces.")
