"""Policies: how an array's blocks are dealt over memory nodes. Written as objects or as words:

    first-touch                       the kernel's choice
    cyclic [UNIT] [BLOCK]             in turn; UNIT: pages (the default), rows, columns or items
    block-cyclic ITEMS                the same, in blocks of items
    skew [UNIT] [BLOCK]               in turn, each round one node further on
    prime P [UNIT] [BLOCK]            in turn over P virtual nodes
    random [UNIT] [BLOCK] [seed S]    by a hash
    bind-all                          any of the nodes, where first touched
    node N                            one node
    bind UNIT [BLOCK]                 to the nodes of the threads that schedule(static) gives them to
    blocks [UNIT] [BLOCK]             contiguous parts
    block-exclusive [AXIS AXIS…]      a Latin square over the axes

each followed by `on 0,2` (nodes, in this order), `weights 2,1`, `threads 8` and `granule huge`, where they
make sense.
"""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Sequence
from typing import Any, Union

from ._library import CPolicy, whole
from .memory import Target

KINDS = ("first-touch", "cyclic", "skew", "prime", "random", "bind-all", "bind", "block-exclusive", "blocks")
UNITS = ("pages", "rows", "columns", "items")
GRANULES = ("auto", "base", "huge")
# Kinds of words beyond these, and kinds that deal blocks of units.
SHORT = ("block-cyclic", "node")
DEALING = ("cyclic", "skew", "prime", "random", "bind", "blocks")


@dataclasses.dataclass(frozen=True)
class Policy:
    """A policy. What is left out has the library's default; see `man nw_place`."""

    kind: str
    unit: str = "pages"
    block: int = 1
    nodes: tuple[int, ...] | None = None
    weights: tuple[int, ...] | None = None
    prime: int = 0
    seed: int = 0
    threads: int = 0
    axes: tuple[int, ...] | None = None
    granule: str = "auto"

    def __post_init__(self) -> None:
        for value, known, name in (
            (self.kind, KINDS, "kind"),
            (self.unit, UNITS, "unit"),
            (self.granule, GRANULES, "granule"),
        ):
            if value not in known:
                raise ValueError(_unknown(value, name, known))
        for name, most in (("block", 2**63 - 1), ("prime", 2**31 - 1), ("seed", 2**64 - 1), ("threads", 2**31 - 1)):
            object.__setattr__(self, name, whole(getattr(self, name), name, int(name == "block"), most))
        for names, name in (("nodes", "node"), ("weights", "weight"), ("axes", "axis")):
            if getattr(self, names) is not None:
                object.__setattr__(self, names, tuple(whole(n, name) for n in getattr(self, names)))
        self._check()

    def _check(self) -> None:
        if self.kind not in DEALING:
            object.__setattr__(self, "unit", "items" if self.kind == "block-exclusive" else "pages")
        for name, value, kinds in (
            ("block", self.block != 1, DEALING),
            ("prime", self.prime, ("prime",)),
            ("axes", self.axes, ("block-exclusive",)),
        ):
            if value and self.kind not in kinds:
                raise ValueError(f"{self.kind} has no {name}: only {', '.join(kinds)}")
        for name in ("nodes", "weights"):
            if getattr(self, name) == ():
                raise ValueError(f"no {name} in the list: leave it out for all nodes")
        if self.weights is not None and len(self.weights) != len(self.nodes or self.weights):
            raise ValueError(f"{len(self.weights)} weights for {len(self.nodes or ())} nodes")
        object.__setattr__(self, "axes", self.axes or None)

    def __str__(self) -> str:
        return " ".join(self._words())

    def _words(self) -> list[str]:
        words, nodes = [self.kind], self.nodes
        if self.kind == "bind-all" and nodes is not None and len(nodes) == 1:
            words, nodes = ["node", str(nodes[0])], None
        if self.kind == "prime":
            words.append(str(self.prime))
        if self.kind in DEALING:
            words.append(self.unit)
        if self.block != 1:
            words.append(str(self.block))
        words += [str(axis) for axis in self.axes or ()]
        for name, value in (("seed", self.seed), ("threads", self.threads)):
            if value:
                words += [name, str(value)]
        if self.granule != "auto":
            words += ["granule", self.granule]
        for name, values in (("on", nodes), ("weights", self.weights)):
            if values is not None:
                words += [name, ",".join(map(str, values))]
        return words

    @classmethod
    def parse(cls, text: str) -> Policy:
        """Reads the words above."""
        try:
            return _parse(text.replace(":", " ").split())
        except ValueError as error:
            raise ValueError(f"policy {text!r}: {error}") from None


PolicyLike = Union[Policy, str]


def _unknown(value: object, name: str, known: Sequence[str]) -> str:
    return f"{value!r} is no {name} of policy; known: {', '.join(known)}"


