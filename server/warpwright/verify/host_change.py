"""The one place of a host function in which a candidate differs, where it launches a graph there that the original has
not: what both do in that place, and the variables that they do it with.

What stands around it is the same text, so that a candidate that gives the GPU the same work there, in the same order,
and leaves the same values in the variables, does what the original does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.cuda.functions import function_name
from warpwright.facts.types import builtin_type
from warpwright.rewrites._locals import changed_names, declared_names
from warpwright.syntax.nodes import LOOPS, ancestors, declared_name, descendants, enclosing, parameters_of, uncommented
from warpwright.syntax.source import Source
from warpwright.verify.host_place import unruly

_TEMPLATE = "template_declaration"
_OPAQUE = ("cudaStream_t", "dim3")


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the function that the place uses: `type` with its stars, `kind` of "pointer", "int", "uint",
    "bool", "float", "dim3", "cudaStream_t", and bytes."""

    name: str
    type: str
    kind: str
    size: int
    is_constant: bool


@dataclass(frozen=True, slots=True)
class HostChange:
    """`before` and `after` are the statements in the place, `constants` the declarations of what has a known value,
    `bounds` the variables that loops compare with, `counters` those that they set."""

    function: str
    line: int
    before: str
    after: str
    variables: tuple[Variable, ...]
    constants: tuple[str, ...]
    bounds: tuple[str, ...] = ()
    counters: tuple[str, ...] = ()


def launches_new_graph(old: Source, new: Source) -> bool:
    """Whether a candidate's host code launches a graph where the original's does not."""
    return new.data.count(b"cudaGraphLaunch") > old.data.count(b"cudaGraphLaunch")


def host_change(old: Source, new: Source) -> HostChange | str:
    """The place in which the texts differ, or a reason why it cannot be run by itself."""
    places = _places(old, new)
    if places is None:
        return "the texts differ in more than the statements of one block"
    mine, theirs = places
    function = enclosing(mine[0], "function_definition")
    if function is None or enclosing(mine[0], "lambda_expression") is not None:
        return "the candidate differs outside of a function"
    if any(n.type in ("class_specifier", "struct_specifier") for n in ancestors(function)):
        return "the function around the loop is a member"
    if re.search(r"\b__(?:global|device)__\b", old.code_text(function.start_byte, mine[0].start_byte)):
        return "the candidate differs in a function that runs on the GPU"
    bindings = _bindings(old, function)
    if bindings is None:
        return "the function around the loop is a template, and no call of it says with which arguments"
    if reason := unruly(old, mine, new, theirs):
        return reason
    both = [(old, node) for node in mine] + [(new, node) for node in theirs]
    used = {source.node_text(n) for source, node in both for n in descendants(node, "identifier")}
    found = _variables(old, function, mine[0], used, bindings)
    if isinstance(found, str):
        return found
    variables, constants = found
    own = {v.name for v in variables} | declared_names(old, *mine) | declared_names(new, *theirs)
    changed = {name for source, node in both for name in changed_names(source, node)} & used
    if changed := {name for name in changed - own if not name.startswith("cuda")}:
        return f"`{min(changed)}`, which is changed there, is not a variable of the function"
    return HostChange(
        function_name(old, function) or "",
        old.position(mine[0].start_byte)[0],
        old.text(mine[0].start_byte, mine[-1].end_byte),
        new.text(theirs[0].start_byte, theirs[-1].end_byte),
        variables,
        (*(each for each in bindings.values()), *constants),
        tuple(v.name for v in variables if v.name in _bounds(old, mine)),
        tuple(v.name for v in variables if v.name in _counters(old, mine)),
    )


def _bindings(source: Source, function: Node) -> dict[str, str] | None:
    """What the parameters of a function template stand for in the first call that writes them, as declarations by
    name: `using T = float;`. Empty for a function that is no template, None where there is no such call."""
    template = function.parent if function.parent is not None and function.parent.type == _TEMPLATE else None
    if template is None:
        return {} if enclosing(function, _TEMPLATE) is None else None
    parameters = uncommented(template.child_by_field_name("parameters"))
    name = function_name(source, function) or ""
    for call in descendants(source.root, "template_function"):
        written = uncommented(call.child_by_field_name("arguments"))
        called = call.child_by_field_name("name")
        if called is None or source.node_text(called) != name or len(written) != len(parameters):
            continue
        if enclosing(call, _TEMPLATE) is None:
            return dict(_bound(source, p, w) for p, w in zip(parameters, written, strict=True))
    return None


def _bound(source: Source, parameter: Node, argument: Node) -> tuple[str, str]:
    text = source.node_text(argument)
    name = next(n for n in reversed(list(descendants(parameter, "identifier", "type_identifier"))))
    named = source.node_text(name)
    if parameter.type in ("parameter_declaration", "optional_parameter_declaration"):
        kind = parameter.child_by_field_name("type")
        return named, f"constexpr {source.node_text(kind) if kind is not None else 'auto'} {named} = {text};"
    return named, f"using {named} = {text};"


