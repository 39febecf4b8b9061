"""Questions that several rewrites ask of a kernel's text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TypeVar

from tree_sitter import Node

from warpwright.cuda.functions import function_name
from warpwright.facts.model import Access, Kernel, Launch
from warpwright.syntax.code import code_in
from warpwright.syntax.nodes import ancestors, descendants, enclosing, launch_configuration, uncommented
from warpwright.syntax.source import Source, Span

T = TypeVar("T")
STATEMENTS = frozenset(
    {
        "if_statement",
        "for_statement",
        "for_range_loop",
        "while_statement",
        "do_statement",
        "switch_statement",
        "else_clause",
    }
)
"""Statements whose body may stand without braces."""


class NoMatchError(Exception):
    """The text is not the pattern; the message is the reason for the user. A rewrite that raises it declines."""


def matched(found: T | str) -> T:
    """What was found. Raises NoMatchError with the reason where that was found instead."""
    if isinstance(found, str):
        raise NoMatchError(found)
    return found


def body(kernel: Kernel) -> Node | None:
    return kernel.node.child_by_field_name("body") if kernel.node is not None else None


def body_of(kernel: Kernel) -> Node:
    """The kernel's body. Raises NoMatchError where it is elsewhere."""
    if (block := body(kernel)) is None:
        raise NoMatchError(f"The body of {kernel.name} is not in this file.")
    return block


def require_marked(kernel: Kernel, at: Span | None) -> None:
    """Raises NoMatchError where something is marked that is not in the kernel."""
    if at is not None and not overlaps(kernel.span, at):
        raise NoMatchError(f"The marked code is not in {kernel.name}.")


def squeezed(text: str) -> str:
    """Text without white space and outer parentheses, to compare expressions by.

    >>> squeezed("( 2 * s )"), squeezed("(a) * (b)")
    ('2*s', '(a)*(b)')
    """
    text = re.sub(r"\s+", "", text)
    while text.startswith("(") and text.endswith(")") and _matches(text) == len(text) - 1:
        text = text[1:-1]
    return text


def bare(node: Node) -> Node:
    """An expression without the parentheses around it."""
    while node.type == "parenthesized_expression" and len(uncommented(node)) == 1:
        node = uncommented(node)[0]
    return node


def condition_of(branch: Node) -> Node | None:
    """What an `if` or a `while` tests, without the parentheses that belong to it; None where it is no condition."""
    clause = branch.child_by_field_name("condition")
    return clause.child_by_field_name("value") if clause is not None else None


def as_factor(text: str) -> str:
    """An expression that can be multiplied or divided as it stands, in parentheses where it is no single word.

    >>> as_factor("blockDim.x"), as_factor("n + 1")
    ('blockDim.x', '(n + 1)')
    """
    return text if re.fullmatch(r"[\w.]+(?:\(\))?", text) else f"({text})"


def _matches(text: str) -> int:
    """Where the parenthesis that opens at 0 closes; -1 where it does not."""
    depth = 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return at
    return -1


def names(node: Node, source: Source, name: str) -> Iterator[Node]:
    """Every identifier of that name below a node."""
    return (n for n in descendants(node, "identifier") if source.node_text(n) == name)


def with_names(source: Source, node: Node, new: Mapping[str, str]) -> str:
    """A node's text with variables under other names."""
    out, at = "", node.start_byte
    for use in descendants(node, "identifier"):
        name = source.node_text(use)
        if name in new:
            out += source.text(at, use.start_byte) + new[name]
            at = use.end_byte
    return out + source.text(at, node.end_byte)


def overlaps(span: Span, at: Span) -> bool:
    return span.path == at.path and span.start <= at.end and at.start <= span.end


