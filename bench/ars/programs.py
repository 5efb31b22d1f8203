"""The programs of ARS's section 4 in its sizes, and what its Table 1 has of them."""

import csv
import pathlib
from dataclasses import dataclass

COUNTS = ["migrations", "ping_pongs", "multiple", "incorrect"]
# As the paper writes them, as `nodewise` does.
ALGORITHMS = {"Out-U-local": "out-u-local", "Out-W-local": "out-w-local", "Out-U": "out-u", "Out-W": "out-w", "In-W": "in-w"}
# "Allocates shared data cyclically over all nodes", the paper's round-robin: by page number, whoever is first.
START = "interleave"
# "Explicitly placing pages on the nodes which most frequently access them", from the start and for nothing.
STATIC = "locality"
# Not in the paper: for the page, and as a stand-in that moves a page to whoever touches it.
OTHERS = {name: f"balance:{name}" for name in ("next-touch", "dominant", "carrefour", "mixed", "adaptive")}


@dataclass(frozen=True)
class Program:
    """One of ours, under the name the paper gives its counterpart."""

    file: str
    arguments: tuple  # of the paper's size
    says: str  # the size, in words
    differs: str  # from the benchmark that the paper names
    computes: tuple  # functions whose parallel loops are the computation: the rest initialises and verifies


PROGRAMS = {
    "FFT": Program("fft", ("--size", 16384, "--iterations", 1), "2¹⁴ points, forth and back",
                   "transforms forth and back, SPLASH-2's only forth", ("transpose", "transform_rows", "copy")),
    "LU": Program("dense_lu", ("--size", 128), "128 × 128", "contiguous blocks of 16 × 16; the paper does not say which of two LUs",
                  ("factorise",)),
    "RADIX": Program("radix", ("--init", "master", "--size", 262144, "--iterations", 1), "262,144 keys",
                     "digits of 10 bits, SPLASH-2's default", ("count", "sum", "permute")),
    "WATER": Program("water", ("--size", 343, "--iterations", 3), "343 molecules, 3 steps",
                     "all pairs; 3 steps as in SPLASH-2's input; the paper gives neither the variant nor the steps",
                     ("predict", "forces_between", "correct")),
    "SOR": Program("sor", ("--size", 200, "--iterations", 40), "200 × 200, 40 iterations",
                   "a self-coded kernel in the paper, which gives neither iterations nor precision", ("relax",)),
}


# Not the paper's: pages whose user changes half-way, as many pages and accesses as WATER's, for the test of a reason (A3).
CHANGES = {"SHIFT": Program("shift", ("--size", 37888, "--iterations", 48), "37,888 numbers, 48 passes", "made to change its pattern",
                            ("forwards", "inverse"))}


def table1():
    """The paper's Table 1: (program, algorithm) → counts in the order of COUNTS."""
    with open(pathlib.Path(__file__).parent / "table1.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {(r["app"], r["algorithm"]): [int(r[key]) for key in ("migrations", "ping_pong", "multiple", "incorrect")]
            for r in rows}
