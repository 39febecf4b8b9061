"""What the value of an expression can depend on, read from the names in a kernel's text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from functools import lru_cache

from tree_sitter import Node

from warpwright.rewrites._code import functions_of, macro_texts
from warpwright.syntax.nodes import ancestors, descendants
from warpwright.syntax.source import Source

_WORD = re.compile(r"(?<!->)(?<![\w.])[A-Za-z_]\w*")
"""A name that is no member: x in `x + a.y`, and a."""
_DECIDERS = (
    "if_statement",
    "for_statement",
    "while_statement",
    "do_statement",
    "switch_statement",
    "conditional_expression",
)
_JUMPS = ("return_statement", "break_statement", "continue_statement", "goto_statement")


def reached_names(block: Node, source: Source, node: Node) -> frozenset[str]:
    """The names in an expression, in all that the block assigns to them or decides that by, in the macros and functions
    of the file among them, and so on.

    Example: with `int j = i * w; ... tile[j]`, of `j`: j, i, w, and what i and w are made of.
    """
    made_of, defined = _made_of(block, source), _defined(source)
    found: set[str] = set()
    waiting = _words(source.node_code(node))
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        waiting |= made_of.get(name, frozenset()) | defined.get(name, frozenset())
    return frozenset(found)


@lru_cache(maxsize=16)
def _made_of(block: Node, source: Source) -> Mapping[str, frozenset[str]]:
    """By variable, the names in all that the block assigns to it or decides that by: `deciding`, with each jump of the
    block looked at once."""
    jumps = sorted(descendants(block, *_JUMPS), key=lambda jump: jump.end_byte)
    ends = [jump.end_byte for jump in jumps]
    before = [frozenset[str]()]
    for jump in jumps:
        before.append(before[-1].union(*(_words(source.node_code(c)) for c in _around(jump, block))))
    found: dict[str, frozenset[str]] = {}
    for name, values in assignments(block, source).items():
        words: set[str] = set()
        for value in values:
            words |= _words(source.node_code(value)) | before[bisect_right(ends, value.start_byte)]
            words.update(*(_words(source.node_code(c)) for c in _around(value, block)))
        found[name] = frozenset(words)
    return found


@lru_cache(maxsize=16)
def _defined(source: Source) -> Mapping[str, frozenset[str]]:
    """The names in each macro and function of the file."""
    found: dict[str, set[str]] = {}
    for name, texts in macro_texts(source).items():
        found.setdefault(name, set()).update(*map(_words, texts))
    for name, functions in functions_of(source).items():
        found.setdefault(name, set()).update(*(_words(source.node_code(each)) for each in functions))
    return {name: frozenset(words) for name, words in found.items()}


@lru_cache(maxsize=16)
def assignments(block: Node, source: Source) -> Mapping[str, list[Node]]:
    """By variable, all that a block sets it to: initial values, what `=` assigns, and, where it steps the variable,
    takes its address or assigns with `+=`, that expression itself. What is assigned through `a[i]` or `p->x` counts for
    `a` and `p`."""
    found: dict[str, list[Node]] = {}
    kinds = ("init_declarator", "assignment_expression", "update_expression", "pointer_expression", "for_range_loop")
    for node in descendants(block, *kinds):
        match node.type:
            case "init_declarator" | "for_range_loop":
                target = node.child_by_field_name("declarator")
                value = node.child_by_field_name("value") or node.child_by_field_name("right")
            case "assignment_expression":
                operator = node.child_by_field_name("operator")
                plain = operator is not None and source.node_text(operator) == "="
                target, value = node.child_by_field_name("left"), node.child_by_field_name("right") if plain else node
            case _:
                if node.type == "pointer_expression" and not source.node_code(node).startswith("&"):
                    continue
                target, value = node.child_by_field_name("argument"), node
        name = next(descendants(target, "identifier"), None) if target is not None else None
        if name is not None and value is not None:
            found.setdefault(source.node_text(name), []).append(value)
    return found


def deciding(node: Node, block: Node) -> Iterator[Node]:
    """The conditions within the block that decide whether, or how often, a node is evaluated; and of every jump before
    it in the block, what decides that."""
    yield from _around(node, block)
    for jump in descendants(block, *_JUMPS):
        if jump.end_byte <= node.start_byte:
            yield from _around(jump, block)


def _around(node: Node, block: Node) -> Iterator[Node]:
    child = node
    for parent in ancestors(node):
        if parent == block:
            return
        logical = parent.type == "binary_expression" and any(c.type in ("&&", "||") for c in parent.children)
        field = "left" if logical else "condition"
        condition = parent.child_by_field_name(field) if logical or parent.type in _DECIDERS else None
        if condition is not None and condition != child:
            yield condition
        child = parent


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text))
