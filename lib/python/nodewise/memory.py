"""Which memory of the library's a NumPy array is: its own, freed with the last array that shows it, or
somebody else's, adopted until that is freed."""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ._library import last_error, library, result

DIMENSIONS = 4


class Layout(NamedTuple):
    """How the library sees an array: in the order of memory, with up to four extents."""

    item: int
    extents: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return self.item * math.prod(self.extents)

    def sizes(self):
        return (ctypes.c_size_t * len(self.extents))(*self.extents)


def layout(shape: tuple[int, ...], item: int, fortran: bool) -> Layout:
    """Extents beyond the fourth are folded into it."""
    extents = tuple(reversed(shape)) if fortran else tuple(shape)
    head, tail = extents[: DIMENSIONS - 1], extents[DIMENSIONS - 1 :]
    return Layout(item, (head + ((math.prod(tail),) if tail else ())) or (1,))


class Memory:
    """Memory of the library's. NumPy arrays hold it as their base."""

    readonly = False

    def __init__(self, seen: Layout, fortran: bool) -> None:
        self.address = self._made(seen)
        self.layout, self.fortran = seen, fortran
        self.parts: dict[int, Adopted] = {}
        self.__array_interface__ = {
            "version": 3,
            "data": (self.address, self.readonly),
            "shape": (seen.nbytes,),
            "typestr": "|u1",
        }

    def _made(self, seen: Layout) -> int:
        address = library.nw_alloc(seen.item, len(seen.extents), seen.sizes())
        if not address:
            raise MemoryError(f"no memory for an array of {seen.nbytes} bytes")
        return address

    def __del__(self, forget=library.nw_forget, free=library.nw_free) -> None:
        if getattr(self, "address", None):
            for part in self.parts:
                forget(part)
            free(self.address)


class MappedFile(Memory):
    """A file that the library mapped: bytes in a row, whatever the arrays that show them."""

    readonly = True

    def __init__(self, descriptor: int, offset: int, nbytes: int) -> None:
        self.descriptor, self.offset = descriptor, offset
        super().__init__(Layout(1, (nbytes,)), False)

    def _made(self, seen: Layout) -> int:
        address = library.nw_map_file(self.descriptor, self.offset, seen.nbytes)
        if not address:
            raise ValueError(last_error())
        return address


class Adopted:
    """Memory that the library adopted, in one shape at a time: what it promised of that shape stays true."""

    def __init__(self, address: int, seen: Layout) -> None:
        self.address, self.layout = address, seen
        self.described: weakref.WeakSet = weakref.WeakSet()
        self.copied = False
        # Arrays that hold the memory, by identity. Having a weak reference, they cannot be resized.
        self.holders: set[int] = set()
        self._adopt(seen)

    def _adopt(self, seen: Layout) -> None:
        result(library.nw_adopt(self.address, seen.item, len(seen.extents), seen.sizes()))
        self.layout = seen

    def adopt_anew(self, seen: Layout) -> None:
        """In another shape, if nothing depends on this one."""
        if self.copied or self.described:
            extents = " x ".join(map(str, self.layout.extents))
            why = "has copies" if self.copied else "is described"
            raise ValueError(
                f"the memory {why} as {extents} items of {self.layout.item} bytes (in its order): give the "
                f"array in that shape{'' if self.copied else ', or del its Distribution first'}"
            )
        library.nw_forget(self.address)
        self._adopt(seen)

    def held_by(self, root: np.ndarray) -> None:
        if id(root) not in self.holders:
            self.holders.add(id(root))
            weakref.finalize(root, self._dropped, id(root)).atexit = False

    def _dropped(self, holder: int) -> None:
        self.holders.remove(holder)
        if not self.holders:
            del _adopted[self.address]
            library.nw_forget(self.address)


# Memory that NumPy or others own, by address; an entry goes with the last array that holds it.
_adopted: dict[int, Adopted] = {}


def address_of(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


class Target(NamedTuple):
    """An array as the library knows it."""

    address: int
    layout: Layout
    fortran: bool
    axes: int
    keep: object
    """What keeps its memory."""
    adopted: Adopted | None

    def dimension(self, axis: int) -> int:
        """The library's number of an axis."""
        folded = DIMENSIONS - 1 if self.axes > DIMENSIONS else DIMENSIONS
        axes = range(self.axes)[:: -1 if self.fortran else 1][:folded]
        if axis not in axes:
            known = ", ".join(map(str, sorted(axes))) or "none"
            raise ValueError(f"axis {axis} cannot be cut in this array of {self.axes} axes: give one of {known}")
        return axes.index(axis)


def _root(array: np.ndarray) -> np.ndarray:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


# How a call needs the memory to be known: known layout, that of the array → whether it will do.
Fit = Callable[[Layout, Layout], bool]


def same_shape(known: Layout, seen: Layout) -> bool:
    """For what goes by rows and columns."""
    return known == seen


def same_bytes(known: Layout, seen: Layout) -> bool:
    """For what goes by pages."""
    return known.nbytes == seen.nbytes


def covers(known: Layout, seen: Layout) -> bool:
    """For questions about its pages."""
    return known.nbytes >= seen.nbytes


def _adopted_part(parts: dict[int, Adopted], address: int, seen: Layout, fits: Fit) -> Adopted:
    known = parts.get(address)
    if not known:
        known = parts[address] = Adopted(address, seen)
    elif not fits(known.layout, seen):
        known.adopt_anew(seen)
    return known


def _adopted_foreign(address: int, seen: Layout, root: np.ndarray, fits: Fit) -> Adopted:
    adopted = _adopted_part(_adopted, address, seen, fits)
    adopted.held_by(root)
    return adopted


def _checked(array: np.ndarray) -> None:
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{type(array).__name__} is no NumPy array")
    if array.dtype.hasobject:
        raise ValueError("arrays of Python objects cannot be placed: the objects lie elsewhere")
    if array.nbytes == 0:
        raise ValueError("an array without items has no place")
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        raise ValueError("the array's items do not lie together: place the array that it is a view of")


def target(array: np.ndarray, fits: Fit = same_shape) -> Target:
    """Finds an array's memory, and adopts what is not known yet."""
    _checked(array)
    fortran = not array.flags.c_contiguous
    seen = layout(array.shape, array.itemsize, fortran)
    address, root = address_of(array), _root(array)
    memory = root.base
    if isinstance(memory, MappedFile) and (address != memory.address or not fits(memory.layout, seen)):
        raise ValueError(
            "the array is a part of a mapped file, or has rows, which a file has not: copy or ask about all of what "
            "map_file gave; `nodewise files` places files"
        )
    if not isinstance(memory, Memory):
        adopted = _adopted_foreign(address, seen, root, fits)
        return Target(address, seen, fortran, array.ndim, root, adopted)
    if address != memory.address:
        adopted = _adopted_part(memory.parts, address, seen, fits)
        return Target(address, seen, fortran, array.ndim, memory, adopted)
    if memory.layout in (seen, layout(array.shape, array.itemsize, not fortran)):
        return Target(address, memory.layout, memory.fortran, array.ndim, memory, None)
    if not fits(memory.layout, seen):
        raise ValueError(
            "the array is another shape of one that nodewise made, or its beginning: place that one as a whole"
        )
    return Target(address, seen, fortran, array.ndim, memory, None)
