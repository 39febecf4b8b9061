"""The plain questions about host and kernel text that finding a problem asks."""

from __future__ import annotations

from math import prod

from warpwright.cuda.walks import nodes_below
from warpwright.facts.model import Program
from warpwright.problems.expressions import Binary, Expression, Number, substitute
from warpwright.syntax.nodes import descendants


def device_identifiers(program: Program) -> frozenset[str]:
    """Every identifier in device code: a macro among them cannot be changed for a launch alone."""
    found: set[str] = set()
    for source in program.sources.values():
        for function in nodes_below(source, source.root, "function_definition"):
            if any(c.type in ("__global__", "__device__") for c in function.children):
                found.update(source.plain_text(n) for n in descendants(function, "identifier"))
    return frozenset(found)


def elements(size: Expression, element_bytes: int) -> Expression:
    """Bytes as elements: the factor of the element's size is taken out where it stands in the product.

    >>> from warpwright.problems.expressions import parse, show
    >>> show(elements(parse("4 * width * height"), 4)), show(elements(parse("bytes"), 8))
    ('width * height', 'bytes / 8')
    """
    factors: list[Expression] = []
    stack = [size]
    while stack:
        part = stack.pop()
        if isinstance(part, Binary) and part.operator == "*":
            stack += [part.right, part.left]
        else:
            factors.append(part)
    constants = [f.value for f in factors if isinstance(f, Number) and isinstance(f.value, int)]
    constant = prod(constants)
    if constant % element_bytes == 0:
        product: Expression = Number(constant // element_bytes)
        for factor in factors:
            if not (isinstance(factor, Number) and isinstance(factor.value, int)):
                product = Binary("*", product, factor)
        return substitute(product, {})
    return substitute(Binary("/", size, Number(element_bytes)), {})


def alias_target(program: Program, name: str) -> str | None:
    """What `typedef X name;`, `using name = X;` or `#define name X` in the program says the name is."""
    for source in program.sources.values():
        for node in nodes_below(source, source.root, "type_definition", "alias_declaration", "preproc_def"):
            named = node.child_by_field_name("name") or node.child_by_field_name("declarator")
            target = node.child_by_field_name("type") or node.child_by_field_name("value")
            if named is not None and target is not None and source.plain_text(named) == name:
                return source.plain_text(target).strip()
    return None
