"""Let each thread do what an even and an odd lane did, where they take different sides of a branch.

## Before

```cuda
__global__ void rotate(float *__restrict__ out, const float *__restrict__ in, float c, float s, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 2 * n) return;
  if (i % 2 == 0)
    out[i] = c * in[i] - s * in[i + 1];
  else
    out[i] = s * in[i - 1] + c * in[i];
}

void run(float *out, const float *in, int n) {
  rotate<<<(2 * n + 255) / 256, 256>>>(out, in, 0.6f, 0.8f, n);
}
```

## After

```cuda
__global__ void rotate(float *__restrict__ out, const float *__restrict__ in, float c, float s, int n) {
  int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= 2 * n) return;
  out[i] = c * in[i] - s * in[i + 1];
  if (i + 1 < 2 * n)
    out[i + 1] = s * in[i] + c * in[i + 1];
}

void run(float *out, const float *in, int n) {
  rotate<<<((2 * n + 255) / 256 + 1) / 2, 256>>>(out, in, 0.6f, 0.8f, n);
}
```

## Assumes

- The whole work on an element is such a branch, on whether its number, or the thread's in a block of an even size, is
  even. It stores that element alone, which no other lane reads. No barrier, no atomic, no exchange within a warp.
- All launches are in this file, with one-dimensional blocks and a grid that is seen to cover the elements.
- Three halves of the bound stay under the largest value of the index's type.

## Cost

Half of the threads. Results stay the same bit for bit.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.facts.model import Kernel, Launch
from warpwright.rewrites._code import (
    NoMatchError,
    body,
    macros_naming,
    matched,
    names,
    require_marked,
    squeezed,
)
from warpwright.rewrites._elementwise import Elements, declared_in, inner_statements, match_elements, not_the_thread
from warpwright.rewrites._grids import divided, launches_in_sight, uncovered
from warpwright.rewrites._layout import line_of, reindented
from warpwright.rewrites._locals import changed_names
from warpwright.rewrites._movable import unmovable
from warpwright.rewrites._row_loop import root_name, targets
from warpwright.rewrites._thread_numbers import NUMBER, WARP_LEVEL, calls_by_number
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit, apply_edits
from warpwright.syntax.encoding import decoded
from warpwright.syntax.nodes import descendants, uncommented
from warpwright.syntax.source import Source, Span

NAME = "join-lane-pairs"
title = "Process an even and an odd element per thread"
goals = ("speed",)
relies_on = (Reliance.GRID, Reliance.APART, Reliance.SIZES)

_ALONE = ("subscript_argument_list", "argument_list", "parenthesized_expression", "init_declarator")


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    if reason := unmovable(kernel):
        return Declined(NAME, reason)
    elements = match_elements(kernel)
    if isinstance(elements, str):
        return Declined(NAME, elements)
    require_marked(kernel, at)
    return _joined(kernel, elements)


def _joined(kernel: Kernel, elements: Elements) -> Rewrite:
    source, index = kernel.source, elements.index
    branch = elements.work[0]
    even, odd, by_thread = _sides(source, elements, branch)
    _require_independent(kernel, elements, [*even, *odd])
    _require_own_stores(kernel, elements, [*even, *odd])
    launches = matched(launches_in_sight(kernel))
    if reason := not_the_thread(kernel, elements, launches):
        raise NoMatchError(reason)
    edits = [_halved(kernel, elements, launch, by_thread) for launch in launches]
    initial = elements.initial
    edits += [
        TextEdit(initial.start_byte, initial.start_byte, "2 * ("),
        TextEdit(initial.end_byte, initial.end_byte, ")"),
    ]
    indent = source.line_indent(branch.start_byte)
    bound = source.node_text(elements.bound)
    braces = len(odd) > 1 or odd[0].type == "declaration" or odd[0].parent is None or _has_comment(odd[0].parent)
    unit = _unit(source, branch, even)
    first = _text(source, even, indent, {})
    if any(statement.type == "declaration" for statement in even):
        first = f"{{\n{indent}{unit}{_text(source, even, indent + unit, {})}\n{indent}}}"
    second = _text(source, odd, indent + unit, _next(source, odd, index))
    head = f"if ({index} + 1 < {bound})"
    second = f"{head} {{\n{indent}{unit}{second}\n{indent}}}" if braces else f"{head}\n{indent}{unit}{second}"
    both = f"{first}\n{indent}{second}"
    if branch.parent is not None and branch.parent.type != "compound_statement":
        both = f"{{\n{indent}{unit}{reindented(both, indent, indent + unit)}\n{indent}}}"
    edits.append(TextEdit(branch.start_byte, branch.end_byte, both))
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=source,
        edits=tuple(edits),
        explanation=(
            "Even lanes took one side of the branch and odd lanes the other, so every warp ran both, each with half of "
            "its lanes, and what both sides read was loaded by both. Now a thread does the two one after the other, "
            "all lanes are at work, and the grid has half of the blocks."
        ),
    )


def _sides(source: Source, elements: Elements, branch: Node) -> tuple[list[Node], list[Node], bool]:
    """The statements for even elements and for odd ones, and whether the thread's index in its block decides."""
    alternative = branch.child_by_field_name("alternative") if branch.type == "if_statement" else None
    if len(elements.work) != 1 or alternative is None:
        raise NoMatchError("The work on an element is not a branch on whether its index is even.")
    clause = branch.child_by_field_name("condition")
    text = squeezed(source.node_code(clause)) if clause is not None else ""
    number = rf"(?:{re.escape(elements.index)}|threadIdx\.x)"
    test = re.fullmatch(rf"\(?({number})(?:%2u?|&1u?)\)?(?:(==|!=|>)([01])u?)?", text)
    if test is None or (test[2] == ">" and test[3] != "0"):
        raise NoMatchError(f"The branch at line {line_of(source, branch)} does not test whether the number is even.")
    if "&" in text and test[2] is not None and not re.match(rf"\({number}&1", text):
        raise NoMatchError(f"The branch at line {line_of(source, branch)} does not test whether the number is even.")
    is_even = (test[2] or "!=", test[3] or "0") in (("==", "0"), ("!=", "1"))
    there = inner_statements(branch)
    other = [c for c in alternative.named_children if c.type != "comment"]
    otherwise = uncommented(other[0]) if len(other) == 1 and other[0].type == "compound_statement" else other
    if not there or not otherwise:
        raise NoMatchError(f"A side of the branch at line {line_of(source, branch)} is empty.")
    return (there, otherwise, test[1] != elements.index) if is_even else (otherwise, there, test[1] != elements.index)


