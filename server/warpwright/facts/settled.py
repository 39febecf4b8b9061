"""Whether host expressions can have one value alone: made of numbers, constants and variables that are set once."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from tree_sitter import Node

from warpwright.cuda.walks import nodes_in
from warpwright.facts.allocations import takes_values
from warpwright.facts.host_scopes import HostScope, written_names
from warpwright.facts.types import BUILTIN_TYPES, builtin_type
from warpwright.facts.unit import Unit
from warpwright.syntax.nodes import ancestors, descendants, parameters_of, uncommented
from warpwright.syntax.source import Source

_CALLS = re.compile(r"dim3|make_u?int3|(?:std::)?(?:min|max)|ceilf?")
_EXTENT = re.compile(r"\w+\.[xyz]")
_PIECES = re.compile(r"[;()]|\b(?:const|constexpr|enum)\b|\b(\w+)\s*[={]")
_ASKS = re.compile(r"(?i)(?:assert|check|require|verify)\w*\s*\([^;]*%")
"""As in `assert(n % 256 == 0)`."""
_WORD = re.compile(r"\b[A-Za-z_]\w*")


def is_settled(unit: Unit, scope: HostScope, nodes: Iterable[Node]) -> bool:
    """Whether no name in some expressions of a function is a parameter, a member, or set more than once.

    Example: not `n` after `int n = 0; while (next()) n++;`.
    """
    if scope.changed is None:
        scope.changed = frozenset(_changed(unit, scope))
    changed = scope.changed
    waiting = list(nodes)
    seen: set[str] = set()
    while waiting:
        node = waiting.pop()
        if not unit.steps.take() or _has_other_parts(scope, node):
            return False
        sized = {n.id for size in descendants(node, "sizeof_expression") for n in descendants(size, "identifier")}
        names = {scope.source.node_code(n) for n in descendants(node, "identifier") if n.id not in sized} - seen
        seen |= names
        for name in names:
            if unit.supposes and name not in changed and name == sole_size(scope)[1]:
                continue
            values = [d for d in scope.definitions.get(name, ()) if d.kind != "declare"]
            if name in changed or len(values) > 1 or any(d.value is None or d.kind == "written" for d in values):
                return False
            waiting += [d.value for d in values if d.value is not None]
            if bool(values) == _is_constant(unit, name) and name != "dim3":  # neither, or one hides the other
                return False
    return True


def _changed(unit: Unit, scope: HostScope) -> set[str]:
    """What may change in a function: what it counts up, adds to or is given, and what it hands out the address of, or
    a reference."""
    function, source = scope.function, scope.source
    if function is None:
        return set()
    given = [name for parameter in parameters_of(function) for name in descendants(parameter, "identifier")]
    nodes = [name for name in given if not (unit.supposes and source.node_code(name) == sole_size(scope)[1])]
    nodes += _around(function)
    seen = 0  # up to here: an expression inside of another is a part of it
    for node in nodes_in(function, "update_expression", "assignment_expression", "pointer_expression"):
        operator = node.child_by_field_name("operator")
        is_plain = node.type == "assignment_expression" and operator is not None and operator.type == "="
        if not is_plain and node.start_byte >= seen:
            nodes += written_names(node)
            seen = node.end_byte
    for declared in nodes_in(function, "init_declarator"):
        declarator, value = (declared.child_by_field_name(f) for f in ("declarator", "value"))
        if declarator is not None and declarator.type == "reference_declarator" and value is not None:
            nodes += descendants(value, "identifier")
    for call in nodes_in(function, "call_expression"):
        given = uncommented(call.child_by_field_name("arguments"))
        if any(n.type == "identifier" for n in given) and not takes_values(unit, source, call):
            nodes += [n for n in given if n.type == "identifier"]
    nodes += (n for n in written_names(function) if n.parent is not None and n.parent.type == "binary_expression")
    constants = _constants_of(source, function)
    return {name for node in nodes if (name := source.node_code(node)) not in constants}


def sole_size(scope: HostScope) -> tuple[int, str]:
    """Which parameter of a host function is its only whole number, and its name, where the function asks for no
    multiple; (-1, "") where there is none."""
    return _sole_size(scope.source, scope.function) if scope.function is not None else (-1, "")


@lru_cache(maxsize=64)
def _sole_size(source: Source, function: Node) -> tuple[int, str]:
    if _ASKS.search(source.node_code(function)):
        return -1, ""
    found = [(at, name) for at, each in enumerate(parameters_of(function)) if (name := _number(source, each))]
    return found[0] if len(found) == 1 and found[0][1] != "argc" else (-1, "")


def _number(source: Source, parameter: Node) -> str:
    """The name of a parameter that is a whole number."""
    kind, declarator = (parameter.child_by_field_name(field) for field in ("type", "declarator"))
    if kind is None or declarator is None or declarator.type != "identifier":
        return ""
    known = builtin_type(source.node_code(kind))
    return source.node_code(declarator) if known is not None and known.kind in ("int", "uint") else ""


def _around(function: Node) -> Iterator[Node]:
    """The names that a function's class and templates give a meaning of their own."""
    for around in ancestors(function):
        if around.type == "template_declaration":
            listed = around.child_by_field_name("parameters")
            yield from descendants(listed, "identifier") if listed is not None else ()
        elif around.type == "field_declaration_list":
            yield from descendants(around, "field_identifier")


