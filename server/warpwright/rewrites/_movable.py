"""Whether a kernel's statements can be moved and repeated: what of its text, and of its launches, speaks against it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tree_sitter import Node

from warpwright.facts.aliasing import has_volatile
from warpwright.facts.model import Kernel
from warpwright.rewrites._code import NoMatchError, body, body_of, host_launches, in_macro, macros_naming
from warpwright.syntax.nodes import ancestors, declared_name, descendants, launch_configuration, node_at
from warpwright.syntax.source import Source

_HIDES = re.compile(
    r"[;{}\[\]#]|\+\+|--|(?<![=<>!])=(?!=)|\b(?:return|break|continue|if|else|for|while|do|goto|switch|asm|__sync\w*)\b"
)
"""What in a macro's replacement makes it more than a value."""
_SIDES = ("preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif")


def unmovable(kernel: Kernel) -> str:
    """Why statements of the kernel are not moved or repeated, one sentence; empty where they can be.

    What is refused: a body that is elsewhere, in a macro, broken, or with sides of an `#if`; jumps to labels, inline
    assembly, lambdas, volatile memory, and macros that hide statements.
    """
    block = body(kernel)
    if reason := _unreadable(kernel):
        return reason
    if block is not None and (reason := _unmovable_text(kernel, block, has_volatile(kernel))):
        return reason
    return ""


def movable_body(kernel: Kernel) -> Node:
    """The kernel's body. Raises NoMatchError where its statements are not moved or repeated."""
    if reason := unmovable(kernel):
        raise NoMatchError(reason)
    return body_of(kernel)


def unmovable_part(kernel: Kernel, part: Node) -> str:
    """As `unmovable`, of a part of the kernel's text that stays where it is, such as a loop."""
    source = kernel.source
    if reason := _unreadable(kernel):
        return reason
    declared = descendants(kernel.node, "parameter_declaration", "declaration") if kernel.node is not None else ()
    volatile = {
        declared_name(source, declarator)
        for declaration in declared
        if re.search(r"\bvolatile\b", source.node_code(declaration).partition("=")[0])
        for declarator in declaration.children_by_field_name("declarator")
    }
    used = {source.node_text(use) for use in descendants(part, "identifier")}
    return _unmovable_text(kernel, part, bool(used & volatile))


def _unreadable(kernel: Kernel) -> str:
    if kernel.node is None or body(kernel) is None:
        return f"{kernel.name} is defined elsewhere."
    if in_macro(kernel.node):
        return f"{kernel.name} is defined by a macro."
    if kernel.node.has_error:
        return f"{kernel.name} has a syntax error."
    return ""


def _unmovable_text(kernel: Kernel, part: Node, is_volatile: bool) -> str:
    source = kernel.source
    for side in descendants(part, "preproc_if", "preproc_ifdef", "preproc_def", "preproc_function_def"):
        return f"{kernel.name} has a directive at line {source.position(side.start_byte)[0]}, so its text has versions."
    for jump in descendants(part, "goto_statement", "labeled_statement", "lambda_expression"):
        what = {"goto_statement": "a goto", "labeled_statement": "a label", "lambda_expression": "a lambda"}
        return f"{kernel.name} has {what[jump.type]} at line {source.position(jump.start_byte)[0]}."
    text = source.node_code(part)
    if re.search(r"\b(?:asm|__asm__|__asm)\b", text):
        return f"{kernel.name} has inline assembly, whose effects are not followed."
    if is_volatile:
        return f"{kernel.name} reads or writes volatile memory, which may not be read less often."
    if macro := hidden_by(source, text):
        return f"{kernel.name} uses the macro {macro}, which stands for more than a value."
    return ""


def hidden_by(source: Source, text: str) -> str:
    """The first macro of the file in a text that stands for more than a value; empty for none."""
    used = set(re.findall(r"[A-Za-z_]\w*", text))
    return next((macro for macro in macros_naming(source, _HIDES) if macro in used), "")


def block_by_directive(kernel: Kernel) -> str:
    """Why the block's size as a number would hold in one build alone: a directive decides it. Empty where none does.

    Example: `#ifndef THREADS`, whose 256 another build may replace with `-DTHREADS=128`.
    """
    source = kernel.source
    launched = [node_at(source.root, span.start, span.end) for each in host_launches(kernel) if (span := each.span)]
    shapes = [shape for call in launched if call is not None and (shape := launch_configuration(call)) is not None]
    found = decided_by_directive(kernel, shapes)
    return f"The block of {kernel.name} depends on {found}." if found else ""


def decided_by_directive(kernel: Kernel, nodes: Iterable[Node]) -> str:
    """A name that goes into expressions of the kernel's file and that a directive decides, in words; empty for none."""
    source = kernel.source
    common = list(ancestors(kernel.node)) if kernel.node is not None else []
    waiting = [source.node_text(use) for node in nodes for use in descendants(node, "identifier")]
    seen = set(waiting)
    while waiting:
        name = waiting.pop()
        for definition in _definitions(source, name):
            if any(n.type in _SIDES and n not in common for n in ancestors(definition)):
                line = source.position(definition.start_byte)[0]
                return f"`{name}`, which a directive decides at line {line}"
            more = set(re.findall(r"[A-Za-z_]\w*", source.node_code(definition))) - seen
            waiting += sorted(more)
            seen |= more
    return ""


def _definitions(source: Source, name: str) -> Iterator[Node]:
    for macro in descendants(source.root, "preproc_def"):
        defined = macro.child_by_field_name("name")
        if defined is not None and source.node_text(defined) == name:
            yield macro
    for declarator in descendants(source.root, "init_declarator"):
        if declared_name(source, declarator) == name:
            yield declarator
