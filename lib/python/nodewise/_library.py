"""The C library: its functions, structures and statuses."""

from __future__ import annotations

import ctypes
import enum
import operator
import os
import pathlib
from ctypes import POINTER, Structure, c_char_p, c_double, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import NamedTuple


class Status(enum.IntEnum):
    """How a call went. None of these is an error."""

    OK = 0
    ROUNDED = 1
    """Finer than pages: each page went to the owner of its middle byte."""
    PARTLY = 2
    """Some pages lie elsewhere: a full node, or pages that may not move."""
    NOT_DONE = 3
    """No placement here: one node, no permission, no such system call."""
    STALE = 4
    """Copies are not what their array or file is now."""


class Result(NamedTuple):
    """A status, and in one line what was not done and why."""

    status: Status
    message: str = ""

    def __bool__(self) -> bool:
        """Whether pages lie as asked, down to the size of a page; whether copies are as they should be."""
        return self.status <= Status.ROUNDED


class PlacementWarning(UserWarning):
    """An array could not be placed as asked; it is usable."""


class CPolicy(Structure):
    """nw_policy"""

    _fields_ = [
        ("kind", c_int),
        ("unit", c_int),
        ("block", c_size_t),
        ("nodes", POINTER(c_int)),
        ("node_count", c_int),
        ("weights", POINTER(c_uint)),
        ("prime", c_uint),
        ("seed", c_uint64),
        ("threads", c_int),
        ("dimensions", c_uint),
        ("granule", c_int),
    ]


class CStatistics(Structure):
    """nw_statistics"""

    _fields_ = [
        ("pages_moved", c_uint64),
        ("page_seconds", c_double),
        ("threads_moved", c_uint64),
        ("thread_seconds", c_double),
        ("calls", c_uint64),
    ]


class CCopies(Structure):
    """nw_copies"""

    _fields_ = [("count", c_int), ("bytes", c_size_t), ("kept_bytes", c_size_t), ("elsewhere", c_size_t)]


_ints, _sizes = POINTER(c_int), POINTER(c_size_t)

# Result, then arguments, of each function that is used.
_FUNCTIONS = {
    "nw_last_error": (c_char_p,),
    "nw_version": (c_char_p,),
    "nw_nodes": (c_int, _ints, c_int),
    "nw_cpus": (c_int, _ints, c_int),
    "nw_cpu_node": (c_int, c_int),
    "nw_page_bytes": (c_size_t,),
    "nw_huge_page_bytes": (c_size_t,),
    "nw_alloc": (c_void_p, c_size_t, c_int, _sizes),
    "nw_free": (c_int, c_void_p),
    "nw_adopt": (c_int, c_void_p, c_size_t, c_int, _sizes),
    "nw_forget": (c_int, c_void_p),
    "nw_place_by": (c_int, c_void_p, POINTER(CPolicy)),
    "nw_describe_by": (c_void_p, c_void_p, POINTER(CPolicy)),
    "nw_distribute": (c_int, c_void_p),
    "nw_distr_free": (None, c_void_p),
    "nw_distr_page_node": (c_int, c_void_p, c_size_t),
    "nw_distr_item_node": (c_int, c_void_p, c_size_t),
    "nw_distr_status": (c_int, c_void_p),
    "nw_distr_nodes": (c_int, c_void_p, _ints, c_int),
    "nw_distr_cut": (c_size_t, c_void_p, c_int, c_int),
    "nw_migrate_rows": (c_int, c_void_p, c_int, c_size_t, c_size_t),
    "nw_migrate_columns": (c_int, c_void_p, c_int, c_size_t, c_size_t),
    "nw_scatter": (c_int, c_void_p, _ints, c_int),
    "nw_gather": (c_int, c_void_p, c_int),
    "nw_replicate": (c_int, c_void_p),
    "nw_replicate_on": (c_int, c_void_p, _ints, c_int),
    "nw_nearest": (c_void_p, c_void_p),
    "nw_copies_of": (c_int, c_void_p, POINTER(CCopies), _sizes, c_int),
    "nw_check_copies": (c_int, c_void_p),
    "nw_map_file": (c_void_p, c_int, c_uint64, c_size_t),
    "nw_set_threads": (c_int, c_int),
    "nw_get_threads": (c_int,),
    "nw_bind_thread": (c_int, c_int),
    "nw_bind_threads": (c_int,),
    "nw_migrate_thread": (c_int, c_int, c_int),
    "nw_thread_node": (c_int, c_int),
    "nw_page_nodes": (c_int, c_void_p, _ints, c_size_t),
    "nw_histogram": (c_int, c_void_p, _sizes, c_int, _sizes),
    "nw_get_statistics": (None, POINTER(CStatistics)),
}


def _load() -> ctypes.CDLL:
    """The library that came with the package, or the one that NODEWISE_LIBRARY names."""
    beside = pathlib.Path(__file__).with_name("libnodewise.so")
    library = ctypes.CDLL(os.environ.get("NODEWISE_LIBRARY") or str(beside))
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


library = _load()

_INVALID, _NO_MEMORY = -1, -2


def last_error() -> str:
    return library.nw_last_error().decode(errors="replace")


def version() -> str:
    """The library's version."""
    return library.nw_version().decode()


def result(status: int) -> Result:
    """A call's result, or the exception that its status stands for."""
    if status < 0:
        raise MemoryError(last_error()) if status == _NO_MEMORY else ValueError(last_error())
    return Result(Status(status), "" if status == 0 else last_error())


def whole(value: int, name: str, least: int = 0, most: int = 2**31 - 1) -> int:
    """An integer that C can hold: ctypes would cut it off without a word."""
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}: it must be an integer") from None
    if not least <= value <= most:
        raise ValueError(f"{name} is {value}: it must be {least} to {most}")
    return value


def size(value: int, name: str) -> int:
    return whole(value, name, 0, 2**63 - 1)
