"""The programs, their sizes, and what Majo and Gross have of theirs."""

from dataclasses import dataclass, field

SMALL, LARGE = "nehalem-2s", "westmere-4s"
# Nodes and CPUs a node.
SHAPES = {SMALL: (2, 4), LARGE: (4, 8)}
# The paper's threads on each.
THREADS = {SMALL: 8, LARGE: 32}
COUNTS = (4, 8, 16, 32)  # section 7
SIZES = ("fast", "full")


@dataclass(frozen=True)
class Program:
    """One of ours, under the name that the paper gives its counterpart. Sizes are (points or rows or keys, iterations)."""

    file: str
    lab: tuple  # as the laboratory can emulate it in seconds: the smallest whose parts end where pages end
    small: dict = field(default_factory=dict)  # by fast or full: recorded with 8 threads
    large: dict = field(default_factory=dict)  # with 32
    forms: tuple = ()  # besides the default one, of those that a row needs
    points: object = None  # of a size: what its arrays grow with
    remote: float = None  # by default, per cent, where the text says it

    def arguments(self, form, sizes, init="nas"):
        size, iterations = sizes
        chosen = ["--form", form] if self.forms else []
        return ["--init", init, *chosen, "--size", str(size), "--iterations", str(iterations)]


def flat(n):
    """Points of bt's, sp's and lu's grid."""
    return n * n * (n // 4)


def cube(n):
    return n ** 3


# `large`: arrays of 1.1 times or more what 32 windows of the model hold (128 MiB), twice that for `full`. `small`: where a time is
# predicted (bt, ft), the same for 8 windows (32 MiB); where pages are counted alone (lu, sp), the double of the laboratory's.
# Edges are multiples of 32, so that parts end where pages end. NAS's classes B and C are larger: docs/reproduce-majo.md.
PROGRAMS = {
    "bt": Program("bt", (32, 4), {"fast": (96, 2), "full": (128, 2)}, {"fast": (96, 2), "full": (128, 2)},
                  ("redistribute", "matched"), flat, 19),
    "cg": Program("cg", (10_000, 20), {}, {"fast": (500_000, 5), "full": (1_000_000, 5)}, ("matched",)),
    "ft": Program("fft3d", (32, 10), {"fast": (256, 1), "full": (256, 1)}, {"fast": (256, 1), "full": (256, 2)},
                  ("redistribute", "matched"), cube, 43),
    "lu": Program("lu", (32, 6), {"fast": (64, 2), "full": (96, 2)}, {"fast": (160, 2), "full": (192, 2)}, ("matched",)),
    "sp": Program("sp", (32, 4), {"fast": (64, 2), "full": (96, 2)}, {"fast": (160, 2), "full": (192, 2)}, ("matched",)),
    "is": Program("is", (262_144, 10), remote=3),
    "mg": Program("mg", (32, 4), remote=2),
    "ep": Program("ep", (8, 1)),
}
# Rows and steps: as many rows as NAS's class B has, for the test of a reason (M3).
CLASS_B_OF_CG = (75_000, 5)
TRANSFORMED = ("bt", "cg", "ft", "lu", "sp")
SWEEPS = ("bt", "lu", "sp")
MOVED = ("bt", "ft")
EXCLUDED = ("is", "mg", "ep")
REPEATS = 5

# Functions whose parallel loops initialise or verify, and code outside of loops (""): apart, as in NAS's timings.
APART = ("", "main", "nw_bind_openmp", "initialise", "generate", "error_norm", "largest_error", "measured", "contents", "ascends", "sort")
