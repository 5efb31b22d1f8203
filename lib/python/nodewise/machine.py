"""The machine, its threads, and what was moved."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

from ._library import CStatistics, Result, last_error, library, result, whole


def _list(function) -> list[int]:
    count = function(None, 0)
    numbers = (ctypes.c_int * count)()
    return list(numbers[: min(count, function(numbers, count))])


def nodes() -> list[int]:
    """The memory nodes that this process may use, ascending."""
    return _list(library.nw_nodes)


def cpus() -> list[int]:
    """The CPUs that this process may run on, in the order in which threads are bound."""
    return _list(library.nw_cpus)


def cpu_node(cpu: int) -> int:
    """The node of a CPU."""
    node = library.nw_cpu_node(whole(cpu, "cpu"))
    if node < 0:
        raise ValueError(f"there is no CPU {cpu}")
    return node


def page_bytes() -> int:
    """Bytes of a page."""
    return library.nw_page_bytes()


def huge_page_bytes() -> int:
    """Bytes of a transparent huge page; 0 where there are none."""
    return library.nw_huge_page_bytes()


def set_threads(threads: int) -> int:
    """How many threads work on arrays, which `bind` deals to; 0: OMP_NUM_THREADS, else the number of CPUs.
    Returns the number in force."""
    threads = library.nw_set_threads(whole(threads, "threads"))
    if threads < 0:
        raise ValueError(last_error())
    return threads


def get_threads() -> int:
    """The number of threads in force."""
    return library.nw_get_threads()


def bind_thread(thread: int) -> Result:
    """Binds the calling thread as number `thread` of `get_threads()`."""
    return result(library.nw_bind_thread(whole(thread, "thread")))


def bind_threads() -> Result:
    """Binds all threads that the process has now, in the order they were started."""
    return result(library.nw_bind_threads())


def migrate_thread(tid: int, cpu: int) -> Result:
    """Moves a thread (`threading.get_native_id()`; 0: the caller) to a CPU."""
    return result(library.nw_migrate_thread(whole(tid, "tid"), whole(cpu, "cpu")))


def thread_node(thread: int) -> int:
    """The node of thread `thread`: where it was bound, else where `bind_thread` would put it."""
    node = library.nw_thread_node(whole(thread, "thread"))
    if node < 0:
        raise ValueError(last_error())
    return node


class Statistics(NamedTuple):
    """What this library's calls moved, since the process began."""

    pages_moved: int
    page_seconds: float
    threads_moved: int
    thread_seconds: float
    calls: int
    """System calls made to place and to move."""


def statistics() -> Statistics:
    """Pages and threads moved to another node, and the time that took."""
    counted = CStatistics()
    library.nw_get_statistics(counted)
    return Statistics(*(getattr(counted, name) for name in Statistics._fields))
