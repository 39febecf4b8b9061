"""Sum up in a variable what a loop adds to one element of memory, and store it once.

## Before

```cuda
__global__ void multiply(float *y, const float *a, const float *x, int rows, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  y[row] = 0.0f;
  for (int c = 0; c < columns; c++)
    y[row] += a[c * rows + row] * x[c];
}

void run(float *y, const float *a, const float *x, int rows, int columns) {
  multiply<<<(rows + 127) / 128, 128>>>(y, a, x, rows, columns);
}
```

## After

```cuda
__global__ void multiply(float *y, const float *a, const float *x, int rows, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  float sum = 0.0f;
  for (int c = 0; c < columns; c++)
    sum += a[c * rows + row] * x[c];
  y[row] = sum;
}

void run(float *y, const float *a, const float *x, int rows, int columns) {
  multiply<<<(rows + 127) / 128, 128>>>(y, a, x, rows, columns);
}
```

## Assumes

- The element is set right before the loop, which uses the array in no other way, and its index stays the same.
- No barrier, atomic or fence stands in the loop, so that no other thread may look at the element meanwhile.
- Pointers that are handed different arguments lead to memory that does not overlap.

## Cost

A register. Results stay the same bit for bit.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.cuda.numbers import number_at
from warpwright.facts.model import AccessKind, Kernel, Space
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import (
    NoMatchError,
    body_of,
    in_macro,
    macro_texts,
    macros_naming,
    names,
    overlaps,
    squeezed,
)
from warpwright.rewrites._iteration_variables import own_variables
from warpwright.rewrites._layout import after_statement, free_name, line_of
from warpwright.rewrites._locals import Locals, is_template_type, locals_of
from warpwright.rewrites._movable import unmovable
from warpwright.rewrites._row_loop import targets
from warpwright.rewrites._threads import TIES, unfit_call
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import LOOPS, descendants, enclosing, uncommented
from warpwright.syntax.source import Source, Span

NAME = "accumulate-in-register"
title = "Accumulate in a register and store once"
goals = ("speed",)
relies_on = (Reliance.APART,)


_MORE = (
    "subscript_expression", "call_expression", "pointer_expression", "update_expression", "assignment_expression"
)  # fmt: skip


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = body_of(kernel)
    reason = "No loop here adds to one element of memory that is set right before it."
    for loop in descendants(block, *LOOPS):
        if at is not None and not overlaps(kernel.source.span(loop), at):
            continue
        for element in _stayed(kernel, loop):
            try:
                return _rewrite(kernel, block, loop, element)
            except NoMatchError as mismatch:
                reason = str(mismatch)
    return Declined(NAME, reason)


def _stayed(kernel: Kernel, loop: Node) -> list[Node]:
    """The elements of memory that the loop itself stores to again and again, one place each."""
    source = kernel.source
    found: dict[str, Node] = {}
    for target in targets(loop, source):
        if target.type != "subscript_expression" or enclosing(target, *LOOPS) != loop or in_macro(target):
            continue
        span = source.span(target)
        stores = [a for a in kernel.accesses if a.kind is AccessKind.STORE and a.span.start == span.start]
        if stores and all(a.loop_step == 0 and a.space in (Space.GLOBAL, Space.SHARED) for a in stores):
            found.setdefault(squeezed(source.node_code(target)), target)
    return list(found.values())


def _rewrite(kernel: Kernel, block: Node, loop: Node, element: Node) -> Rewrite:
    source, variables = kernel.source, locals_of(kernel)
    text = source.node_text(element)
    array = element.child_by_field_name("argument")
    if reason := unmovable(kernel):
        raise NoMatchError(reason)
    if array is None or array.type != "identifier":
        raise NoMatchError(f"`{text}` is not a plain element of an array.")
    name = source.node_text(array)
    typed = _type(kernel, variables, name)
    start = _set_before(source, loop, element, name)
    _require_only(kernel, block, loop, start, element, name)
    words = kernel.span.code
    total = free_name(words, "sum")
    value = start.child_by_field_name("right")
    written = source.node_text(value) if value is not None else "0"
    statement = start.parent or start
    edits = [
        TextEdit(statement.start_byte, statement.end_byte, f"{typed} {total} = {written};"),
        *(TextEdit(e.start_byte, e.end_byte, total) for e in _elements(source, loop, name)),
        after_statement(source, loop, [f"{text} = {total};"]),
    ]
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=source,
        edits=tuple(edits),
        explanation=(
            f"Every iteration loaded `{text}`, changed it and stored it again, and the next one waited for that. The "
            f"sum now stays in a register and is stored once after the loop. `{name}` must not overlap with what the "
            "loop reads from other pointers."
        ),
        safe=False,
    )


def _type(kernel: Kernel, variables: Locals, name: str) -> str:
    """The type of the array's elements as it is written; refuses what is not a number."""
    written = variables.types.get(name, "")
    known = builtin_type(written)
    if not (known is not None and known.kind in ("int", "uint", "float")) and not is_template_type(kernel, written):
        raise NoMatchError(f"`{name}` holds {written or 'what is not known'}, which is not known to be numbers.")
    shared = name in {a.name for a in kernel.shared_arrays}
    given = any(p.name == name and p.is_pointer for p in kernel.parameters) and variables.is_fixed(name)
    if not shared and not given:
        raise NoMatchError(f"`{name}` is not an array that the kernel is given or shares.")
    return written


