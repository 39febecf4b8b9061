"""Where host code launches kernels: `kernel<<<...>>>(...)` in the text, calls of cudaLaunchKernel and its kin, and uses
of macros whose replacement launches.

A use is expanded as the preprocessor does it (C++ standard, [cpp.replace]) into a little file of its own, in which the
macros that it uses in turn are uses again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.cuda.launch_api import API_NAMES, ApiLaunch, api_launch
from warpwright.facts.constants import substitute
from warpwright.facts.preprocessor import Macro
from warpwright.facts.unit import Unit, read_macro
from warpwright.syntax.code import code_of, without_comments
from warpwright.syntax.encoding import decoded, encoded
from warpwright.syntax.nodes import enclosing, parent_of
from warpwright.syntax.source import Source, Span

MAX_ARGUMENT_BYTES = 10_000
"""Of the arguments of one use of a macro."""

_SYNTAX = re.compile(b"<<<")
_NAMED = re.compile(rb"Launch(?:Cooperative)?Kernel")
_LAUNCH = re.compile(b"<<<|" + API_NAMES)
_BRACKETS = re.compile(rb"[(){}\[\],]")
_STRINGIZED = re.compile(r"(?<!#)#(?!#)\s*\w+")
_REST = re.compile(r",\s*##\s*__VA_ARGS__")


@dataclass(frozen=True, slots=True)
class LaunchUse:
    """A place in the text that launches: a call with `<<<...>>>`, its `syntax`; a call of the library, `api`; or a
    use of a macro."""

    node: Node
    span: Span
    syntax: Node | None = None
    api: ApiLaunch | None = None
    macro: Macro | None = None
    arguments: tuple[str, ...] = ()


def launch_uses(unit: Unit) -> Iterator[LaunchUse]:
    """The places of a unit that launch, in the order in which its files end."""
    macros = launching_macros(unit)
    for source in unit.finished:
        yield from uses_in(source, macros)


def launching_macros(unit: Unit) -> dict[str, Macro]:
    """The macros whose replacement launches, itself or by another; of several of one name, the one that is live."""
    found: dict[str, Macro] = {}
    for source in unit.finished:
        for node in _launch_nodes(source):
            macro = read_macro(source, node.parent) if node.type == "preproc_arg" and node.parent is not None else None
            if macro is not None:
                found[macro.name] = unit.macros.get(macro.name, macro)
    while found:
        names = re.compile(rf"\b(?:{'|'.join(map(re.escape, found))})\b")
        further = {n: m for n, m in unit.macros.items() if n not in found and names.search(m.body)}
        if not further:
            break
        found |= further
    return found


def uses_in(source: Source, macros: Mapping[str, Macro]) -> list[LaunchUse]:
    """The places of one text that launch, in text order; what a macro's use has in its arguments is a part of it."""
    found: list[LaunchUse] = []
    for node in _launch_nodes(source):
        around = parent_of(node)
        call = parent_of(around) if around is not None and around.type == "kernel_call_syntax" else None
        if call is not None and call.type == "call_expression" and call.child_by_field_name("function") is not None:
            found.append(LaunchUse(call, source.span(call), around))
            continue
        call = around if node.type == "identifier" else None
        while call is not None and call.type == "qualified_identifier":
            call = parent_of(call)
        api = api_launch(source, call) if call is not None and call.type == "call_expression" else None
        if api is not None and call is not None:
            found.append(LaunchUse(call, source.span(call), api=api))
    if macros:
        found += _macro_uses(source, macros)
    found.sort(key=lambda use: (use.span.start, -use.span.end))
    whole: list[LaunchUse] = []
    for use in found:
        if not (whole and whole[-1].macro is not None and use.span.start < whole[-1].span.end):
            whole.append(use)
    return whole


def expanded(use: LaunchUse) -> Source | None:
    """What stands for the use of a macro, as a file: statements in a function of their own, or whole functions."""
    macro = use.macro
    if macro is None:
        return None
    body = _STRINGIZED.sub('""', macro.body)
    if macro.parameters is not None and len(use.arguments) < len(macro.parameters):
        body = _REST.sub("", body)
    text = substitute(macro._replace(body=body), list(use.arguments)) + ";"
    if enclosing(use.node, "function_definition") is None:
        whole = Source(use.span.path, encoded(text))
        if any(child.type in ("function_definition", "template_declaration") for child in whole.root.named_children):
            return whole
    return Source(use.span.path, encoded(f"void expansion() {{ {text} }}"))


def _launch_nodes(source: Source) -> Iterator[Node]:
    """The smallest node at each `<<<` and each name of the library's launches, in text order. (Compiling a tree-sitter
    query for them would take longer than analysing a small file; and a search for one word is many times as fast as
    one for several.)"""
    pattern = _LAUNCH if _NAMED.search(source.code) else _SYNTAX
    for match in pattern.finditer(source.code):
        node = source.closed_root.descendant_for_byte_range(match.start(), match.end())
        if node is not None:
            yield node


def _macro_uses(source: Source, macros: Mapping[str, Macro]) -> Iterator[LaunchUse]:
    names = re.compile(rb"\b(?:" + b"|".join(re.escape(encoded(name)) for name in macros) + rb")\b(\s*\()?")
    for match in names.finditer(source.code):
        name_end = match.start(1) if match[1] else match.end()
        node = source.closed_root.descendant_for_byte_range(match.start(), name_end)
        if node is None or node.type not in ("identifier", "type_identifier") or _is_directive(node.parent):
            continue
        macro = macros[source.code_text(match.start(), name_end)]
        if macro.parameters is None:
            yield LaunchUse(node, Span(source, match.start(), name_end), macro=macro)
        elif match[1]:
            given = arguments_behind(source.data, match.end())
            if given is not None:
                arguments, end = given
                yield LaunchUse(node, Span(source, match.start(), end), macro=macro, arguments=arguments)


def _is_directive(node: Node | None) -> bool:
    return node is not None and node.type.startswith("preproc_") and node.child_by_field_name("name") is not None


def arguments_behind(data: bytes, start: int) -> tuple[tuple[str, ...], int] | None:
    """The arguments behind an opening parenthesis, and where the closing one ends; None where there is none near."""
    arguments: list[str] = []
    depth, begin = 1, start
    for piece in _BRACKETS.finditer(code_of(data), start, start + MAX_ARGUMENT_BYTES):
        mark = piece[0]
        depth += (mark in (b"(", b"[", b"{")) - (mark in (b")", b"]", b"}"))
        if depth == 0 or (depth == 1 and mark == b","):
            arguments.append(" ".join(decoded(without_comments(data[begin : piece.start()])).split()))
            begin = piece.end()
        if depth == 0:
            return tuple(arguments) if arguments != [""] else (), piece.end()
    return None