@lru_cache(maxsize=16)
def macro_texts(source: Source) -> Mapping[str, list[str]]:
    """The replacement of every macro that the file defines, without its parameters and what comments and strings hold;
    several where `#if` has sides."""
    found: dict[str, list[str]] = {}
    for macro in descendants(source.root, "preproc_def", "preproc_function_def"):
        name, value = macro.child_by_field_name("name"), macro.child_by_field_name("value")
        if name is None or value is None:
            continue
        parameters = [source.node_text(n) for n in macro.children_by_field_name("parameters") for n in uncommented(n)]
        text = source.node_code(value)
        for parameter in parameters:
            text = re.sub(rf"\b{re.escape(parameter)}\b", " ", text)
        found.setdefault(source.node_text(name), []).append(text.strip())
    return found


def macros_of(kernel: Kernel) -> Mapping[str, list[str]]:
    """As `macro_texts` of the kernel's file, and the macros of other files of its unit which the kernel, or a function
    that it may call, uses."""
    own = macro_texts(kernel.source)
    others = {name: [code_in(text)] for name, text in kernel.macros.items() if name not in own}
    return {**own, **others}


def macros_naming(source: Source, word: re.Pattern[str]) -> list[str]:
    """Names of the macros of a file that contain a word in their replacement, or through another such macro."""
    return naming(macro_texts(source), word)


def naming(texts: Mapping[str, list[str]], word: re.Pattern[str]) -> list[str]:
    """As `macros_naming`, of macros by their names."""
    found: list[str] = []
    grown = True
    while grown:
        known = re.compile(rf"\b(?:{'|'.join(map(re.escape, found))})\b") if found else None
        more = [
            name
            for name, values in texts.items()
            if name not in found and any(word.search(v) or (known and known.search(v)) for v in values)
        ]
        found += more
        grown = bool(more)
    return found


def is_macro_of_several(source: Source, node: Node) -> bool:
    """Whether a name stands for a sum or another formula without parentheses, as after `#define COUNT n + 1`."""
    texts = macro_texts(source).get(source.node_text(node), []) if node.type == "identifier" else []
    return any(not re.fullmatch(r"[\w.]*", text.strip()) and not is_enclosed(text.strip()) for text in texts)


def is_enclosed(text: str) -> bool:
    """Whether a text is one pair of parentheses with what stands in it."""
    return text.startswith("(") and _matches(text) == len(text) - 1


def is_power_of_two(value: int) -> bool:
    """
    >>> [n for n in range(9) if is_power_of_two(n)]
    [1, 2, 4, 8]
    """
    return value > 0 and value & (value - 1) == 0


def in_macro(node: Node) -> bool:
    """Whether the node is a part of a macro's replacement; what an `#ifdef` surrounds is not."""
    return any(n.type in ("preproc_def", "preproc_function_def") for n in ancestors(node))


@lru_cache(maxsize=16)
def functions_of(source: Source) -> Mapping[str, list[Node]]:
    """Every function that the file defines, by the last part of its name: overloads, members, sides of an `#if`."""
    found: dict[str, list[Node]] = {}
    for function in descendants(source.root, "function_definition"):
        name = function_name(source, function)
        if name is not None:
            found.setdefault(name.partition("<")[0].strip(), []).append(function)
    return found


def callees_of(kernel: Kernel) -> dict[str, list[tuple[Source, Node]]]:
    """The functions of the kernel's file, and those of other files of its unit which the kernel may call, by the last
    part of their names, each with its file."""
    own = functions_of(kernel.source)
    found = {name: [(kernel.source, node) for node in nodes] for name, nodes in own.items()}
    for callee in kernel.callees:
        if callee.source is not kernel.source:
            found.setdefault(callee.name, []).append((callee.source, callee.node))
    return found


def host_launches(kernel: Kernel) -> list[Launch]:
    """The launches that stand in the text, assumed shapes left out. One call has several where its callers give it
    several shapes, and one for those that give it the same."""
    found = {
        (
            launch.source,
            launch.span.start,
            *launch.grid,
            *launch.block,
            launch.dynamic_shared_bytes,
            launch.basis,
        ): launch
        for launch in kernel.launches
        if launch.span is not None
    }
    return list(found.values())


