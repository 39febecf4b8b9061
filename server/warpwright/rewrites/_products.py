"""The loop of a matrix product, `for (k) sum += a[row * K + k] * b[k * N + col]`, in its usual spellings."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from warpwright.facts.aliasing import changes, handed_the_same
from warpwright.facts.model import AccessKind, Kernel, Space
from warpwright.rewrites._code import NoMatchError, bare, called_name, squeezed
from warpwright.rewrites._indices import Indices, Polynomial, as_number, require_fixed, symbols
from warpwright.rewrites._loops import CountedLoop, counted_loop, only_statement
from warpwright.syntax.nodes import uncommented
from warpwright.syntax.source import Source

_FUSED = frozenset({"fmaf", "fma", "__fmaf_rn", "__fma_rn", "__hfma"})


@dataclass(frozen=True, slots=True)
class Load:
    """One factor: `node` is the text that loads it (`a[i]` or `__ldg(&a[i])`), `axis` the axis of threadIdx that picks
    it beside the loop's variable, `value` its index as a sum of products."""

    node: Node
    array: str
    index: Node
    axis: str
    value: Polynomial
    element_type: str


@dataclass(frozen=True, slots=True)
class Product:
    loop: CountedLoop
    statement: Node
    sum: str
    loads: tuple[Load, Load]


def match_product(kernel: Kernel, indices: Indices, node: Node) -> Product:
    """Raises NoMatchError with the reason."""
    source = kernel.source
    loop = counted_loop(source, node)
    statement = only_statement(loop.body) if loop is not None else None
    factors = _added(source, statement) if statement is not None else None
    if loop is None or statement is None or factors is None:
        raise NoMatchError
    total, left, right = factors
    found = [_load(kernel, indices, loop, factor) for factor in (left, right)]
    one, other = found
    if one is None or other is None:
        raise NoMatchError
    line = source.position(node.start_byte)[0]
    if {one.axis, other.axis} != {"x", "y"}:
        raise NoMatchError(
            f"The factors at line {line} are not picked by threadIdx.y for the one and threadIdx.x for the other."
        )
    if total not in indices.variables.types or total in indices.variables.parameters:
        raise NoMatchError(f"The sum at line {line} is not kept in a variable of the thread.")
    return Product(loop, statement, total, (one, other))


def require_even(indices: Indices, product: Product, steps: int) -> None:
    """Every thread of the block goes round the loop as often, `steps` times or more where the number is known, and what
    picks the elements stays as it is. Raises NoMatchError where that is not certain."""
    loop, source = product.loop, indices.kernel.source
    line = source.position(loop.node.start_byte)[0]
    if indices.number(loop.start) != 0 or loop.step is not None:
        raise NoMatchError(f"The loop at line {line} does not run from 0 by steps of 1.")
    bound = indices.read(loop.bound)
    if bound is None or any(name.startswith("threadIdx") for name in symbols(bound)):
        raise NoMatchError(f"The loop at line {line} may run more often for one thread of a block than for another.")
    require_fixed(indices, symbols(bound), f"the loop at line {line}")
    for load in product.loads:
        require_fixed(indices, symbols(load.value) - {loop.name}, f"`{source.node_text(load.node)}`")
    number = as_number(bound)
    if number is not None and number < steps:
        raise NoMatchError(f"Nothing to gain: the loop at line {line} has {number} steps, less than a tile of {steps}.")


def require_unwritten(kernel: Kernel, product: Product) -> None:
    """The kernel does not write what it multiplies. Raises NoMatchError where it may."""
    written = {access.array for access in kernel.accesses if changes(access)}
    for load in product.loads:
        if load.array in written:
            raise NoMatchError(f"The kernel writes `{load.array}`, which it multiplies.")
    for one, other in handed_the_same(kernel):
        if written & {one, other}:
            raise NoMatchError(f"A launch hands the same array to {one} and {other}.")


