"""Our programs, with the paper's counterparts: what is recorded for Figures 2 to 7."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Program:
    """One of workloads/."""

    like: str  # the paper's, or what else it is
    init: str  # who touches the arrays first
    size: int
    iterations: int
    slice: int  # accesses, so that a run has some tens


PROGRAMS = {
    "cg": Program("NAS CG", "master", 2_000_000, 40, 400_000_000),
    "sor": Program("a stencil", "master", 6144, 48, 400_000_000),
    "mg": Program("NAS MG", "master", 256, 16, 400_000_000),
    "adi": Program("heat by directions", "master", 256, 20, 500_000_000),
    "fft3d": Program("NAS FT", "master", 128, 12, 100_000_000),
    "is": Program("NAS IS", "parallel", 8_388_608, 25, 100_000_000),
    "bt": Program("NAS BT", "parallel", 96, 16, 400_000_000),
    "sp": Program("NAS SP", "parallel", 128, 20, 200_000_000),
    "lu": Program("NAS LU", "parallel", 128, 20, 200_000_000),
    "bfs": Program("Graph500", "master", 1_000_000, 12, 40_000_000),
    "kmedian": Program("streamcluster", "master", 262_144, 8, 1_000_000_000),
    "radix": Program("SPLASH-2 radix", "master", 8_388_608, 16, 200_000_000),
    "dense_lu": Program("SPLASH-2 LU", "master", 2048, 1, 200_000_000),
    "water": Program("SPLASH-2 water", "master", 3000, 10, 60_000_000),
}

# Several at once, each with eight threads on each of its nodes (section 5.3).
WORKLOADS = [
    {"cg": 3, "mg": 3, "bfs": 2},
    {"cg": 3, "bfs": 3, "water": 2},
    {"mg": 3, "bfs": 3, "cg": 2},
    {"cg": 5, "mg": 3},
    {"mg": 5, "cg": 3},
    {"cg": 5, "bfs": 3},
]
THREADS = 8  # a node
