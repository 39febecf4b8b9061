"""The text of a kernel that does the work of two element-wise kernels on each element, one after the other."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.facts.model import Kernel, Launch, Parameter
from warpwright.rewrites._elementwise import Elements
from warpwright.rewrites._layout import line_of
from warpwright.syntax.nodes import descendants, function_declarator, parameters_of
from warpwright.syntax.source import Source


@dataclass(frozen=True, slots=True)
class Part:
    """One of the two kernels with its launch; `given` are the texts of the launch's arguments by parameter."""

    kernel: Kernel
    elements: Elements
    launch: Launch
    call: Node
    given: dict[str, str]


def is_pointer(kernel: Kernel, name: str) -> bool:
    return any(p.is_pointer for p in kernel.parameters if p.name == name)


def written_by(part: Part) -> set[str]:
    """The arrays that a kernel writes, in the words of the host: pointers to what is not const."""
    return {part.given[p.name] for p in part.kernel.parameters if p.is_pointer and not p.is_const}


def kind_of(kernel: Kernel, name: str) -> str:
    """A parameter's type without what does not change what it means to the other kernel."""
    parameter = next(p for p in kernel.parameters if p.name == name)
    return "".join(re.sub(rf"\b(?:const|__restrict__|__restrict|{re.escape(name)})\b", "", parameter.type).split())


def handed(first: Part, second: Part, renamed: dict[str, str]) -> tuple[list[str], list[str]]:
    """The new kernel's parameters as declared, and what its launch hands over."""
    writes = written_by(first) | written_by(second)
    parameters: list[str] = []
    arguments: list[str] = []
    for part in (first, second):
        nodes = parameters_of(part.kernel.node) if part.kernel.node is not None else []
        for parameter, node in zip(part.kernel.parameters, nodes, strict=True):
            text = part.given[parameter.name]
            new = renamed.get(parameter.name, parameter.name) if part is second else parameter.name
            if part is second and new in first.given and first.given[new] == text:
                continue
            parameters.append(_declared(part.kernel.source, parameter, node, new, written=text in writes))
            arguments.append(text)
    return parameters, arguments


def _declared(source: Source, parameter: Parameter, node: Node, new: str, *, written: bool) -> str:
    """A parameter under its new name; one that the other kernel writes is no pointer to const, nor `__restrict__`."""
    text = source.node_text(node)
    at = next(n for n in descendants(node, "identifier") if source.node_text(n) == parameter.name)
    start, end = at.start_byte - node.start_byte, at.end_byte - node.start_byte
    head = text[:start]
    if parameter.is_pointer and written:
        head = re.sub(r"\bconst\s+(?=.*\*)", "", head, count=1)
    return f"{head}{new}{text[end:]}"


def kernel_text(first: Part, second: Part, renamed: dict[str, str], name: str, parameters: list[str]) -> str:
    """The new kernel: the first's head and test, then the work of both, each in a block of its own. Empty where the
    first has no body."""
    source, kernel, elements = first.kernel.source, first.kernel, first.elements
    function = function_declarator(kernel.node) if kernel.node is not None else None
    block = kernel.node.child_by_field_name("body") if kernel.node is not None else None
    listed = function.child_by_field_name("parameters") if function is not None else None
    if function is None or block is None or listed is None:
        return ""
    head = source.text(kernel.span.start, kernel.name_span.start) + name + f"({', '.join(parameters)})"
    opening = source.text(listed.end_byte, block.start_byte)
    indent = source.line_indent(elements.declaration.start_byte)
    inner, deeper = indent * 2, indent * 3
    bound = source.node_text(elements.bound)
    lines = [
        f"{head}{opening}{{",
        f"{indent}{source.node_text(elements.declaration)}",
        f"{indent}if ({elements.index} < {bound}) {{",
        f"{inner}{{",
        *_work(first, {}, deeper),
        f"{inner}}}",
        f"{inner}{{",
        *_work(second, renamed, deeper),
        f"{inner}}}",
        f"{indent}}}",
        "}",
    ]
    return "\n".join(lines)


def _work(part: Part, renamed: dict[str, str], indent: str) -> list[str]:
    """The lines of the work on one element, names changed, moved to an indent."""
    source, elements = part.kernel.source, part.elements
    start, end = elements.start, elements.end
    following = elements.work[-1].next_sibling
    if following is not None and following.type == "comment" and line_of(source, following) == _end_line(source, end):
        end = following.end_byte
    edits = sorted(
        (use.start_byte, use.end_byte, renamed[source.node_text(use)])
        for statement in elements.work
        for use in descendants(statement, "identifier")
        if source.node_text(use) in renamed and not _is_member(use)
    )
    text, at = "", start
    for first, last, new in edits:
        text += source.text(at, first) + new
        at = last
    text += source.text(at, end)
    own = source.line_indent(start)
    return [
        indent + (line[len(own) :] if line.startswith(own) else line.lstrip()) if line.strip() else ""
        for line in (own + text).splitlines()
    ]


def _end_line(source: Source, offset: int) -> int:
    return source.position(offset)[0]


def _is_member(use: Node) -> bool:
    parent = use.parent
    return parent is not None and parent.type == "field_expression" and parent.child_by_field_name("field") == use