def _added(source: Source, statement: Node) -> tuple[str, Node, Node] | None:
    """The sum and the factors of `s += x * y`, `s = s + x * y`, `s = fmaf(x, y, s)`."""
    inner = uncommented(statement)
    assignment = inner[0] if statement.type == "expression_statement" and len(inner) == 1 else None
    if assignment is None or assignment.type != "assignment_expression":
        return None
    left, right = assignment.child_by_field_name("left"), assignment.child_by_field_name("right")
    operator = assignment.child_by_field_name("operator")
    if left is None or right is None or operator is None or left.type != "identifier":
        return None
    total = source.node_text(left)
    if source.node_text(operator) == "+=":
        return _factors(source, total, right)
    if source.node_text(operator) != "=":
        return None
    right = bare(right)
    if right.type == "call_expression" and called_name(right, source) in _FUSED:
        arguments = uncommented(right.child_by_field_name("arguments"))
        same = len(arguments) == 3 and squeezed(source.node_text(arguments[2])) == total
        return (total, arguments[0], arguments[1]) if same else None
    one, other = right.child_by_field_name("left"), right.child_by_field_name("right")
    if right.type != "binary_expression" or one is None or other is None or not _is(right, "+"):
        return None
    for kept, added in ((one, other), (other, one)):
        if squeezed(source.node_text(kept)) == total:
            return _factors(source, total, added)
    return None


def _factors(source: Source, total: str, node: Node) -> tuple[str, Node, Node] | None:
    node = bare(node)
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if node.type == "binary_expression" and _is(node, "*") and left is not None and right is not None:
        return total, left, right
    if node.type == "call_expression" and called_name(node, source) == "__hmul":
        arguments = uncommented(node.child_by_field_name("arguments"))
        return (total, arguments[0], arguments[1]) if len(arguments) == 2 else None
    return None


def _is(node: Node, operator: str) -> bool:
    found = node.child_by_field_name("operator")
    return found is not None and found.type == operator


def _load(kernel: Kernel, indices: Indices, loop: CountedLoop, factor: Node) -> Load | None:
    """The load of global memory that a factor is, casts aside; None for anything else."""
    source = kernel.source
    factor = bare(factor)
    while factor.type == "cast_expression":
        inner = factor.child_by_field_name("value")
        if inner is None:
            return None
        factor = bare(inner)
    element: Node | None = factor
    if factor.type == "call_expression":
        arguments = uncommented(factor.child_by_field_name("arguments"))
        name = called_name(factor, source)
        if len(arguments) != 1 or (name != "__ldg" and not name.startswith("__") and name not in ("float", "double")):
            return None
        if name != "__ldg":
            return _load(kernel, indices, loop, arguments[0])
        address = arguments[0]
        element = address.child_by_field_name("argument") if source.node_text(address).startswith("&") else None
    subscripts = uncommented(element.child_by_field_name("indices")) if element is not None else []
    if element is None or element.type != "subscript_expression" or len(subscripts) != 1:
        return None
    array, index = element.child_by_field_name("argument"), subscripts[0]
    if array is None or array.type != "identifier" or not _is_global(kernel, element):
        return None
    name = source.node_text(array)
    value = indices.read(index)
    if value is None or loop.name not in symbols(value):
        raise NoMatchError(f"The index of `{source.node_text(element)}` is not a sum of products.")
    axes = [axis for axis in "xyz" if f"threadIdx.{axis}" in symbols(value)]
    kind = indices.variables.types.get(name, "auto")
    if len(axes) != 1 or kind == "auto" or name in indices.variables.changed:
        raise NoMatchError(f"What picks `{source.node_text(element)}` is not one axis of threadIdx and {loop.name}.")
    return Load(factor, name, index, axes[0], value, kind)


def _is_global(kernel: Kernel, element: Node) -> bool:
    return any(
        a.space is Space.GLOBAL
        and a.kind is AccessKind.LOAD
        and a.span.source is kernel.source
        and a.span.start <= element.start_byte < element.end_byte <= a.span.end
        for a in kernel.accesses
    )
