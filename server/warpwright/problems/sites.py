"""Launch sites, and the plain questions about host and kernel text that finding a problem asks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from tree_sitter import Node

from warpwright.facts.model import Kernel, Program
from warpwright.problems.expressions import Binary, Expression, Number, substitute
from warpwright.problems.walks import nodes_below
from warpwright.syntax.names import unqualified
from warpwright.syntax.nodes import descendants, enclosing, launch_configuration, uncommented
from warpwright.syntax.source import Source


@dataclass(frozen=True, slots=True)
class LaunchText:
    """A launch in the host code: the call, what stands between <<< and >>>, and the arguments."""

    source: Source
    call: Node
    configuration: tuple[Node, ...]
    arguments: tuple[Node, ...]
    instance: tuple[str, ...]


def launch_site(program: Program, kernel: Kernel) -> LaunchText | None:
    """The first `kernel<<<...>>>(...)` in the program, from host code; where there is none, the first launch of a local
    variable that holds the kernel: `auto f = kernel<float>; f<<<...>>>(...)`."""
    return next(launch_sites(program, kernel), None)


def launch_sites(program: Program, kernel: Kernel) -> Iterator[LaunchText]:
    """All launches that name the kernel; where there is none, the first of a variable that holds it."""
    held: LaunchText | None = None
    named_itself = False
    for source in program.sources.values():
        for call in nodes_below(source, source.root, "call_expression"):
            configuration = launch_configuration(call)
            function, arguments = call.child_by_field_name("function"), call.child_by_field_name("arguments")
            if configuration is None or function is None or arguments is None:
                continue
            named: Node | None = function
            if unqualified(source.node_text(function)) != kernel.name:
                named = _held(source, function) if held is None else None
                if named is None or unqualified(source.node_text(named)) != kernel.name:
                    continue
            template = next(descendants(named, "template_argument_list"), None) if named is not None else None
            instance = tuple(source.node_text(a) for a in template.named_children) if template else ()
            found = LaunchText(source, call, tuple(uncommented(configuration)), tuple(uncommented(arguments)), instance)
            if named == function:
                named_itself = True
                yield found
            else:
                held = found
    if held is not None and not named_itself:
        yield held


def _held(source: Source, function: Node) -> Node | None:
    """What the one local variable of that name that stands before a call is declared as."""
    around = enclosing(function, "function_definition", "lambda_expression")
    if function.type != "identifier" or around is None:
        return None
    name = source.node_text(function)
    found = [
        node.child_by_field_name("value")
        for node in nodes_below(source, around, "init_declarator")
        if (declared := node.child_by_field_name("declarator")) is not None
        and next(
            (source.node_text(i) for i in (declared, *descendants(declared, "identifier")) if i.type == "identifier"),
            "",
        )
        == name
        and node.end_byte <= function.start_byte
    ]
    value = found[0] if len(found) == 1 else None
    while value is not None and value.type in ("pointer_expression", "parenthesized_expression"):
        value = value.child_by_field_name("argument") or next(iter(uncommented(value)), None)
    return value


def device_identifiers(program: Program) -> frozenset[str]:
    """Every identifier in device code: a macro among them cannot be changed for a launch alone."""
    found: set[str] = set()
    for source in program.sources.values():
        for function in nodes_below(source, source.root, "function_definition"):
            if any(c.type in ("__global__", "__device__") for c in function.children):
                found.update(source.node_text(n) for n in descendants(function, "identifier"))
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
            if named is not None and target is not None and source.node_text(named) == name:
                return source.node_text(target).strip()
    return None
