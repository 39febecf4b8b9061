"""Put statements that stand one after the other under the same condition into one `if`.

## Before

```cuda
__global__ void cube(float *out, const float *in, int n) {
  float own;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) own = in[i];
  // no other thread is asked
  if (i < n) own = own * own * own;
  if (i < n) out[i] = own;
}

void run(float *out, const float *in, int n) {
  cube<<<(n + 255) / 256, 256>>>(out, in, n);
}
```

## After

```cuda
__global__ void cube(float *out, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float own;
    own = in[i];
    // no other thread is asked
    own = own * own * own;
    out[i] = own;
  }
}

void run(float *out, const float *in, int n) {
  cube<<<(n + 255) / 256, 256>>>(out, in, n);
}
```

## Assumes

- The condition is made of parameters and variables that keep their values, of the thread's and the block's index, and
  of numbers: it is the same at each test.
- No statement under it declares a name that another one uses.

## Cost

None. By itself it saves a comparison; what works on one element in one place can be moved several elements at a time.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.cuda.numbers import number_at
from warpwright.facts.model import Kernel
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import NoMatchError, condition_of, macro_texts, names, overlaps, squeezed
from warpwright.rewrites._layout import indent_unit, line_of, reindented, with_comment, without_text
from warpwright.rewrites._locals import Locals, locals_of
from warpwright.rewrites._movable import movable_body
from warpwright.rewrites._thread_numbers import NUMBER
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import declared_name, descendants, uncommented, walk
from warpwright.syntax.source import Source, Span

NAME = "merge-guards"
title = "Merge the guards"
goals = ("speed",)
relies_on = ()

_PLAIN = frozenset((
    "binary_expression", "parenthesized_expression", "unary_expression", "identifier", "number_literal",
    "field_expression", "field_identifier",
))  # fmt: skip
"""What a condition that is evaluated once may consist of."""


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = movable_body(kernel)
    source = kernel.source
    reason = f"No two statements of {kernel.name} follow each other under the same condition."
    for guards in _runs(source, block):
        if at is not None and not any(overlaps(source.span(guard), at) for guard in guards):
            continue
        try:
            return _merged(kernel, block, guards)
        except NoMatchError as refused:
            reason = str(refused)
    return Declined(NAME, reason)


def _runs(source: Source, block: Node) -> list[list[Node]]:
    """The `if` statements of the outermost level that follow each other with the same condition and no `else`."""
    found: list[list[Node]] = []
    for statement in uncommented(block):
        plain = statement.type == "if_statement" and statement.child_by_field_name("alternative") is None
        last = found[-1][-1] if found and found[-1] else None
        if not plain:
            found.append([])
        elif last is not None and _condition(source, last) == _condition(source, statement):
            found[-1].append(statement)
        else:
            found.append([statement])
    return [run for run in found if len(run) > 1]


def _condition(source: Source, guard: Node) -> str:
    test = condition_of(guard)
    return squeezed(source.node_code(test)) if test is not None else ""


def _merged(kernel: Kernel, block: Node, guards: list[Node]) -> Rewrite:
    source, variables, first = kernel.source, locals_of(kernel), guards[0]
    _require_same(source, variables, first)
    inner = [_inner(guard) for guard in guards]
    declared = [{name for s in statements for name in _declared(source, s)} for statements in inner]
    for number, names_there in enumerate(declared):
        for name in names_there:
            others = [guard for other, guard in enumerate(guards) if other != number]
            if any(True for other in others for _ in names(other, source, name)):
                raise NoMatchError(
                    f"`{name}` is declared at line {line_of(source, guards[number])} and used elsewhere."
                )
    indent, unit = source.line_indent(first.start_byte), indent_unit(source, block)
    own = _moved_in(kernel, block, guards)
    lines = [source.text(*with_comment(source, declaration)) for declaration in own]
    at = first.start_byte
    for guard, statements in zip(guards, inner, strict=True):
        between = source.text(at, guard.start_byte).strip()
        lines += [reindented(between, indent, indent + unit)] if between else []
        start, end = statements[0].start_byte, statements[-1].end_byte
        if statements[0].parent is not None and statements[0].parent.type == "compound_statement":
            inside = statements[0].parent.named_children
            start, end = inside[0].start_byte, inside[-1].end_byte
        text = source.text(start, end)
        lines.append(reindented(text, source.line_indent(statements[0].start_byte), indent + unit))
        at = guard.end_byte
    test = condition_of(first)
    condition = source.node_text(test) if test is not None else ""
    head = f"if ({condition}) {{"
    whole = "".join(f"\n{indent}{unit}{line}" for line in lines)
    edits = [without_text(source, *with_comment(source, declaration)) for declaration in own]
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=source,
        edits=(*edits, TextEdit(first.start_byte, guards[-1].end_byte, f"{head}{whole}\n{indent}}}")),
        explanation=(
            f"{len(guards)} statements stood under the condition `{condition}` one by one. "
            "Under one `if` they are the work on one element, in one place."
        ),
    )


def _require_same(source: Source, variables: Locals, guard: Node) -> None:
    """The condition has one value for a thread, whenever it is evaluated."""
    test, line = condition_of(guard), line_of(source, guard)
    if test is None or any(n.is_named and n.type not in _PLAIN for n in walk(test)):
        raise NoMatchError(f"The condition at line {line} is more than a comparison of numbers.")
    for name in descendants(test, "identifier"):
        text = source.node_text(name)
        number = number_at(source, name, text)
        known = NUMBER.fullmatch(text) or number is not None
        if text in macro_texts(source) and number is None:
            raise NoMatchError(f"`{text}` in the condition at line {line} is a macro.")
        if not known and not variables.is_fixed(text):
            raise NoMatchError(f"`{text}` in the condition at line {line} may change.")


def _inner(guard: Node) -> list[Node]:
    consequence = guard.child_by_field_name("consequence")
    if consequence is None:
        raise NoMatchError("A condition has nothing under it.")
    statements = uncommented(consequence) if consequence.type == "compound_statement" else [consequence]
    if not statements:
        raise NoMatchError("A condition has nothing under it.")
    return statements


def _declared(source: Source, statement: Node) -> set[str]:
    declarators = statement.children_by_field_name("declarator") if statement.type == "declaration" else []
    return {declared_name(source, declarator) for declarator in declarators}


def _moved_in(kernel: Kernel, block: Node, guards: list[Node]) -> list[Node]:
    """Declarations of plain variables without a value that only the statements under the condition use."""
    source = kernel.source
    start, end = guards[0].start_byte, guards[-1].end_byte
    found: list[Node] = []
    for statement in uncommented(block):
        declarators = statement.children_by_field_name("declarator") if statement.type == "declaration" else []
        kind = statement.child_by_field_name("type")
        if len(declarators) != 1 or declarators[0].type != "identifier" or kind is None:
            continue
        words = source.code_text(statement.start_byte, kind.start_byte)
        if builtin_type(source.node_text(kind)) is None or re.search(r"\w", words) or statement.start_byte > start:
            continue
        uses = [u for u in names(block, source, source.node_text(declarators[0])) if u != declarators[0]]
        if uses and all(start <= use.start_byte < end for use in uses):
            found.append(statement)
    return found