def _bounds(source: Source, nodes: list[Node]) -> set[str]:
    conditions = [loop.child_by_field_name("condition") for node in nodes for loop in descendants(node, *LOOPS)]
    compared = [each.child_by_field_name("right") for each in conditions if each is not None]
    return {source.node_text(name) for each in compared if each is not None for name in descendants(each, "identifier")}


def _counters(source: Source, nodes: list[Node]) -> set[str]:
    firsts = [loop.child_by_field_name("initializer") for node in nodes for loop in descendants(node, *LOOPS)]
    targets = [each.child_by_field_name("left") for each in firsts if each is not None]
    return {source.node_text(each) for each in targets if each is not None}


def _places(old: Source, new: Source) -> tuple[list[Node], list[Node]] | None:
    """The statements of one block in which the texts differ, of both."""
    first = next((i for i, (a, b) in enumerate(zip(old.data, new.data, strict=False)) if a != b), None)
    if first is None:
        return None
    same = next(i for i, (a, b) in enumerate(zip(reversed(old.data), reversed(new.data), strict=False)) if a != b)
    end = max(first, len(old.data) - same)
    block = old.root.descendant_for_byte_range(first, end)
    while block is not None and block.type != "compound_statement":
        block = block.parent
    if block is None:
        return None
    other = new.root.descendant_for_byte_range(block.start_byte, block.start_byte + 1)
    while other is not None and (other.type != "compound_statement" or other.start_byte != block.start_byte):
        other = other.parent
    if other is None or len(old.data) - block.end_byte != len(new.data) - other.end_byte:
        return None
    mine, theirs = uncommented(block), uncommented(other)
    while mine and theirs and old.node_text(mine[0]) == new.node_text(theirs[0]):
        mine, theirs = mine[1:], theirs[1:]
    while mine and theirs and old.node_text(mine[-1]) == new.node_text(theirs[-1]):
        mine, theirs = mine[:-1], theirs[:-1]
    same_head = old.data[: block.start_byte] == new.data[: other.start_byte]
    same_tail = old.data[block.end_byte :] == new.data[other.end_byte :]
    return (mine, theirs) if mine and theirs and same_head and same_tail else None


def _variables(
    source: Source, function: Node, place: Node, used: set[str], bindings: Mapping[str, str]
) -> tuple[tuple[Variable, ...], tuple[str, ...]] | str:
    """The function's variables that the place uses, and the declarations of those that are constants."""
    declared: dict[str, tuple[Node, Node]] = {}
    for parameter in parameters_of(function):
        for declarator in parameter.children_by_field_name("declarator"):
            declared[declared_name(source, declarator)] = (parameter, declarator)
    around = {n.id for n in ancestors(place)}
    for declaration in descendants(function, "declaration"):
        is_seen = declaration.parent is not None and declaration.parent.id in around
        if is_seen and declaration.end_byte <= place.start_byte:
            for declarator in declaration.children_by_field_name("declarator"):
                declared[declared_name(source, declarator)] = (declaration, declarator)
    variables: list[Variable] = []
    constants: list[str] = []
    for name in sorted(used & declared.keys()):
        declaration, declarator = declared[name]
        text = source.node_text(declaration)
        known = re.match(r"(?:static\s+)?(?:constexpr|const)\b[^*&]*=\s*([\w.]+);$", text)
        if known is not None and known[1] not in declared:
            constants.append(text)
            continue
        found = _variable(source, name, declaration, declarator, bindings)
        if found is None:
            return f"`{' '.join(text.split())}` is not a number, pointer, dim3 or stream that can be made up"
        variables.append(found)
    return tuple(variables), tuple(dict.fromkeys(constants))


def _variable(
    source: Source, name: str, declaration: Node, declarator: Node, bindings: Mapping[str, str]
) -> Variable | None:
    kind = declaration.child_by_field_name("type")
    written = source.node_text(kind) if kind is not None else ""
    if bound := re.fullmatch(r"using \w+ = (.*);", bindings.get(written, "")):
        written = bound[1]
    stars, is_array = 0, False
    inner: Node | None = declarator
    while inner is not None and inner.type != "identifier":
        stars += inner.type == "pointer_declarator"
        is_array |= inner.type == "array_declarator"
        is_array |= inner.type == "function_declarator" and written != "dim3"  # `dim3 block(size);` reads as one
        inner = inner.child_by_field_name("declarator") or next(
            (c for c in inner.named_children if c.type.endswith("declarator") or c.type == "identifier"), None
        )
    qualifiers = " ".join(source.node_text(c) for c in declaration.children if c.type == "type_qualifier")
    constant = stars == 0 and re.search(r"\bconst(expr)?\b", qualifiers) is not None
    if is_array or not written or written == "auto":
        return None
    if stars:
        to = f"{qualifiers.replace('constexpr', 'const')} {written}".strip()
        return Variable(name, f"{to} {'*' * stars}", "pointer", 8, False)
    if written in _OPAQUE:
        return Variable(name, written, written, 12 if written == "dim3" else 8, constant)
    known = builtin_type(written)
    if known is None or known.size is None or known.kind not in ("int", "uint", "bool", "float") or known.size < 1:
        return None
    return Variable(name, written, known.kind, known.size, constant) if known.name != "half" else None
