"""The block and the grid that a kernel's text asks for where no launch of it is found.

Kernels of tiles hold only for one block, and say which in the way that they number their threads:

- `blockIdx.x * 16 + threadIdx.x`: each block has 16 places, one for each thread,
- `for (i = threadIdx.x; ...; i += 128)` and `tile[threadIdx.y + j]` in `for (j = 0; ...; j += 8)`: as many threads as
  a round,
- `tile[threadIdx.y][threadIdx.x]` at no condition: as many threads as the array has places.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import reduce
from typing import Any

from warpwright.facts import ir
from warpwright.facts.model import MAX_THREADS_PER_BLOCK, Dim3
from warpwright.problems.expressions import (
    Binary,
    Call,
    Expression,
    ExpressionError,
    Name,
    Number,
    evaluate,
    names,
)
from warpwright.problems.reach import ArrayReach

_SKIPPED = {"span", "value_code", "place_code", "type", "shared"}


def text_block(function: ir.Function, arrays: Mapping[str, ArrayReach], default: Dim3) -> Dim3:
    """The block that the text asks for; of `default` the axes that it does not tell, fewer where its shared arrays hold
    no more. `arrays` is how far each is reached (`reach.kernel_reach`)."""
    asked = _Asked(function)
    block = list(default)
    for axis in range(3):
        found = asked.rounds[axis] or asked.strides[axis]
        held = min(asked.held[axis], default=None)
        if found:
            block[axis] = min(found)
        elif held is not None and default[axis] > 1:
            block[axis] = held if held % 32 == 0 else 1 << (held.bit_length() - 1)
        if held is not None:
            block[axis] = min(block[axis], held)
    x, y, z = block
    if x * y * z > MAX_THREADS_PER_BLOCK:
        x, y, z = default
    while x > 1 and not _fits(arrays, (x, y, z)):
        x -= 1
    return (x, y, z) if _fits(arrays, (x, y, z)) else default


def tiled_grid(
    function: ir.Function, arrays: Mapping[str, ArrayReach], symbols: Sequence[str]
) -> dict[str, Expression]:
    """The blocks of each axis whose blocks are tiles, as in `blockIdx.x * 16 + threadIdx.x`, of the kernel's sizes:
    enough for the largest where guards keep its arrays' extents from growing with the grid, else what the least holds.
    """
    strides = _Asked(function).strides
    sizes: tuple[Expression, ...] = tuple(map(Name, symbols))
    grid: dict[str, Expression] = {}
    if not sizes:
        return grid
    for axis, asked in zip("xyz", strides, strict=True):
        if len(asked) != 1:
            continue
        size = Number(min(asked))
        grows = any(r.extent is None or f"gridDim.{axis}" in names(r.extent) for r in arrays.values() if not r.declared)
        one = reduce(lambda left, right: Call("min" if grows else "max", (left, right)), sizes)
        if grows:
            grid[axis] = Call("max", (Number(1), Binary("/", one, size)))
        else:
            grid[axis] = Binary("/", Binary("-", Binary("+", one, size), Number(1)), size)
    return grid


def _fits(arrays: Mapping[str, ArrayReach], block: Dim3) -> bool:
    """Whether the arrays of fixed size hold what such a block reaches, as far as that depends on the block alone."""
    sizes = {f"blockDim.{axis}": size for axis, size in zip("xyz", block, strict=True)}
    for reach in arrays.values():
        if reach.declared is None or reach.extent is None or not names(reach.extent) <= sizes.keys():
            continue
        try:
            if evaluate(reach.extent, sizes) > max(reach.declared, evaluate(reach.extent, dict.fromkeys(sizes, 1))):
                return False
        except ExpressionError:
            continue
    return True


@dataclass(slots=True)
class _Asked:
    """What the text says of each axis: places of a block, threads of a round, threads that shared arrays hold."""

    function: ir.Function
    strides: tuple[set[int], set[int], set[int]] = field(default_factory=lambda: (set(), set(), set()))
    rounds: tuple[set[int], set[int], set[int]] = field(default_factory=lambda: (set(), set(), set()))
    held: tuple[set[int], set[int], set[int]] = field(default_factory=lambda: (set(), set(), set()))
    values: dict[int, ir.Expr] = field(default_factory=lambda: {})
    steps: dict[int, int] = field(default_factory=lambda: {})
    shared: dict[int, tuple[int | None, ...]] = field(default_factory=lambda: {})

    def __post_init__(self) -> None:
        nodes = list(_nodes(self.function.body))
        changed = {
            n.target.slot for n in nodes if isinstance(n, ir.Assign | ir.Update) and isinstance(n.target, ir.Var)
        }
        for node in nodes:
            if isinstance(node, ir.Declare):
                if node.shared is not None and not node.shared.dynamic:
                    self.shared[node.slot] = node.shared.dims
                elif node.init is not None and node.slot not in changed:
                    self.values[node.slot] = node.init
        for node in nodes:
            if isinstance(node, ir.Loop):
                self._loop(node)
        for node in nodes:
            if isinstance(node, ir.Binary) and node.op == "+":
                self._sum(node)
        for node in _nodes(self.function.body, always=True):
            if isinstance(node, ir.Index):
                self._subscripts(node)

    def _loop(self, loop: ir.Loop) -> None:
        step = loop.step
        if not (isinstance(step, ir.Assign) and step.op == "+" and isinstance(step.target, ir.Var)):
            return
        size = self._number(step.value)
        if size is None or not 1 < size <= MAX_THREADS_PER_BLOCK:
            return
        self.steps[step.target.slot] = size
        first = loop.init
        if isinstance(first, ir.Declare) and first.slot == step.target.slot and first.init is not None:
            axis = self._axis(first.init, "threadIdx")
            if axis is not None:
                self.rounds[axis].add(size)

    def _sum(self, node: ir.Binary) -> None:
        parts = list(self._terms(node))
        for thread in parts:
            axis = self._axis(thread, "threadIdx")
            if axis is None:
                continue
            for part in parts:
                if isinstance(part, ir.Var) and part.slot in self.steps:
                    self.rounds[axis].add(self.steps[part.slot])
                elif isinstance(part, ir.Binary) and part.op == "*":
                    for one, other in ((part.left, part.right), (part.right, part.left)):
                        size = self._number(other)
                        if self._axis(one, "blockIdx") == axis and size and size <= MAX_THREADS_PER_BLOCK:
                            self.strides[axis].add(size)

    def _subscripts(self, node: ir.Index) -> None:
        """`tile[a][b]`, whole: each subscript that is a thread's index, or that and a number."""
        subscripts: list[ir.Expr] = []
        base: ir.Expr = node
        while isinstance(base, ir.Index):
            subscripts.insert(0, base.index)
            base = base.base
        dims = self.shared.get(base.slot, ()) if isinstance(base, ir.Var) else ()
        for subscript, size in zip(subscripts, dims, strict=False):
            parts = list(self._terms(subscript))
            axes = [axis for part in parts if (axis := self._axis(part, "threadIdx")) is not None]
            numbers = [number for part in parts if (number := self._number(part)) is not None]
            if size and len(axes) == 1 and len(axes) + len(numbers) == len(parts) and 0 <= sum(numbers) < size:
                self.held[axes[0]].add(size - sum(numbers))

    def _plain(self, node: ir.Expr) -> ir.Expr:
        """Behind casts and variables that keep their first value."""
        for _ in range(16):
            if isinstance(node, ir.Cast):
                node = node.operand
            elif isinstance(node, ir.Var) and node.slot in self.values:
                node = self.values[node.slot]
            else:
                break
        return node

    def _terms(self, node: ir.Expr) -> Iterator[ir.Expr]:
        node = self._plain(node)
        if isinstance(node, ir.Binary) and node.op == "+":
            yield from self._terms(node.left)
            yield from self._terms(node.right)
        else:
            yield node

    def _axis(self, node: ir.Expr, name: str) -> int | None:
        node = self._plain(node)
        return node.axis if isinstance(node, ir.Special) and node.name == name else None

    def _number(self, node: ir.Expr) -> int | None:
        node = self._plain(node)
        return node.value if isinstance(node, ir.Const) and isinstance(node.value, int) else None


def _nodes(node: Any, always: bool = False) -> Iterator[Any]:
    """All nodes of the form that is interpreted; of what stands at no condition alone with `always`."""
    stack = [node]
    while stack:
        node = stack.pop()
        if isinstance(node, list | tuple):
            stack.extend(node)
        elif isinstance(node, ir.Expr | ir.Stmt):
            yield node
            if always and isinstance(node, ir.If | ir.Conditional | ir.Logical | ir.Switch):
                continue
            stack.extend(getattr(node, f.name) for f in fields(node) if f.name not in _SKIPPED)
