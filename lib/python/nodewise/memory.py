"""Which memory of the library's a NumPy array is: its own, freed with the last array that shows it, or
somebody else's, adopted until that is freed."""

from __future__ import annotations

import ctypes
import math
import weakref
from typing import NamedTuple

import numpy as np

from ._library import library, result

DIMENSIONS = 4


class Layout(NamedTuple):
    """How the library sees an array: in the order of memory, with up to four extents."""

    item: int
    extents: tuple[int, ...]

    def sizes(self):
        return (ctypes.c_size_t * len(self.extents))(*self.extents)


def layout(shape: tuple[int, ...], item: int, fortran: bool) -> Layout:
    """Extents beyond the fourth are folded into it."""
    extents = tuple(reversed(shape)) if fortran else tuple(shape)
    head, tail = extents[: DIMENSIONS - 1], extents[DIMENSIONS - 1 :]
    return Layout(item, (head + ((math.prod(tail),) if tail else ())) or (1,))


class Memory:
    """Memory of the library's. NumPy arrays hold it as their base."""

    def __init__(self, seen: Layout, fortran: bool) -> None:
        self.address = library.nw_alloc(seen.item, len(seen.extents), seen.sizes())
        if not self.address:
            raise MemoryError(f"no memory for an array of {seen.item * math.prod(seen.extents)} bytes")
        self.layout, self.fortran = seen, fortran
        self.parts: dict[int, Layout] = {}
        self.__array_interface__ = {
            "version": 3,
            "data": (self.address, False),
            "shape": (seen.item * math.prod(seen.extents),),
            "typestr": "|u1",
        }

    def __del__(self, forget=library.nw_forget, free=library.nw_free) -> None:
        if getattr(self, "address", None):
            for part in self.parts:
                forget(part)
            free(self.address)


# Adopted arrays that NumPy or others own, by address; an entry goes with the array that holds the memory.
_adopted: dict[int, tuple[Layout, weakref.finalize]] = {}


def _forget(address: int) -> None:
    del _adopted[address]
    library.nw_forget(address)


def _adopt(address: int, seen: Layout) -> None:
    result(library.nw_adopt(address, seen.item, len(seen.extents), seen.sizes()))


def _adopt_foreign(address: int, seen: Layout, root: np.ndarray) -> None:
    known = _adopted.get(address)
    if known and known[0] == seen:
        return
    _adopt(address, seen)
    if known:
        known[1].detach()
    finalizer = weakref.finalize(root, _forget, address)
    finalizer.atexit = False
    _adopted[address] = (seen, finalizer)


class Target(NamedTuple):
    """An array as the library knows it."""

    address: int
    layout: Layout
    fortran: bool
    axes: int
    keep: object
    """What keeps its memory."""

    def dimension(self, axis: int) -> int:
        """The library's number of an axis."""
        dimension = self.axes - 1 - axis if self.fortran else axis
        folded = DIMENSIONS - 1 if self.axes > DIMENSIONS else DIMENSIONS
        if not 0 <= dimension < min(len(self.layout.extents), folded):
            raise ValueError(f"axis {axis} of an array of {self.axes} cannot be cut")
        return dimension


def _root(array: np.ndarray) -> np.ndarray:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def target(array: np.ndarray) -> Target:
    """Finds an array's memory, and adopts what is not known yet."""
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{type(array).__name__} is no NumPy array")
    if array.nbytes == 0:
        raise ValueError("an array without items has no place")
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        raise ValueError("the array's items do not lie together: place the array that it is a view of")
    fortran = not array.flags.c_contiguous
    seen = layout(array.shape, array.itemsize, fortran)
    address, root = array.__array_interface__["data"][0], _root(array)
    memory = root.base
    if not isinstance(memory, Memory):
        _adopt_foreign(address, seen, root)
        return Target(address, seen, fortran, array.ndim, root)
    if address != memory.address:
        if memory.parts.get(address) != seen:
            _adopt(address, seen)
            memory.parts[address] = seen
        return Target(address, seen, fortran, array.ndim, memory)
    if memory.layout not in (seen, layout(array.shape, array.itemsize, not fortran)):
        raise ValueError(
            "the array is another shape of one that nodewise made, or its beginning: place that one as a whole"
        )
    return Target(address, memory.layout, memory.fortran, array.ndim, memory)
