"""A formula whose names are resolved: what the reference evaluates and a writer writes.

Example: `y[r] = sum[c] x[r, c]` has the input x with the extents (R, C), the output y with the extent (R), the sizes R
and C, and one stage y over the dimension r.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from warpwright.formulas.tree import Expr, Load, Name, walk
from warpwright.formulas.types import TYPES, ElementType

Role = Literal["in", "out", "in-out"]


@dataclass(frozen=True, slots=True)
class Tensor:
    """An array that a caller hands over. Extents and strides (in elements) are expressions over sizes; the strides of
    a packed array are None. `base` is the array that it lies in, `offset` elements behind its start: of a packed
    struct each field is a tensor of its own."""

    name: str
    type: str
    extents: tuple[Expr, ...]
    role: Role
    strides: tuple[Expr, ...] | None = None
    base: str = ""
    offset: int = 0

    @property
    def array(self) -> str:
        """The name of the array that is handed over."""
        return self.base or self.name


@dataclass(frozen=True, slots=True)
class Stage:
    """One equation. It is computed for each value of `dims`. `index` says where the result goes: the dimensions
    themselves, or for a scatter (`combine` is not "") any place, where it meets what is there. A scatter begins with
    what the caller's array holds where `keeps`, else with what changes nothing. `primed`: the new value of an array
    whose old one is read. `extents` are those of what a temporary scatter fills."""

    name: str
    dims: tuple[str, ...]
    value: Expr
    type: str
    temporary: bool = False
    index: tuple[Expr, ...] = ()
    combine: str = ""
    keeps: bool = False
    primed: bool = False
    extents: tuple[Expr, ...] = ()

    @property
    def own_index(self) -> tuple[Expr, ...]:
        """Where the result goes."""
        return self.index or tuple(Name(each) for each in self.dims)


@dataclass(frozen=True, slots=True)
class Formula:
    """`dims` maps each dimension to its extent; `sizes` are the free symbols of extents and strides, in the order in
    which they come up; `scalars` maps each argument that is a number to its type. Stages come after what they read;
    `written` names the results in the order of the text.
    `promises` are sentences on what a caller must see to: indices that are read from memory lie in range."""

    text: str
    tensors: Mapping[str, Tensor]
    scalars: Mapping[str, str]
    dims: Mapping[str, Expr]
    sizes: tuple[str, ...]
    stages: tuple[Stage, ...]
    promises: tuple[str, ...] = ()
    written: tuple[str, ...] = ()

    @property
    def outputs(self) -> tuple[Stage, ...]:
        """The stages that are results, in the order in which they are written."""
        results = (each for each in self.stages if not each.temporary)
        order = {name: number for number, name in enumerate(self.written)}
        return tuple(sorted(results, key=lambda each: order.get(each.name, len(order))))

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return tuple(each for each in self.tensors.values() if each.role != "out")

    def stage(self, name: str) -> Stage | None:
        """The stage of that name, which loads of it read; None for an array of the caller and for one whose old value
        is read."""
        return next((each for each in self.stages if each.name == name and not each.primed and not each.keeps), None)

    def type_of(self, name: str) -> ElementType:
        """The element type of a tensor, a stage or a scalar."""
        if name in self.tensors:
            return TYPES[self.tensors[name].type]
        if name in self.scalars:
            return TYPES[self.scalars[name]]
        return TYPES[next(each.type for each in self.stages if each.name == name)]

    def extents_of(self, name: str) -> tuple[Expr, ...]:
        """The extents of a tensor or a stage."""
        if name in self.tensors:
            return self.tensors[name].extents
        stage = next(each for each in self.stages if each.name == name)
        return stage.extents or tuple(self.dims[each] for each in stage.dims)

    def loads(self, node: Expr) -> Iterator[Load]:
        """Every load in an expression, of tensors and stages."""
        return (each for each in walk(node) if isinstance(each, Load))
