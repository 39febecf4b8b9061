"""Questions about tree-sitter nodes that many layers ask."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from tree_sitter import Node

from warpwright.syntax.source import Source

LOOPS = ("for_statement", "while_statement", "do_statement", "for_range_loop")
BREAKABLE = (*LOOPS, "switch_statement")
"""What a `break` leaves; a `continue` goes on with one of LOOPS."""
_CAST = re.compile(r"(?:reinterpret|static|const)_cast\s*<")


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, in text order, without recursion (generated code nests deep).

    A cursor makes one node at a time, three times as fast as a list of each node's children.
    """
    cursor = node.walk()
    while True:
        if cursor.node is not None:
            yield cursor.node
        if cursor.goto_first_child() or cursor.goto_next_sibling():
            continue
        while cursor.goto_parent():
            if cursor.goto_next_sibling():
                break
        else:
            return


def descendants(node: Node, *types: str) -> Iterator[Node]:
    return (n for n in walk(node) if n.type in types)


def ancestors(node: Node) -> Iterator[Node]:
    """Parents, nearest first."""
    parent = parent_of(node)
    while parent is not None:
        yield parent
        parent = parent_of(parent)


@lru_cache(maxsize=8192)
def parent_of(node: Node) -> Node | None:
    """The parent, which tree-sitter looks for from the root on: a launch at the end of a long chain of `else if` has
    many, and they are asked for often."""
    return node.parent


_MOST_KNOWN = 50_000
_enclosing: dict[tuple[Node, tuple[str, ...]], Node | None] = {}


def enclosing(node: Node, *types: str) -> Node | None:
    """The nearest node around a node that is of one of some types.

    It is kept for all nodes on the way, so that each level is passed once, however many places of a deep text ask.
    """
    passed: list[Node] = []
    around, found = parent_of(node), None
    while around is not None:
        if around.type in types:
            found = around
            break
        known = _enclosing.get((around, types), around)
        if known is not around:
            found = known
            break
        passed.append(around)
        around = parent_of(around)
    if len(_enclosing) + len(passed) > _MOST_KNOWN:
        _enclosing.clear()
    _enclosing.update(((each, types), found) for each in passed)
    return found


def forget_nodes() -> None:
    """Let go of the nodes that were asked about: each keeps the tree of its version of a text."""
    _enclosing.clear()
    parent_of.cache_clear()


def uncommented(node: Node | None) -> list[Node]:
    """The named children other than comments: what an argument list or a `<<<...>>>` holds. None holds nothing."""
    return [child for child in node.named_children if child.type != "comment"] if node is not None else []


def function_declarator(function: Node) -> Node | None:
    """The part of a function definition that has its name and parameters, below the `*` and `&` of what it returns; of
    a lambda, its parameters."""
    declarator = function.child_by_field_name("declarator")
    while declarator is not None and declarator.type not in ("function_declarator", "lambda_declarator"):
        declarator = declarator.child_by_field_name("declarator") or next(
            (child for child in declarator.named_children if child.type.endswith("declarator")), None
        )
    return declarator


def declared_name(source: Source, declarator: Node | None) -> str:
    """The name that a declarator declares: `tile` for `tile[16][16] = {}`; empty for none."""
    while declarator is not None and declarator.type not in ("identifier", "field_identifier"):
        declarator = declarator.child_by_field_name("declarator") or next(
            (c for c in declarator.named_children if c.type.endswith("declarator") or c.type == "identifier"), None
        )
    return source.node_text(declarator) if declarator is not None else ""


def by_reference(source: Source, declarator: Node | None) -> bool:
    """Whether a function or lambda with that declarator returns a reference: `float &f()`, `auto f() -> float &`,
    `decltype(auto)`."""
    if declarator is None:
        return False
    if declarator.type == "reference_declarator":
        return True
    function = declarator.parent or declarator
    inner = declarator if declarator.type == "lambda_declarator" else function_declarator(function)
    trailing = next((child for child in uncommented(inner) if child.type == "trailing_return_type"), None)
    kind = trailing or function.child_by_field_name("type")
    written = source.node_text(kind) if kind is not None else ""
    return written.rstrip().endswith("&") or "decltype(auto)" in written


def parameters_of(function: Node) -> list[Node]:
    """The parameter declarations of a function definition, in order."""
    declarator = function_declarator(function)
    parameters = declarator.child_by_field_name("parameters") if declarator is not None else None
    kinds = ("parameter_declaration", "optional_parameter_declaration")
    return [child for child in uncommented(parameters) if child.type in kinds]


def is_called(name: Node) -> bool:
    """Whether a name is that of a function where it is called: `f` of `f(x)`, `ns::f<4>(x)`."""
    around = name.parent
    while around is not None and around.type in ("template_function", "qualified_identifier"):
        name, around = around, around.parent
    return around is not None and around.type == "call_expression" and around.child_by_field_name("function") == name


def is_argument(source: Source, use: Node, called: re.Pattern[str], place: int = 0) -> bool:
    """Whether a node stands in the argument at a place of a call, the nearest around it, of such a function."""
    call = enclosing(use, "call_expression")
    function = call.child_by_field_name("function") if call is not None else None
    if call is None or function is None or not called.fullmatch(source.node_code(function)):
        return False
    given = uncommented(call.child_by_field_name("arguments"))
    return place < len(given) and given[place].start_byte <= use.start_byte < given[place].end_byte


def launch_configuration(call: Node) -> Node | None:
    """The `<<<...>>>` of a call; None for a call without one."""
    return next((child for child in call.children if child.type == "kernel_call_syntax"), None)


def node_at(root: Node, start: int, end: int) -> Node | None:
    """The smallest named node that covers bytes [start, end)."""
    return root.named_descendant_for_byte_range(start, end)


def uncast(source: Source, node: Node) -> Node:
    """An expression without the casts and parentheses around it."""
    while True:
        inner: Node | None = None
        if node.type == "cast_expression":
            inner = node.child_by_field_name("value")
        elif node.type == "parenthesized_expression" and len(uncommented(node)) == 1:
            inner = uncommented(node)[0]
        elif node.type == "call_expression":
            given = uncommented(node.child_by_field_name("arguments"))
            inner = given[0] if len(given) == 1 and _is_cast(source, node) else None
        if inner is None:
            return node
        node = inner


def with_casts(source: Source, node: Node) -> Node:
    """An expression with the casts and parentheses around it."""
    while (around := node.parent) is not None:
        call = around.parent if around.type == "argument_list" else None
        if call is not None and _is_cast(source, call):
            node = call
        elif around.type in ("parenthesized_expression", "cast_expression"):
            node = around
        else:
            break
    return node


def _is_cast(source: Source, call: Node) -> bool:
    """Whether a call is `reinterpret_cast<...>(...)` or the like."""
    function = call.child_by_field_name("function")
    return function is not None and _CAST.match(source.node_code(function)) is not None