def _constants_of(source: Source, function: Node) -> set[str]:
    """The variables that a function declares `const` or `constexpr`, which nothing changes."""
    return {
        source.node_code(name)
        for declaration in nodes_in(function, "declaration")
        if any(c.type == "type_qualifier" and c.text in (b"const", b"constexpr") for c in declaration.children)
        for declared in declaration.children_by_field_name("declarator")
        if declared.type == "init_declarator"
        and (name := declared.child_by_field_name("declarator")) is not None
        and name.type == "identifier"
    }


STEP_BYTES = 64
"""Of a text that is looked through in one step."""
_NEVER = sys.maxsize
_LEAVES = ("return_statement", "throw_statement", "goto_statement")
_ENDS = re.compile(r"(?:std::)?(?:exit|_exit|quick_exit|abort|terminate)")


def may_leave(unit: Unit, scope: HostScope, place: Node) -> bool:
    """Whether a host function may end before a place, by a test of what the text decides: `if (N % 256) return;`."""
    if scope.may_leave is None:
        tests = nodes_in(scope.function, "if_statement") if scope.function is not None else iter(())
        scope.may_leave = min((test.end_byte for test in tests if _leaves(unit, scope, test)), default=None) or _NEVER
    return scope.may_leave <= place.start_byte


def _leaves(unit: Unit, scope: HostScope, test: Node) -> bool:
    condition = test.child_by_field_name("condition")
    if condition is None or not is_settled(unit, scope, [condition]):
        return False
    if not unit.steps.take((test.end_byte - test.start_byte) // STEP_BYTES):
        return True
    calls = (n.child_by_field_name("function") for n in descendants(test, "call_expression"))
    if any(f is not None and _ENDS.fullmatch(scope.source.node_code(f)) for f in calls):
        return True
    return any(True for _ in descendants(test, *_LEAVES))


def _has_other_parts(scope: HostScope, node: Node) -> bool:
    """Whether an expression reads members or elements, other than `.x` of what is set whole, or calls what is not
    known."""
    if any(True for _ in descendants(node, "subscript_expression", "lambda_expression")):
        return True
    for member in descendants(node, "field_expression"):
        text = scope.source.node_code(member)
        if not _EXTENT.fullmatch(text) or any(f"{text[:-1]}{axis}" in scope.definitions for axis in "xyz"):
            return True
    called = (n.child_by_field_name("function") for n in descendants(node, "call_expression"))
    return any(f is None or not _CALLS.fullmatch(scope.source.node_code(f)) for f in called)


def _is_constant(unit: Unit, name: str) -> bool:
    """Whether a name is that of a number that never changes, of a type as in `sizeof(P)`, or of a macro of such."""
    if _CALLS.fullmatch(name) or name in BUILTIN_TYPES or name in unit.types or name in unit.enumerators:
        return True
    macro = unit.macros.get(name)
    if macro is None and _is_ambiguous(unit, name):
        return False
    if macro is not None:
        return all(_is_constant(unit, word) for word in _WORD.findall(macro.body) if word != name)
    variable = unit.variables.get(name)
    return variable is not None and variable.is_const


def _is_ambiguous(unit: Unit, name: str) -> bool:
    """Whether several constants have the name, in namespaces, structs or functions of their own."""
    return sum(_constants_in(source).get(name, 0) for source in unit.sources.values()) > 1


@lru_cache(maxsize=64)
def _constants_in(source: Source) -> Mapping[str, int]:
    """How often a text defines each name behind `const`, `constexpr` or `enum`, before the next `;` or parenthesis."""
    found: dict[str, int] = {}
    words, last = 0, dict[str, int]()  # of the text, and up to the latest definition of each name
    is_open = False
    for piece in _PIECES.finditer(source.code_text()):
        name = piece[1]
        if name is None:
            is_open = piece[0] not in ";()"
            words += is_open
        elif is_open and last.get(name) != words:
            found[name], last[name] = found.get(name, 0) + 1, words
    return found