def _set_before(source: Source, loop: Node, element: Node, name: str) -> Node:
    """The assignment that sets the element in the same braces, with nothing between that uses the array."""
    before = loop.prev_named_sibling
    while before is not None:
        inner = uncommented(before)
        if before.type == "expression_statement" and [n.type for n in inner] == ["assignment_expression"]:
            target, operator = inner[0].child_by_field_name("left"), inner[0].child_by_field_name("operator")
            value = inner[0].child_by_field_name("right")
            same = target is not None and squeezed(source.node_code(target)) == squeezed(source.node_code(element))
            plain = operator is not None and source.node_text(operator) == "=" and value is not None
            if same and plain and value is not None and value.type != "assignment_expression":
                return inner[0]
        if any(names(before, source, name)) or before.type not in (
            "declaration",
            "comment",
            "preproc_call",
            "expression_statement",
        ):
            break
        before = before.prev_named_sibling
    raise NoMatchError(
        f"`{source.node_text(element)}` is not set right before the loop at line {line_of(source, loop)}."
    )


def _elements(source: Source, loop: Node, name: str) -> list[Node]:
    """The elements of the array in a loop."""
    uses = (use.parent for use in names(loop, source, name))
    return [n for n in uses if n is not None and n.type == "subscript_expression"]


def _require_only(kernel: Kernel, block: Node, loop: Node, start: Node, element: Node, name: str) -> None:
    """The loop uses the array at that element alone, which stays the same, and no other thread may look at it."""
    source, line = kernel.source, line_of(kernel.source, loop)
    text = squeezed(source.node_code(element))
    for use in names(loop, source, name):
        around = use.parent
        if (
            around is None
            or squeezed(source.node_code(around)) != text
            or around.child_by_field_name("argument") != use
        ):
            raise NoMatchError(f"`{name}` is used otherwise at line {line_of(source, use)}, in the loop.")
        outer = around.parent
        if outer is not None and (
            outer.type in ("field_expression", "subscript_expression", "pointer_expression")
            or (outer.type == "argument_list" and _may_take_address(source, outer))
        ):
            raise NoMatchError(
                f"`{source.node_text(around)}` at line {line_of(source, use)} may be used by its address."
            )
    _require_fixed(source, loop, start, element)
    if "volatile" in kernel.span.code:
        raise NoMatchError(f"{kernel.name} uses volatile memory, whose reads and writes may not change.")
    tied = TIES.search(source.node_code(loop)) or re.search(r"\batomic\w+", source.node_code(loop))
    if tied:
        raise NoMatchError(f"The loop at line {line} uses `{tied.group()}`: other threads may look at the element.")
    if reason := unfit_call(kernel, loop):
        raise NoMatchError(reason)
    for leave in descendants(loop, "return_statement"):
        raise NoMatchError(f"The thread may leave at line {line_of(source, leave)}, in the loop.")
    if macros := macros_naming(source, re.compile(rf"\b{re.escape(name)}\b")):
        raise NoMatchError(f"The macro {macros[0]} uses `{name}`, so not every use of it can be seen.")
    for given in descendants(block, "init_declarator", "assignment_expression"):
        value = given.child_by_field_name("value") or given.child_by_field_name("right")
        inner = given.child_by_field_name("declarator")
        refers = inner is not None and inner.type == "reference_declarator"
        if value is not None and any(refers or _leads(use) for use in names(value, source, name)):
            raise NoMatchError(f"What the pointer at line {line_of(source, given)} leads to is not followed.")
    if loop.parent is None or loop.parent.type != "compound_statement":
        raise NoMatchError(f"The loop at line {line} is the body of another statement without braces.")


def _leads(use: Node) -> bool:
    """Whether the address of an array or of its element is taken, not the number that is there."""
    element = use.parent
    if element is None or element.type != "subscript_expression" or element.child_by_field_name("argument") != use:
        return element is None or element.type != "subscript_argument_list"
    around = element.parent
    return around is not None and around.type == "pointer_expression" and around.children[0].type == "&"


def _require_fixed(source: Source, loop: Node, start: Node, element: Node) -> None:
    """The index is of variables and constants that neither the loop nor what stands before it changes."""
    line = line_of(source, loop)
    indices = element.child_by_field_name("indices")
    if indices is None or any(True for _ in descendants(indices, *_MORE)):
        raise NoMatchError(f"The index of `{source.node_text(element)}` does more than combine variables.")
    changed = {source.node_text(t) for t in targets(loop, source) if t.type == "identifier"}
    changed |= own_variables(loop, source)
    statement = start.parent
    while statement is not None and statement != loop:
        changed |= {source.node_text(t) for t in targets(statement, source) if t.type == "identifier"}
        statement = statement.next_named_sibling
    for index in descendants(indices, "identifier"):
        word = source.node_text(index)
        if word in changed or (word in macro_texts(source) and number_at(source, index, word) is None):
            raise NoMatchError(f"`{word}`, which picks the element, may change in the loop at line {line}.")


def _may_take_address(source: Source, arguments: Node) -> bool:
    """Whether a call may bind an argument to a reference."""
    name = called_name(arguments.parent, source) if arguments.parent is not None else ""
    return not re.fullmatch(r"(?:f|d)?(?:max|min)f?|fmaf?|__\w+|sqrtf?|fabsf?|abs|expf?|logf?", name)
