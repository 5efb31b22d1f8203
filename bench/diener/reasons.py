"""Where our runs are not the paper's, and why a row does not hold, as far as a run has tested it."""

from programs import CHANGING, PROGRAMS, STATIC

REASONS = {}

SET = ("counterparts of seven of the nine NAS programs and of one of the thirteen of PARSEC, and two grids (adi, sor), in the "
       "mean with equal weight; initialised by all threads (NAS) or one (the rest), as the originals are, but for mg, whose planes "
       "are first touched by rows, NAS MG's as a whole")
SIZES = {"full": "class C's number of points or the nearest, but is (half) and at most 10 outer iterations",
         "fast": "arrays just above what 64 windows of the model hold (256 MiB; is 192, kmedian 34), 4 outer iterations"}
MAPPED = "threads placed by sharing, as in the paper"
TIMES = ("predicted, not measured; gains are the mean of speed-up - 1; first-touch, random and the rest include the "
         "initialisation, which here is a larger part of the run")
ITANIUM = "the Itanium's 8 threads are the recording's 64, neighbouring ones on a CPU"
OF_ROW = {
    "D1": MAPPED,
    "D2": "the falls are those from the baseline of 4 nodes and 4 KiB; \"rises by\" likewise",
    "D3": "access balance by the home of pages, since equation 4 as printed sums accesses from nodes, which no mapping changes",
    "D4": "\"lower\" is any amount",
    "D5": "\"highest\" are interleave and balanced in either order, above the other three; \"lies between\" is strict",
    "D7": f"\"greater\" is any amount, as the paper's own locality and mixed are 1.5 points apart; mixed at 99 %; {ITANIUM}",
    "D8": "2 % of the speed-up; mixed at 90 %",
    "D9": "2 % of the speed-up; mixed at 90 %",
    "D10": f"2 % of the speed-up; mixed at 90 %, on the Itanium 99 %; {ITANIUM}",
    "D11": f"a policy that never moves passes by definition, so that rivals alone stand in; {ITANIUM}",
    "D12": "",
    "D13": f"all three machines; {ITANIUM}",
    "D14": "random's seed is one for all",
}


def differs(row, size, repeats):
    said = [SET, SIZES[size]]
    if row == "D6":
        said.append(f"pages start where they are first touched; {CHANGING} is the program made to change; slices an outer "
                    f"iteration: {slices(repeats)}")
    elif row not in ("D1", "D2", "D3", "D4", "D5"):
        said.append(TIMES)
    return "; ".join([*said, *[text for text in [OF_ROW.get(row, "")] if text]]) + "."


def slices(repeats):
    """Least and most over the repeats, by program."""
    def one(name):
        each = [r[name]["slices_an_iteration"] for r in repeats]
        low, high = min(each), max(each)
        return f"{name} {low:.2f}" + (f"–{high:.2f}" if f"{low:.2f}" != f"{high:.2f}" else "")
    return ", ".join(one(name) for name in (*STATIC, *[n for n in PROGRAMS if n not in STATIC]))