def _parse(words: list[str]) -> Policy:
    if not words:
        raise ValueError("empty")
    kind, rest = words[0], words[1:]
    if kind not in KINDS + SHORT:
        raise ValueError(_unknown(kind, "kind", KINDS + SHORT))
    found, rest = _options(rest)
    if kind == "node":
        if len(rest) != 1 or "nodes" in found:
            raise ValueError("give the number of the node, as in node 1")
        return Policy("bind-all", nodes=(_number(rest[0]),), **found)
    if kind == "block-exclusive":
        return Policy(kind, axes=tuple(_number(axis) for axis in rest), **found)
    if kind == "prime" and rest:
        found["prime"] = _number(rest.pop(0))
    if kind == "block-cyclic":
        kind, rest = "cyclic", ["items", *rest]
    if rest and rest[0] in UNITS:
        found["unit"] = rest.pop(0)
    if rest and kind in DEALING:
        found["block"] = _number(rest.pop(0))
    if rest:
        raise ValueError(f"{' '.join(rest)!r} is not understood")
    return Policy(kind, **found)


def _options(words: list[str]) -> tuple[dict[str, Any], list[str]]:
    """What a policy's words end with, and the words before that."""
    found: dict[str, Any] = {}
    while len(words) >= 2 and words[-2] in ("on", "weights", "seed", "threads", "granule"):
        words, (name, value) = words[:-2], words[-2:]
        if name in ("on", "weights"):
            found["nodes" if name == "on" else name] = tuple(_number(n) for n in value.split(","))
        else:
            found[name] = value if name == "granule" else _number(value)
    return found, words


def _number(word: str) -> int:
    if not word.isdecimal():
        raise ValueError(f"{word!r} is no number")
    return int(word)


def as_policy(policy: PolicyLike) -> Policy:
    if not isinstance(policy, (Policy, str)):
        raise TypeError(f'policy is {policy!r}: give a Policy, or words such as "cyclic rows 4"')
    return policy if isinstance(policy, Policy) else Policy.parse(policy)


def c_policy(policy: Policy, array: Target) -> CPolicy:
    """For an array. In Fortran's order the last axis is the library's first dimension, so that columns are
    its rows, as in the Fortran module."""
    unit = UNITS.index(policy.unit)
    if array.fortran and unit in (1, 2):
        unit = 3 - unit
    mask = 0
    for axis in policy.axes or ():
        mask |= 1 << array.dimension(axis)
    ours = CPolicy(
        kind=KINDS.index(policy.kind),
        unit=unit,
        block=policy.block,
        prime=policy.prime,
        seed=policy.seed,
        threads=policy.threads,
        dimensions=mask,
        granule=GRANULES.index(policy.granule),
    )
    if policy.nodes is not None:
        ours.nodes = (ctypes.c_int * max(1, len(policy.nodes)))(*policy.nodes)
        ours.node_count = len(policy.nodes)
    if policy.weights is not None:
        ours.weights = (ctypes.c_uint * max(1, len(policy.weights)))(*policy.weights)
        ours.node_count = len(policy.weights)
    return ours


def first_touch() -> Policy:
    """The kernel's choice, from now on."""
    return Policy("first-touch")


def cyclic(
    unit: str = "pages",
    block: int = 1,
    *,
    nodes: Sequence[int] | None = None,
    weights: Sequence[int] | None = None,
) -> Policy:
    """Blocks of so many units to the nodes in turn."""
    return Policy("cyclic", unit, block, nodes, weights)


def block_cyclic(items: int, *, nodes: Sequence[int] | None = None) -> Policy:
    """Majo and Gross's block-cyclic: blocks of so many items to the nodes in turn."""
    return Policy("cyclic", "items", items, nodes)


def skew(unit: str = "pages", block: int = 1, *, nodes: Sequence[int] | None = None) -> Policy:
    """In turn, each round one node further on."""
    return Policy("skew", unit, block, nodes)


def prime(number: int, unit: str = "pages", block: int = 1, *, nodes: Sequence[int] | None = None) -> Policy:
    """In turn over a prime number of virtual nodes; those that do not exist are dealt in turn."""
    return Policy("prime", unit, block, nodes, prime=number)


def random(
    unit: str = "pages",
    block: int = 1,
    *,
    seed: int = 0,
    nodes: Sequence[int] | None = None,
    weights: Sequence[int] | None = None,
) -> Policy:
    """By a seeded hash: the same each time."""
    return Policy("random", unit, block, nodes, weights, seed=seed)


def bind_all(*, nodes: Sequence[int] | None = None) -> Policy:
    """Any of the nodes, where first touched."""
    return Policy("bind-all", nodes=nodes)


def node(number: int) -> Policy:
    """One node, while it has room."""
    return Policy("bind-all", nodes=(number,))


def bind(unit: str, *, threads: int = 0, nodes: Sequence[int] | None = None) -> Policy:
    """Rows, columns… dealt to the threads as schedule(static) does, each to its thread's node."""
    return Policy("bind", unit, nodes=nodes, threads=threads)


def blocks(
    unit: str = "pages", *, nodes: Sequence[int] | None = None, weights: Sequence[int] | None = None
) -> Policy:
    """A contiguous part to each node, equal or by weights."""
    return Policy("blocks", unit, nodes=nodes, weights=weights)


def block_exclusive(*axes: int, nodes: Sequence[int] | None = None) -> Policy:
    """Majo and Gross's block-exclusive: a Latin square over two axes, a cube over three."""
    return Policy("block-exclusive", nodes=nodes, axes=axes)
