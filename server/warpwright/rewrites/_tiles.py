"""Tiles of shared memory for the factors of a matrix product: how each is filled and read."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from warpwright.algebra.sums import coefficient, symbols
from warpwright.facts.model import Kernel
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import NoMatchError, with_names
from warpwright.rewrites._guards import Condition
from warpwright.rewrites._indices import Indices, require_fixed
from warpwright.rewrites._layout import free_name
from warpwright.rewrites._locals import is_template_type
from warpwright.rewrites._products import Load, Product
from warpwright.syntax.nodes import descendants
from warpwright.syntax.source import Source

_ACROSS = {"x": "y", "y": "x"}


@dataclass(frozen=True, slots=True)
class Tile:
    """One factor's tile. `step` is the name of its place along the sum, which runs along threadIdx.`step_axis` as the
    tile is filled; `before` declares what `fill` needs; `read` is the element that a thread adds."""

    load: Load
    name: str
    step: str
    step_axis: str
    before: str
    fill: str
    read: str
    padded: bool


def tile_of(
    indices: Indices,
    product: Product,
    load: Load,
    conditions: tuple[Condition, ...],
    side: int,
    taken: tuple[str, ...],
) -> Tile:
    """How the block fills the tile of a factor and a thread reads it. Raises NoMatchError."""
    kernel, loop = indices.kernel, product.loop
    source = kernel.source
    text = " ".join((source.code_text(), *taken))
    name = free_name(text, f"{load.array}_tile")
    step = free_name(f"{text} {name}", f"{load.array}_{loop.name}")
    runs_along_sum = coefficient(load.value, loop.name) == 1
    runs_along_own = coefficient(load.value, f"threadIdx.{load.axis}") == 1
    is_contiguous, is_across = (
        (runs_along_own, runs_along_sum) if load.axis == "x" else (runs_along_sum, runs_along_own)
    )
    deciding = [c for c in conditions if is_for(indices, c, load.axis)]
    own = _own_variable(indices, source, [load.index, *(n for c in deciding for n in (c.left, c.right))], load.axis)
    across = is_across and not is_contiguous and own is not None
    step_axis = load.axis if across else _ACROSS[load.axis]
    new = {loop.name: step}
    before = ""
    if across and own is not None:
        moved = free_name(f"{text} {name} {step}", f"{load.array}_{own}")
        axis = load.axis
        before = f"{indices.variables.types[own]} {moved} = {own} - threadIdx.{axis} + threadIdx.{_ACROSS[axis]};"
        new[own] = moved
    tests = [c.text(source, new) for c in deciding]
    bound = indices.number(loop.bound)
    if bound is None or bound % side:
        tests.append(f"{step} < {source.node_text(loop.bound)}")
    value = with_names(source, load.node, new)
    fill = f"{' && '.join(dict.fromkeys(tests))} ? {value} : {zero_of(kernel, load)}" if tests else value
    of_thread = f"threadIdx.{load.axis}"
    # A tile's rows run along threadIdx.x: the sum's variable where that is its axis, else the factor's own index.
    first, second = (of_thread, loop.name) if step_axis == "x" else (loop.name, of_thread)
    padded = first == "threadIdx.x"
    return Tile(load, name, step, step_axis, before, fill, f"{name}[{first}][{second}]", padded)


def is_for(indices: Indices, condition: Condition, axis: str) -> bool:
    """Whether a condition decides about a factor: it depends on that axis of the thread, or on neither."""
    text = condition.text(indices.kernel.source)
    left, right = indices.read(condition.left), indices.read(condition.right)
    if left is None or right is None:
        raise NoMatchError(f"The condition `{text}` is not followed.")
    used = symbols(left) | symbols(right)
    if {"threadIdx.x", "threadIdx.y"} <= used:
        raise NoMatchError(f"The condition `{text}` depends on both threadIdx.x and threadIdx.y.")
    require_fixed(indices, used, f"the condition `{text}`")
    return f"threadIdx.{_ACROSS[axis]}" not in used


def _own_variable(indices: Indices, source: Source, nodes: list[Node], axis: str) -> str | None:
    """The one variable of expressions that depends on the thread, by 1 for each along its axis; None where there is
    no such or another way to depend on it."""
    found: set[str] = set()
    for node in nodes:
        if "threadIdx" in source.node_code(node):
            return None
        for use in descendants(node, "identifier"):
            value = indices.named(source.node_text(use))
            if value is None or any(name.startswith("threadIdx") for name in symbols(value)):
                found.add(source.node_text(use))
    name = found.pop() if len(found) == 1 else ""
    value = indices.named(name) if name in indices.variables.types else None
    known = builtin_type(indices.variables.types.get(name, "")) is not None
    return name if value is not None and known and coefficient(value, f"threadIdx.{axis}") == 1 else None


def element_bytes(load: Load) -> int | None:
    kind = builtin_type(load.element_type)
    return kind.size if kind is not None else None


def zero_of(kernel: Kernel, load: Load) -> str:
    """A literal 0 of the matrix's type. Raises NoMatchError where it holds no numbers."""
    kind = builtin_type(load.element_type)
    if kind is not None and kind.name in ("float", "double"):
        return {"float": "0.0f", "double": "0.0"}[kind.name]
    if kind is not None and kind.is_integer:
        return "0"
    if kind is not None and kind.kind == "float":
        return f"{load.element_type}(0.0f)"
    if is_template_type(kernel, load.element_type):
        return f"{load.element_type}(0)"
    raise NoMatchError(f"`{load.array}` holds {load.element_type}, which has no zero that could fill the edges.")
