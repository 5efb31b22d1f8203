"""The programs, their sizes, and what Majo and Gross have of theirs: one row a program."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Sizes:
    """Size and iterations: as the laboratory can emulate them, as recorded for the simulator, and for --quick."""

    lab: tuple
    recorded: tuple
    quick: tuple


@dataclass(frozen=True)
class Program:
    """One of ours, under the name the paper gives its counterpart."""

    file: str
    init: str  # who touches the arrays first in the default form
    sizes: Sizes
    forms: list = field(default_factory=list)  # besides the default one
    remote: float = None  # what the paper measured by default, per cent
    note: str = ""

    def arguments(self, form, sizes):
        size, iterations = sizes
        chosen = ["--form", form] if self.forms else []
        return ["--init", self.init, *chosen, "--size", str(size), "--iterations", str(iterations)]


MASTER = "the master initialises its arrays, as many codes do: the paper does not say who did"

PROGRAMS = {
    "bt": Program("bt", "parallel", Sizes((32, 4), (128, 2), (64, 2)), ["redistribute", "iterate", "matched"], 19),
    "cg": Program("cg", "master", Sizes((10000, 20), (800_000, 5), (200_000, 5)), ["matched"], note=MASTER),
    "ft": Program("fft3d", "master", Sizes((32, 10), (256, 1), (128, 1)), ["redistribute", "matched"], 43, MASTER),
    "lu": Program("lu", "parallel", Sizes((32, 6), (192, 2), (96, 2)), ["matched"]),
    "sp": Program("sp", "parallel", Sizes((32, 4), (192, 2), (96, 2)), ["redistribute", "iterate", "matched"]),
    "is": Program("is", "parallel", Sizes((262_144, 10), (8_388_608, 5), (2_097_152, 5)), remote=3),
}

# Functions whose parallel loops initialise or verify, and code outside of loops ("").
APART = ["", "main", "nw_bind_openmp", "initialise", "generate", "error_norm", "largest_error", "measured", "contents",
         "ascends", "sort"]

# Programs that the paper excludes, since their default share of remote accesses is low.
EXCLUDED = [name for name, p in PROGRAMS.items() if not p.forms]
TRANSFORMED = [name for name in PROGRAMS if name not in EXCLUDED]
