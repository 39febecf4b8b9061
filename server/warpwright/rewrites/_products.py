"""The loop of a matrix product, `for (k) sum += a[row * K + k] * b[k * N + col]`, in its usual spellings.

Other sums of two elements are taken like it where two zeros add nothing: `fabsf(a - b)`, `(a - b) * (a - b)`,
`sqrtf(a * b)`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tree_sitter import Node

from warpwright.algebra.sums import as_number, symbols
from warpwright.cuda.functions import called_name
from warpwright.facts.aliasing import changes
from warpwright.facts.model import AccessKind, Kernel, Space
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import NoMatchError, bare, squeezed
from warpwright.rewrites._indices import Indices, Polynomial, require_fixed
from warpwright.rewrites._loops import CountedLoop, counted_loop
from warpwright.syntax.nodes import descendants, is_called, uncommented
from warpwright.syntax.source import Source

_KEEPS_ZERO = re.compile(
    r"(?:sqrt|fabs|fmin|fmax|sin|tan|tanh|expm1|log1p|floor|ceil)f?|abs|labs|min|max|__popc(?:ll)?|float|double|int|__hmul|"
    r"__(?:half|bfloat16)2float|__float2(?:half|bfloat16)(?:_rn)?|__fsqrt_rn|__fmul_rn|__fadd_rn|__fsub_rn|static_cast|__ldg"
)
"""Functions that give 0 for zeros."""
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
    nodes: tuple[Node, ...] = ()
    """All texts that load it, `node` the first of them."""


@dataclass(frozen=True, slots=True)
class Product:
    """`statement` is what adds to the sum; a whole body in braces where it declares variables of its own first."""

    loop: CountedLoop
    statement: Node
    sum: str
    loads: tuple[Load, Load]


def match_product(kernel: Kernel, indices: Indices, node: Node) -> Product:
    """Raises NoMatchError with the reason."""
    source = kernel.source
    loop = counted_loop(source, node)
    added = _added(source, loop.body) if loop is not None else None
    if loop is None or added is None:
        raise NoMatchError
    loads = _two_loads(kernel, indices, loop, added)
    if loads is None:
        raise NoMatchError
    one, other = loads
    statement, total = added.statement, added.total
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


@dataclass(frozen=True, slots=True)
class _Added:
    """What a loop's body adds to the variable `total`: the product of `factors`. `own` are the variables that it
    declares before, with their values."""

    statement: Node
    total: str
    factors: tuple[Node, ...]
    own: Mapping[str, Node]


def _added(source: Source, inside: Node) -> _Added | None:
    """The sum and what is added of `s += x`, `s = s + x`, `s = fmaf(x, y, s)`, behind declarations of numbers."""
    statements = uncommented(inside) if inside.type == "compound_statement" else [inside]
    own: dict[str, Node] = {}
    for statement in statements[:-1]:
        kind = statement.child_by_field_name("type")
        known = builtin_type(source.node_text(kind)) if statement.type == "declaration" and kind is not None else None
        if known is None or known.kind not in ("float", "int", "uint"):
            return None
        for declarator in statement.children_by_field_name("declarator"):
            name, value = declarator.child_by_field_name("declarator"), declarator.child_by_field_name("value")
            if name is None or value is None or name.type != "identifier":
                return None
            own[source.node_text(name)] = value
    found = _sum_of(source, statements[-1]) if statements else None
    if found is None:
        return None
    total, factors = found
    return _Added(statements[0] if len(statements) == 1 else inside, total, factors, own)


def _sum_of(source: Source, statement: Node) -> tuple[str, tuple[Node, ...]] | None:
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
        return total, (right,)
    if source.node_text(operator) != "=":
        return None
    right = bare(right)
    if right.type == "call_expression" and called_name(right, source) in _FUSED:
        arguments = uncommented(right.child_by_field_name("arguments"))
        same = len(arguments) == 3 and squeezed(source.node_code(arguments[2])) == total
        return (total, (arguments[0], arguments[1])) if same else None
    one, other = right.child_by_field_name("left"), right.child_by_field_name("right")
    if right.type != "binary_expression" or one is None or other is None or not _is(right, "+"):
        return None
    for kept, more in ((one, other), (other, one)):
        if squeezed(source.node_code(kept)) == total:
            return total, (more,)
    return None


def _two_loads(kernel: Kernel, indices: Indices, loop: CountedLoop, added: _Added) -> tuple[Load, Load] | None:
    """The two elements that are combined; None where there are more or fewer, or two zeros could add something."""
    source = kernel.source
    parts = [*added.own.values(), *added.factors]
    elements = [n for part in parts for n in descendants(part, "subscript_expression")]
    nodes: dict[str, list[Node]] = {}
    for element in elements:
        whole = _read_only(source, element)
        nodes.setdefault(squeezed(source.node_code(whole)), []).append(whole)
    inside = [n for found in nodes.values() for n in found]
    if len(nodes) != 2 or not _vanish(source, added, inside):
        return None
    variables = indices.variables
    for part in parts:
        for use in descendants(part, "identifier"):
            name = source.node_text(use)
            if any(n.start_byte <= use.start_byte < n.end_byte for n in inside) or name in added.own or is_called(use):
                continue
            value = indices.named(name)
            thread = value is not None and any("Idx." in word for word in symbols(value))
            outside = name not in variables.types and name not in variables.changed
            if name in (loop.name, added.total) or thread or not (variables.is_fixed(name) or outside):
                return None
    first, second = (_load(kernel, indices, loop, found[0]) for found in nodes.values())
    if first is None or second is None:
        return None
    one, other = (replace(load, nodes=tuple(n)) for load, n in zip((first, second), nodes.values(), strict=True))
    return one, other


def _read_only(source: Source, element: Node) -> Node:
    """`__ldg(&a[i])` around an element, or the element."""
    address = element.parent
    call = address.parent.parent if address is not None and address.parent is not None else None
    plain = address is not None and address.type == "pointer_expression" and call is not None
    return call if plain and call is not None and called_name(call, source) == "__ldg" else element


def _is_finite(source: Source, node: Node, zeros: list[Node]) -> bool:
    """Whether an expression of zeros and of numbers that are finite is finite: it divides nothing, and calls no
    logarithm."""
    parts = [n for n in descendants(node, "call_expression", "binary_expression") if not _is_within(n, zeros)]
    names = [called_name(n, source) for n in parts if n.type == "call_expression"]
    divided = any(_is(n, "/") or _is(n, "%") for n in parts)
    return not divided and all(_KEEPS_ZERO.fullmatch(n) or re.fullmatch(r"(?:__)?(?:exp|cos)f?", n) for n in names)


def _is_within(node: Node, others: list[Node]) -> bool:
    return any(n.start_byte <= node.start_byte and node.end_byte <= n.end_byte for n in others)


def _vanish(source: Source, added: _Added, zeros: list[Node]) -> bool:
    """Whether nothing is added where all loads are 0."""
    known: dict[str, bool] = {}

    def zero(node: Node) -> bool:
        if node in zeros:
            return True
        sides = [node.child_by_field_name(side) for side in ("left", "right")]
        match node.type:
            case "parenthesized_expression":
                return len(uncommented(node)) == 1 and zero(uncommented(node)[0])
            case "identifier":
                return known.get(source.node_text(node), False)
            case "cast_expression" | "unary_expression":
                inner = node.child_by_field_name("value") or node.child_by_field_name("argument")
                return inner is not None and source.node_text(node)[0] not in "!~" and zero(inner)
            case "call_expression":
                arguments = uncommented(node.child_by_field_name("arguments"))
                return _KEEPS_ZERO.fullmatch(called_name(node, source)) is not None and all(map(zero, arguments))
            case "binary_expression":
                operator = next((c.type for c in node.children if not c.is_named), "")
                results = [side is not None and zero(side) for side in sides]
                if operator in ("*", "&"):
                    return any(results) and all(side is not None and _is_finite(source, side, zeros) for side in sides)
                return operator in ("+", "-", "^", "|", "!=", "<", ">") and all(results)
        return False

    for name, value in added.own.items():
        known[name] = zero(value)
    return any(map(zero, added.factors))


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
        element = address.child_by_field_name("argument") if source.node_code(address).startswith("&") else None
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
