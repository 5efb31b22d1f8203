"""NumPy arrays, placed."""

from __future__ import annotations

import ctypes
import math
import os
import warnings
from collections.abc import Iterable, Sequence
from typing import IO, Any, NamedTuple, Union

import numpy as np

from . import machine
from ._library import CCopies, PlacementWarning, Result, Status, last_error, library, result, size, whole
from .memory import Layout, MappedFile, Memory, Target, covers, layout, same_bytes, target
from .policies import PolicyLike, as_policy, c_policy

ShapeLike = Union[int, Sequence[int]]


def _sizes(shape: ShapeLike) -> tuple[int, ...]:
    one = hasattr(shape, "__index__") and not getattr(shape, "shape", ())
    return tuple(size(n, "shape") for n in (shape if not one and isinstance(shape, Iterable) else (shape,)))


def zeros(
    shape: ShapeLike,
    dtype: Any = float,
    *,
    policy: PolicyLike | None = None,
    order: str = "C",
) -> np.ndarray:
    """An array in memory of its own, which is freed with the last array that shows it. No page is
    touched, or placed without a policy, before it is used."""
    sizes = _sizes(shape)
    kind = np.dtype(dtype)
    if kind.hasobject:
        raise ValueError("arrays of Python objects cannot be placed: the objects lie elsewhere")
    if order not in ("C", "F"):
        raise ValueError(f"order {order!r}: give C or F")
    if 0 in sizes or kind.itemsize == 0:
        raise ValueError(f"an array of shape {sizes} and {kind.itemsize} bytes an item has no memory")
    if math.prod(sizes) * kind.itemsize >= 2**63:
        raise ValueError(f"an array of shape {sizes} is larger than any memory")
    # Checked before there is anything to free.
    wanted = None if policy is None else as_policy(policy)
    memory = Memory(layout(sizes, kind.itemsize, order == "F"), order == "F")
    array = np.asarray(memory).view(kind).reshape(sizes, order=order)
    if wanted is not None:
        done = place(array, wanted)
        if not done:
            warnings.warn(done.message, PlacementWarning, stacklevel=2)
    return array


# New memory is zero.
empty = zeros


def map_file(
    file: str | os.PathLike | int | IO,
    dtype: Any = np.uint8,
    *,
    shape: ShapeLike | None = None,
    offset: int = 0,
) -> np.ndarray:
    """A file that is only read, such as a model's weights, as an array: mapped, until the last array that
    shows it is gone. `replicate` reads the file for its copies. Of the given shape, or to the file's end."""
    begin, kind = size(offset, "offset"), np.dtype(dtype)
    if kind.hasobject or kind.itemsize == 0:
        raise ValueError(f"a file has no items of {kind}")
    ours = isinstance(file, (str, os.PathLike))
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC) if ours else file if isinstance(file, int) else file.fileno()
    try:
        left = max(0, os.fstat(descriptor).st_size - begin) // kind.itemsize
        sizes = (left,) if shape is None else _sizes(shape)
        # Of no bytes, the library says what is wrong with the file.
        memory = MappedFile(descriptor, begin, math.prod(sizes) * kind.itemsize or 1)
    finally:
        if ours:
            os.close(descriptor)
    if math.prod(sizes) == 0:
        raise ValueError(f"there are no items of {kind} in {file!r} from byte {begin} on")
    return np.asarray(memory).view(kind).reshape(sizes)


def place(array: np.ndarray, policy: PolicyLike) -> Result:
    """Deals an array's pages, touched ones included, and all that will be touched. The array may be from
    anywhere; pages that it shares with other memory stay where they are."""
    wanted, found = as_policy(policy), target(array)
    ours = c_policy(wanted, found)
    return result(library.nw_place_by(found.address, ours))


class Distribution:
    """A policy worked out for one array, apart from its enforcement. `describe` makes it."""

    def __init__(self, array: np.ndarray, policy: PolicyLike) -> None:
        wanted = as_policy(policy)
        self._found: Target = target(array)
        self._array, self._handle = array, None
        ours = c_policy(wanted, self._found)
        self._handle = library.nw_describe_by(self._found.address, ours)
        if not self._handle:
            raise ValueError(last_error())
        self.policy = wanted
        if self._found.adopted:
            self._found.adopted.described.add(self)

    def __del__(self, free=library.nw_distr_free) -> None:
        if getattr(self, "_handle", None):
            free(self._handle)

    def __repr__(self) -> str:
        return f"<Distribution {str(self.policy)!r} of {self._array.shape} {self._array.dtype} over nodes {self.nodes}>"

    @property
    def result(self) -> Result:
        """OK, or ROUNDED where pages hold items of several nodes."""
        return result(library.nw_distr_status(self._handle))

    @property
    def nodes(self) -> list[int]:
        """The nodes that it deals to."""
        count = library.nw_distr_nodes(self._handle, None, 0)
        numbers = (ctypes.c_int * count)()
        library.nw_distr_nodes(self._handle, numbers, count)
        return list(numbers)

    @property
    def pages(self) -> int:
        """Pages of the array."""
        return _pages(self._found)

    def page_node(self, page: int) -> int:
        """The node of a page of the array; -1: the kernel's choice."""
        return library.nw_distr_page_node(self._handle, whole(page, "page", 0, self.pages - 1))

    def page_nodes(self) -> np.ndarray:
        """Those of all pages."""
        return np.array([self.page_node(page) for page in range(self.pages)], dtype=np.int32)

    def item_node(self, *index: int) -> int:
        """The node of an item, by its indices."""
        order = "F" if self._found.fortran else "C"
        item = int(np.ravel_multi_index(index, self._array.shape, order=order))
        return library.nw_distr_item_node(self._handle, item)

    def cut(self, axis: int, block: int) -> int:
        """Where block `block` of an axis begins: the cuts of block-exclusive. An axis that is not cut has one
        block."""
        return library.nw_distr_cut(self._handle, self._found.dimension(axis), whole(block, "block"))

    def distribute(self) -> Result:
        """Enforces it."""
        return result(library.nw_distribute(self._handle))