def _require_own_stores(kernel: Kernel, elements: Elements, statements: list[Node]) -> None:
    """What is stored is the element's own, and neither side reads what the other stores."""
    source = kernel.source
    inside = {name for s in statements for name in declared_in(source, s)}
    stored: set[str] = set()
    for target in (t for s in statements for t in targets(s, source)):
        name = root_name(source, target)
        if target.type == "identifier" and name in inside:
            continue
        if squeezed(source.node_code(target)) != f"{name}[{elements.index}]" or name in inside:
            raise NoMatchError(
                f"`{source.node_text(target)}` at line {line_of(source, target)} is not the own element."
            )
        stored.add(name)
    for use in (u for s in statements for u in descendants(s, "identifier")):
        name = source.node_text(use)
        own = use.parent is not None and squeezed(source.node_code(use.parent)) == f"{name}[{elements.index}]"
        if name in stored and not own:
            raise NoMatchError(f"`{name}` at line {line_of(source, use)} is read where the other lane may have stored.")


def _require_independent(kernel: Kernel, elements: Elements, statements: list[Node]) -> None:
    source, block = kernel.source, body(kernel)
    for statement in statements:
        text = source.node_code(statement)
        hidden = [m for m in macros_naming(source, re.compile(rf"{NUMBER.pattern}|\b{elements.index}\b")) if m in text]
        found = re.search(rf"{NUMBER.pattern}|{WARP_LEVEL.pattern}|\batomic\w*|\b__syncthreads\w*|\breturn\b", text)
        if found or hidden:
            raise NoMatchError(f"`{found.group() if found else hidden[0]}` is used in the work on an element.")
        if reason := calls_by_number(kernel, statement):
            raise NoMatchError(reason)
        for name in changed_names(source, statement):
            if name not in {n for s in statements for n in declared_in(source, s)}:
                raise NoMatchError(f"`{name}` is changed in the work on an element, and declared before.")
    for statement in elements.before:
        if statement == elements.declaration:
            continue
        used = any(True for _ in names(statement, source, elements.index)) or NUMBER.search(source.node_code(statement))
        if statement.type != "declaration" or used:
            raise NoMatchError(f"Line {line_of(source, statement)} prepares something with the thread's index.")
    whole = source.node_code(block) if block is not None else ""
    if "__shared__" in whole or "gridDim" in whole:
        raise NoMatchError(f"{kernel.name} uses shared memory or the size of its grid.")


def _halved(kernel: Kernel, elements: Elements, launch: Launch, by_thread: bool) -> TextEdit:
    if by_thread and (launch.block[0] or 1) % 2:
        raise NoMatchError(f"The blocks at {launch.source} have an odd number of threads.")
    if reason := uncovered(kernel, launch, elements.bound):
        raise NoMatchError(reason)
    return matched(divided(kernel.source, launch, 2))


def _next(source: Source, statements: list[Node], index: str) -> dict[tuple[int, int], str]:
    """What stands for the index, and for `index - 1`, where the element is the next one."""
    found: dict[tuple[int, int], str] = {}
    for use in (u for statement in statements for u in names(statement, source, index)):
        outer = use.parent
        if outer is not None and squeezed(source.node_code(outer)) == f"{index}-1":
            found[outer.start_byte, outer.end_byte] = index
        else:
            alone = outer is not None and outer.type in _ALONE
            found[use.start_byte, use.end_byte] = f"{index} + 1" if alone else f"({index} + 1)"
    return found


def _text(source: Source, statements: list[Node], indent: str, new: dict[tuple[int, int], str]) -> str:
    start, end = statements[0].start_byte, statements[-1].end_byte
    parent = statements[0].parent
    if parent is not None and parent.type == "compound_statement":
        start, end = parent.named_children[0].start_byte, parent.named_children[-1].end_byte
    edits = [TextEdit(first - start, last - start, text) for (first, last), text in new.items()]
    text = decoded(apply_edits(source.data[start:end], edits))
    return reindented(text, source.line_indent(statements[0].start_byte), indent)


def _has_comment(node: Node) -> bool:
    return node.type == "compound_statement" and any(child.type == "comment" for child in node.named_children)


def _unit(source: Source, branch: Node, statements: list[Node]) -> str:
    outer, inner = source.line_indent(branch.start_byte), source.line_indent(statements[0].start_byte)
    return inner[len(outer) :] if inner.startswith(outer) and inner != outer else "  "