def unseen_launch(kernel: Kernel) -> str:
    """Why the kernel may be launched in a way that is not found; empty where every use of its name is a launch.

    Example: `cudaLaunchKernel((void *)transpose, ...)`, or a pointer to the kernel that is handed on. A call without a
    grid is of another function, and a local variable may have the kernel's name.
    """
    source = kernel.source
    if len(functions_of(source).get(kernel.name, [])) > 1:
        return f"{kernel.name} is defined more than once in this file, so which of them a launch means is not certain."
    if macros := macros_naming(source, re.compile(rf"\b{re.escape(kernel.name)}\b")):
        return f"The macro {macros[0]} names {kernel.name}, so not all of its launches are found."
    for use in descendants(source.root, "identifier", "type_identifier"):  # the second in `run<transpose>(...)`
        if source.node_text(use) != kernel.name:
            continue
        node = use
        while node.parent is not None and node.parent.type in ("template_function", "qualified_identifier"):
            node = node.parent
        parent = node.parent
        if parent is None or parent.type == "function_declarator" or _is_local(source, use):
            continue
        if parent.type == "call_expression" and parent.child_by_field_name("function") == node:
            continue
        if use.type == "type_identifier" and enclosing(use, "template_argument_list") is None:
            continue
        if launch_configuration(parent) is None:
            line = source.position(use.start_byte)[0]
            return f"{kernel.name} is used at line {line} other than by a launch, so not all of its launches are found."
    return ""


def _is_local(source: Source, use: Node) -> bool:
    """Whether a name is that of a parameter or of a variable that a block around it declares before."""
    function = enclosing(use, "function_definition") or enclosing(use, "parameter_list")
    for declared in names(function, source, source.node_text(use)) if function is not None else ():
        declarator: Node = declared
        outer = declared.parent
        while outer is not None and outer.type in _DECLARATORS and outer.child_by_field_name("value") != declarator:
            declarator, outer = outer, outer.parent
        if outer is None or declared.start_byte > use.start_byte or declarator not in _declared_by(outer):
            continue
        of_parameter = outer.type != "declaration"
        scope = enclosing(outer, *(_FUNCTIONS if of_parameter else _SCOPES)) or (function if of_parameter else None)
        if scope is not None and scope.start_byte <= use.start_byte < scope.end_byte:
            return True
    return False


def _declared_by(node: Node) -> list[Node]:
    kinds = ("declaration", "parameter_declaration", "optional_parameter_declaration")
    return node.children_by_field_name("declarator") if node.type in kinds else []


_DECLARATORS = ("init_declarator", "array_declarator", "pointer_declarator", "reference_declarator")
_FUNCTIONS = ("function_definition", "lambda_expression")
_SCOPES = ("compound_statement", "for_statement", "function_definition")


def by_cost(accesses: list[Access]) -> list[Access]:
    """Accesses that move more than they need, the dearest first."""
    wasteful = [a for a in accesses if (a.excess or 0.0) > 1.0]
    return sorted(wasteful, key=lambda a: (a.excess or 0.0) * a.requests, reverse=True)


def moved_pointer(source: Source, value: Node | None) -> str | None:
    """The pointer that an expression moves on from: `pool` of `(float *)pool + n` and of `&pool[n]`;
    None where that is not seen."""
    while value is not None and value.type not in ("identifier", "field_expression"):
        match value.type:
            case "binary_expression":
                value = value.child_by_field_name("left")
            case "cast_expression":
                value = value.child_by_field_name("value")
            case "pointer_expression" | "subscript_expression":
                value = value.child_by_field_name("argument")
            case "parenthesized_expression":
                value = uncommented(value)[0] if uncommented(value) else None
            case _:
                return None
    return squeezed(source.node_code(value)) if value is not None else None


def structure_names(source: Source, structure: Node) -> Iterator[str]:
    """The name of a structure, and those that a `typedef` around it gives it."""
    name, around = structure.child_by_field_name("name"), structure.parent
    if name is not None:
        yield source.node_text(name)
    if around is not None and around.type == "type_definition":
        yield from (source.node_text(d) for d in around.children_by_field_name("declarator"))
