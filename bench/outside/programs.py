"""What is recorded for each program of points.csv: one of three kernels, and how its size differs from the source's."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Program:
    """A kernel with its arguments."""

    kernel: str
    arguments: tuple
    size: str  # against the source's
    shared: bool = False  # all threads read all data: only copies make them local


def scan(op, order, window, size, work, chunk):
    return ("--op", op, "--order", order, "--window", window, "--size", size, "--work", work, "--chunk", chunk)


def program(name, threads):
    """What stands for a program of the file with this number of threads. No thread's data fit the window of 4 MiB of the model, and
    all threads together go through eight times what is initialised or more, since that is no part of the sources' runs."""
    if name.startswith("dirtest"):
        return Program("scan", scan("line", "sequential", name.split()[1], 256, 256, 65536), "256 MiB for 8 GiB")
    if name == "fio randread":
        return Program("scan", scan("read", "random", "whole", 768, 96, 4096), "as the source's; 96 MiB read by a thread", True)
    if name.startswith("faiss"):
        # A list of 273 vectors.
        return Program("scan", scan("distance", "random", "whole", 1024, 128, 273 * 3840),
                       "1 GiB for 3.6 GiB; lists of 1 MiB for 37 MiB; 128 MiB read by a thread", True)
    if name.startswith(("llama", "colibri")):
        return Program("gemv", (8 * threads, 8), "8 MiB of weights a thread for 8 GiB and more; 8 tokens")
    if name.startswith("STREAM"):
        return Program("stream", (name.split()[1], 3 * threads, 20), "3 MiB an array and thread for 3 GiB an array; 20 repetitions")
    if name.startswith("SYCL"):
        return Program("stream", ("sycl", 4 * threads, 20), "4 MiB an array and thread for 2 GB an array; 20 repetitions")
    if name.startswith("MemA-Bench"):
        order, op = name.split()[1].split("_")
        # 128 bytes are two lines here, one line there.
        chunk, window = (4096, "own") if order == "sequential" else (128, "whole")
        size = max(256, 32 * threads)
        work = 8 * size // threads
        return Program("scan", scan(op.rstrip("s"), order, window, size, work, chunk),
                       f"{size} MiB for 7 GiB; {work} MiB by a thread")
    raise KeyError(name)