def describe(array: np.ndarray, policy: PolicyLike) -> Distribution:
    """Where a policy would put an array's pages; nothing is moved."""
    return Distribution(array, policy)


# ---- Migration: for once, without changing what later pages do


def _in_order(found: Target, rows: bool):
    return library.nw_migrate_rows if rows != found.fortran or _flat(found.layout) else library.nw_migrate_columns


def _flat(seen: Layout) -> bool:
    return len(seen.extents) == 1


def migrate_rows(array: np.ndarray, node: int, count: int, first: int) -> Result:
    """Moves rows first … first + count - 1 to a node."""
    found = target(array)
    move = _in_order(found, True)
    return result(move(found.address, whole(node, "node"), size(count, "count"), size(first, "first")))


def migrate_columns(array: np.ndarray, node: int, count: int, first: int) -> Result:
    """Likewise columns."""
    found = target(array)
    move = _in_order(found, False)
    return result(move(found.address, whole(node, "node"), size(count, "count"), size(first, "first")))


def scatter(array: np.ndarray, nodes: Sequence[int] | None = None) -> Result:
    """Moves equal contiguous parts to the nodes; None: all."""
    found = target(array, same_bytes)
    if nodes is None:
        return result(library.nw_scatter(found.address, None, 0))
    numbers = [whole(node, "node") for node in nodes]
    return result(library.nw_scatter(found.address, (ctypes.c_int * max(1, len(numbers)))(*numbers), len(numbers)))


def gather(array: np.ndarray, node: int) -> Result:
    """Moves everything to one node."""
    return result(library.nw_gather(target(array, same_bytes).address, whole(node, "node")))


# ---- Copies of what is only read


class _Copy:
    """A copy's memory, which lives as long as the array that it is a copy of."""

    def __init__(self, address: int, found: Target, nbytes: int) -> None:
        self.keep = found.keep
        self.__array_interface__ = {"version": 3, "data": (address, True), "shape": (nbytes,), "typestr": "|u1"}


def replicate(array: np.ndarray, nodes: Sequence[int] | None = None) -> Result:
    """Copies the array to each of the nodes, once; None: to all that have CPUs. Its content must not change
    any more."""
    found = target(array, same_bytes)
    if nodes is None:
        done = result(library.nw_replicate(found.address))
    else:
        numbers = [whole(node, "node") for node in nodes]
        list_of = (ctypes.c_int * max(1, len(numbers)))(*numbers)
        done = result(library.nw_replicate_on(found.address, list_of, len(numbers)))
    if found.adopted:
        found.adopted.copied |= done.status != Status.NOT_DONE
    return done


def nearest(array: np.ndarray) -> np.ndarray:
    """The copy nearest to the CPU that the caller runs on, read-only; the array itself if there are none."""
    found = target(array, covers)
    address = library.nw_nearest(found.address)
    if address == found.address:
        itself = array.view()
        itself.flags.writeable = False
        return itself
    order = "C" if array.flags.c_contiguous else "F"
    return np.asarray(_Copy(address, found, array.nbytes)).view(array.dtype).reshape(array.shape, order=order)


class Copies(NamedTuple):
    """What the copies of an array take: how many are in use, their bytes, those of copies that the guard gave
    up, the pages of all of them on each node, and how many of these lie on another node than they are for."""

    count: int
    bytes: int
    kept_bytes: int
    pages: dict[int, int]
    elsewhere: int


def copies(array: np.ndarray) -> Copies:
    """What the copies of an array take, and where they lie."""
    nodes, ours = machine.nodes(), CCopies()
    pages = (ctypes.c_size_t * (max(nodes) + 1))()
    result(library.nw_copies_of(target(array, covers).address, ours, pages, len(pages)))
    return Copies(ours.count, ours.bytes, ours.kept_bytes, {node: pages[node] for node in nodes}, ours.elsewhere)


def check_copies(array: np.ndarray) -> Result:
    """Compares all copies with the array, or with its file: STALE, and the first byte that differs, if it was
    written to since; NOT_DONE if there are no copies."""
    return result(library.nw_check_copies(target(array, covers).address))


# ---- Where pages are


class Histogram(NamedTuple):
    """Pages of an array on each node, and those not touched yet."""

    pages: dict[int, int]
    untouched: int


def _pages(found: Target) -> int:
    page = machine.page_bytes()
    return -(-(found.address % page + found.layout.nbytes) // page)


def page_nodes(array: np.ndarray) -> np.ndarray:
    """The node of each page as it is now; -1: not touched."""
    found = target(array, covers)
    nodes = np.full(_pages(found), -1, dtype=np.int32)
    pointer = nodes.ctypes.data_as(ctypes.POINTER(ctypes.c_int))
    result(library.nw_page_nodes(found.address, pointer, nodes.size))
    return nodes


def histogram(array: np.ndarray) -> Histogram:
    """Pages of an array on each node."""
    nodes = page_nodes(array)
    return Histogram({node: int((nodes == node).sum()) for node in machine.nodes()}, int((nodes < 0).sum()))
