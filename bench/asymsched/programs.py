"""Our programs, with the paper's counterparts (section 5.1: NAS, Parsec, Graph500, Metis); chosen before any verdict.

NAS kernels begin as NPB 3.3-OMP does: arrays are initialised in parallel regions. streamcluster, Graph500 and the matrix product read
their input with one thread. A chunk of kmedian has as many bytes as one of Parsec's native input for streamcluster (200,000 points of
128 dimensions, 102 MB; ours have 64). The other sizes are classes of NPB (FT and MG: 256 points on an edge) or the workloads' defaults,
about as large as the model's windows of 24 threads (96 MiB) or larger, but for dense_lu,
which is blocked for caches. A recording has a few iterations; runs repeat them until they last 15 s."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Program:
    """One of workloads/."""

    like: str  # the paper's
    init: str  # who touches the arrays first
    size: int
    iterations: dict  # by the run's size
    slice: int  # accesses


PROGRAMS = {
    "kmedian": Program("streamcluster", "master", 400_000, {"fast": 1, "full": 2}, 1_000_000_000),
    "cg": Program("NAS CG", "parallel", 800_000, {"fast": 6, "full": 15}, 100_000_000),
    "fft3d": Program("NAS FT", "parallel", 256, {"fast": 1, "full": 3}, 400_000_000),
    "is": Program("NAS IS", "parallel", 8_388_608, {"fast": 4, "full": 10}, 50_000_000),
    "sp": Program("NAS SP", "parallel", 128, {"fast": 4, "full": 10}, 100_000_000),
    "lu": Program("NAS LU", "parallel", 128, {"fast": 4, "full": 10}, 100_000_000),
    "bt": Program("NAS BT", "parallel", 96, {"fast": 3, "full": 8}, 200_000_000),
    "mg": Program("NAS MG", "parallel", 256, {"fast": 1, "full": 4}, 400_000_000),
    "bfs": Program("Graph500", "master", 1_000_000, {"fast": 2, "full": 6}, 40_000_000),
    "dense_lu": Program("matrixmultiply", "master", 1024, {"fast": 1, "full": 1}, 100_000_000),
}
CLUSTERING = "kmedian"  # the program that section 2 analyses: streamcluster

# Several at once, with eight threads on each of their nodes (section 5.3): streamcluster, Graph500, matrixmultiply; SPECjbb has no
# counterpart, NAS CG stands in for its moderate benefit.
WORKLOADS = {
    "fast": [{"kmedian": 3, "cg": 3, "bfs": 2}, {"kmedian": 5, "cg": 3}],
    "full": [{"kmedian": 3, "cg": 3, "bfs": 2}, {"kmedian": 3, "bfs": 3, "dense_lu": 2}, {"cg": 3, "bfs": 3, "kmedian": 2},
             {"kmedian": 5, "cg": 3}, {"cg": 5, "kmedian": 3}, {"kmedian": 5, "bfs": 3}],
}
THREADS = 8  # a node
REPEATS = 5
