"""What the paper leaves open and what the model assumes, row by row; and where our runs are not the paper's."""

from statistics import median

from checks import ITANIUM, OPTERON, in_place
from judge import cores
from judge.check import Range, Test
from recordings import BY_PARTS, BY_ROWS, SIZES
from study import at, by_repeat

MODEL = ("the model's scenarios (docs/model.md): misses in flight 2 to 12, share of lines from memory, queueing, bandwidths and "
         "latencies where the machine's file assumes them, cost of recording, one at an end of its range at a time; each solution "
         "at its least and at its most")
TIMED = "4.2 does not say whether speed-up includes the initialisation; NAS MG's timing leaves it out"
ALL_NODES = "3.1 leaves the nodes of bind_all to the programmer: one, or all (then each page is where it is first touched)"
LINUX = ("4.3 says of MG that first touch puts all data on one node, where NAS MG's planes are first touched by all threads; of Ondes 3D "
         "that threads initialise what they compute on")
# The programs whose initialisation under Linux turns a row.
UNDER_LINUX = {"I1": ("mg",), "I2": ("mg",), "I5": ("ondes",), "I6": ("mg", "ondes")}
TITLES = {"mg": "MG", "ondes": "Ondes 3D"}
BLOCKS = ("3.1: blocks of rows or columns, to the threads that use them; 3.2: mai_bind_rows. Rows are dealt here as schedule(static), "
          "which is what the threads of Parallel-Init touch first in these programs; simulate's bind-block cuts an array into equal parts "
          "of pages")
OF_MACHINE = {"I1": OPTERON, "I2": ITANIUM, "I3": OPTERON, "I4": ITANIUM}


def of_row(row, found):
    repeats = by_repeat(found)
    ranges = [Range("model", MODEL, {"least": by_repeat(found, "least"), "typical": repeats, "most": by_repeat(found, "most")}),
              Range("timed", TIMED, {"computing": repeats, "whole run": by_repeat(found, "whole run")}), of_cores(row, found)]
    if OF_MACHINE.get(row) != OPTERON:
        ranges.append(Range("page size of the Itanium", "16 KiB is the default of Linux on ia64, 64 KiB the kernel's name (4.1)", {
            p: at(found, "pages", lambda _, p=p: p) for p in ("16K", "64K")}))
    parts = [in_place(BY_ROWS, BY_PARTS)(r) for r in repeats]
    ranges.append(Range("bind_block by", BLOCKS, {"rows": repeats, "parts of pages": parts}))
    if row in ("I3", "I6"):
        everywhere = [in_place("bind_all", "Parallel-Init")(r) for r in repeats]
        ranges.append(Range("bind_all to", ALL_NODES, {"one node": repeats, "all": everywhere}))
    for program in UNDER_LINUX.get(row, ()):
        alike = [by_all_threads(program)(r) for r in repeats]
        ranges.append(Range(f"{TITLES[program]} under Linux initialised by", LINUX, {"one thread": repeats, "all threads": alike}))
    return ranges


def by_all_threads(program):
    """The program under Linux, initialised by all threads: as Parallel-Init."""
    def one(data):
        return {**data, program: in_place("Linux", "Parallel-Init")({program: data[program]})[program]}
    return one


def of_cores(row, found):
    """Labels are the factors of the row's machine, or of both."""
    machines = [OF_MACHINE[row]] if row in OF_MACHINE else [OPTERON, ITANIUM]
    values = {}
    for rank in range(max(len(cores.plausible(m)) for m in machines)):
        def choose(machine, rank=rank):
            each = cores.plausible(machine)
            return each[min(rank, len(each) - 1)]
        values["/".join(f"{choose(m):g}" for m in machines)] = at(found, "factors", choose)
    return Range("core factor", cores.SOURCE, values)


def differs(row, size):
    programs = ", ".join(f"{p} --size {n} --iterations {i}" for p, (n, i) in SIZES[size].items())
    said = [f"programs of the same shape, smaller than the paper's 256^2 (sic), 2.0 and 2.4 GB: {programs}; 16 threads, bound as MAI binds",
            "predicted times of what computes, without first touch and verification"]
    if row in ("I1", "I2", "I6"):
        said.append("mg is first touched as NAS MG is (zero3, zran3: planes dealt to all threads) under Parallel-Init and MAI's policies, "
                    "by one thread under Linux")
    if row in OF_MACHINE or row == "I5":
        said.append("bind_block deals rows, as the library's mai_bind_rows does (3.2), so that it places what Parallel-Init does; threads "
                    "are bound under every solution, where the paper's may migrate under others than MAI's")
    if row == "I3":
        said.append("\"last\" is by any amount, behind Linux, Parallel-Init and cyclic; bind_all is one node")
    if row == "I5":
        said.append("\"all\" are Linux, Parallel-Init, cyclic and bind_block")
    if row in OF_MACHINE:
        said.append("rivals are the solutions that the text names (skew_mapp, prime_mapp, random are in the page's tables)")
    if row == "I6":
        said.append("a pair counts if both gains are in the range")
    return "; ".join(said) + "."


def locals_of(found, program, machine):
    """Local share of the accesses, per cent, of the first repeat."""
    return {name: 100 * one["local"] for name, one in found[program][0]["machines"][machine].items()}


def reason(row, found):
    """What was looked at of a finding that does not hold, in this run's own figures."""
    if row == "I1":
        local = locals_of(found, "mg", OPTERON)
        return (f"{local[BY_ROWS]:.0f} % of mg's accesses are local under bind_block and under Parallel-Init, {local['cyclic']:.0f} % "
                "under cyclic.")
    if row in ("I2", "I4"):
        program = {"I2": "mg", "I4": "ictm"}[row]
        seconds = [r[program][ITANIUM] for r in by_repeat(found)]
        gain = 100 * (median(s["Parallel-Init"] / s[BY_PARTS] for s in seconds) - 1)
        local = locals_of(found, program, ITANIUM)
        return (f"bind_block by parts of pages is {gain:.1f} % faster than by rows, and so than Parallel-Init, in the median; "
                f"{local[BY_PARTS]:.0f} and {local[BY_ROWS]:.0f} % of {program}'s accesses are local.")
    return ""


def tests(row, found):
    """Runs that take something away."""
    if row == "I5":
        return [Test("with all threads initialising Ondes 3D under Linux, too", [by_all_threads("ondes")(r) for r in by_repeat(found)])]
    return []
