"""Which programs, how large, how initialised, how many outer iterations: decided before anything was judged.

Programs: those of workloads/ whose original is in the paper's suites (NAS: bt cg fft3d is lu mg sp; PARSEC's streamcluster:
kmedian), and sor and adi, grids that one thread fills as it does in most of PARSEC. shift is made to change its pattern and
stands in D6 alone, in Vips' place. Each row is also judged without sor and adi (ranges.py). bfs is left out: three tenths of its
accesses are a check by one thread after each search, which takes most of the time once 64 threads search.

Initialisation: NAS programs by all threads, as NAS-OMP does; the others by one thread, as PARSEC programs do.

Sizes: `full`, class C or the native input as far as 24 GB and half an hour allow; `fast`, the smallest (of multiples of 32, or
powers of two where the program wants these) whose arrays are larger than what 64 of the model's windows hold, 256 MiB. The
machines' last-level caches are 32 MB (Itanium), 72 MB (Xeon) and 64 MB (Opteron) in all.

Outer iterations: the original's, but 10 at most (`full`) or 4 (`fast`); sor and adi 20 in both, since an iteration takes
little and one thread's initialisation would be most of the time otherwise."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    """Of one program at one size."""

    size: int
    iterations: int  # outer ones


@dataclass(frozen=True)
class Program:
    """`parallel`: all threads initialise. `iteration`: what an outer iteration is."""

    original: str
    parallel: bool
    iteration: str
    settings: dict
    smaller: str = ""  # where a size is below the principle's

    def options(self, size, iterations=None, parallel=None):
        """`parallel`: who initialises, where it is not who does in the original."""
        one = self.settings[size]
        init = "parallel" if (self.parallel if parallel is None else parallel) else "master"
        return ["--init", init, "--size", str(one.size), "--iterations", str(iterations or one.iterations)]


def sizes(full, fast, full_iterations=10, fast_iterations=4):
    return {"full": Setting(full, full_iterations), "fast": Setting(fast, fast_iterations)}


PROGRAMS = {
    "bt": Program("NAS BT", True, "time step", sizes(256, 128)),
    "cg": Program("NAS CG", True, "step of conjugate gradient", sizes(1_440_000, 1_000_000),
                  "full: class C's non-zeros, in rows of 25; NAS has 150,000 rows of about 240"),
    "fft3d": Program("NAS FT", True, "transform there and back", sizes(512, 256),
                     "fast: 256 MiB, as much as the windows hold; the next size is eight times as large"),
    "is": Program("NAS IS", True, "ranking", sizes(1 << 26, 1 << 24),
                  "full: half of class C's keys, which would take a quarter of an hour alone; fast: 192 MiB, of which each "
                  "thread meets 5 MiB"),
    "lu": Program("NAS LU", True, "time step", sizes(256, 224)),
    "mg": Program("NAS MG", True, "V-cycle", sizes(512, 256)),
    "sp": Program("NAS SP", True, "time step", sizes(256, 192)),
    "kmedian": Program("PARSEC streamcluster", False, "chunk of the stream", sizes(1_000_000, 131_072, 5, 3),
                       "fast: 34 MiB, since a chunk is met hundreds of times; the machines' caches hold it"),
    "adi": Program("none", False, "time step", sizes(512, 352, 20, 20)),
    "sor": Program("none", False, "relaxation of both colours", sizes(8192, 4608, 20, 20)),
    "shift": Program("none", False, "pass over the vector", sizes(96_000_000, 48_000_000, 20, 8)),
}
# Made to change its pattern.
CHANGING = "shift"
STATIC = [name for name in PROGRAMS if name != CHANGING]
NAS = [name for name, one in PROGRAMS.items() if one.parallel]
# Whose pages one thread has touched first, so that first-touch puts all on one node; not from the paper's suites.
GRIDS = ("adi", "sor")
