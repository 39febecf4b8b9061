"""Move a barrier out of a branch that part of the block does not take, and guard only what stands around it.

## Before

```cuda
// warpwright: shape n=1024
// warpwright: check n=4096
__global__ void smooth(float *out, const float *in, int n) {
  __shared__ float window[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    window[threadIdx.x] = in[i];
    __syncthreads();
    if (threadIdx.x > 0)
      out[i] = 0.5f * (window[threadIdx.x - 1] + window[threadIdx.x]);
  }
}

void run(float *out, const float *in, int n) {
  smooth<<<(n + 255) / 256, 256>>>(out, in, n);
}
```

## After

```cuda
// warpwright: shape n=1024
// warpwright: check n=4096
__global__ void smooth(float *out, const float *in, int n) {
  __shared__ float window[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    window[threadIdx.x] = in[i];
  }
  __syncthreads();
  if (i < n) {
    if (threadIdx.x > 0)
      out[i] = 0.5f * (window[threadIdx.x - 1] + window[threadIdx.x]);
  }
}

void run(float *out, const float *in, int n) {
  smooth<<<(n + 255) / 256, 256>>>(out, in, n);
}
```

A barrier in a loop in the branch takes the loop along, where all threads of the block run it equally often.

## Assumes

- The branch is an `if` that the analysis saw part a block, and what stands around it is the same for the whole block.
- The barriers stand in its braces, or in those of a `for` there whose header is made of parameters, constants and
  blockDim. Nothing in the branch leaves it early.
- A variable that is declared before a barrier and used behind it is of a built-in type, so that it can be declared
  before the branch.
- What the threads that do not take the branch would have to put in shared memory is the author's to say: they put
  nothing there, as before.

## Cost

The condition is tested once more for each barrier. What was undefined behaviour is defined: a block in which threads
part hangs no longer, nor does it read what is not written yet.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.facts.model import Barrier, Kernel
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import NoMatchError, body_of, in_macro, names, overlaps
from warpwright.rewrites._interleaved import is_barrier
from warpwright.rewrites._layout import free_name, indent_unit, line_of, reindented
from warpwright.rewrites._locals import locals_of
from warpwright.rewrites._movable import unmovable
from warpwright.rewrites._row_loop import targets
from warpwright.rewrites._uniform import is_even_loop, is_uniform
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import BREAKABLE, ancestors, declared_name, descendants, enclosing, node_at
from warpwright.syntax.source import Source, Span

NAME = "move-barrier-out-of-branch"
title = "Move the barrier out of the branch"
goals = ("fix",)
relies_on = ()


@dataclass(frozen=True, slots=True)
class _Piece:
    """Statements without a barrier, one barrier (`is_barrier`), or a loop with barriers (`inner`)."""

    nodes: tuple[Node, ...]
    is_barrier: bool = False
    inner: tuple[_Piece, ...] = ()


@dataclass(frozen=True, slots=True)
class _Branch:
    """An `if` with barriers in its braces; `test` is its condition, `pieces` what its braces hold."""

    node: Node
    braces: Node
    test: Node
    pieces: tuple[_Piece, ...]


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = body_of(kernel)
    reason = "No barrier here is known to stand in a branch that part of a block does not take."
    for barrier in kernel.barriers:
        if not barrier.divergent or barrier.condition is None or (at is not None and not overlaps(barrier.span, at)):
            continue
        try:
            return _rewrite(kernel, block, _branch(kernel, block, barrier))
        except NoMatchError as mismatch:
            reason = str(mismatch)
    return Declined(NAME, reason)


def _branch(kernel: Kernel, block: Node, barrier: Barrier) -> _Branch:
    source, condition = kernel.source, barrier.condition
    if reason := unmovable(kernel):
        raise NoMatchError(reason)
    if condition is None or condition.source is not source or barrier.span.source is not source:
        raise NoMatchError("The barrier or its condition is in another file.")
    test = node_at(source.root, condition.start, condition.end)
    call = node_at(source.root, barrier.span.start, barrier.span.end)
    node = enclosing(test, "if_statement") if test is not None else None
    if test is None or call is None or node is None or in_macro(call) or in_macro(test):
        raise NoMatchError(f"The condition `{condition.text}` is not that of an `if` around the barrier.")
    clause, braces = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
    value = clause.child_by_field_name("value") if clause is not None else None
    if value is None or not value.start_byte <= test.start_byte < value.end_byte:
        raise NoMatchError(f"The condition `{condition.text}` is not that of an `if` around the barrier.")
    if braces is None or braces.type != "compound_statement" or not _holds(braces, call):
        raise NoMatchError(f"The barrier does not stand in the braces of the `if` at line {line_of(source, node)}.")
    if node.child_by_field_name("alternative") is not None:
        raise NoMatchError(f"The `if` at line {line_of(source, node)} has an `else`, whose threads do something else.")
    if node.parent is None or node.parent.type != "compound_statement":
        raise NoMatchError(f"The `if` at line {line_of(source, node)} is the body of another statement without braces.")
    _require_alike_around(kernel, block, node)
    for jump in descendants(node, "return_statement", "break_statement", "continue_statement"):
        around = enclosing(jump, *BREAKABLE)
        if jump.type == "return_statement" or around is None or not _holds(node, around):
            raise NoMatchError(f"Threads may leave the branch at line {line_of(source, jump)}, before a barrier.")
    return _Branch(node, braces, value, tuple(_pieces(kernel, braces)))


def _holds(outer: Node, inner: Node) -> bool:
    return outer.start_byte <= inner.start_byte and inner.end_byte <= outer.end_byte


def _require_alike_around(kernel: Kernel, block: Node, node: Node) -> None:
    """All threads of a block come to the branch equally often."""
    source, variables = kernel.source, locals_of(kernel)
    for around in ancestors(node):
        if around == block:
            return
        if around.type == "compound_statement":
            continue
        clause = around.child_by_field_name("condition")
        value = clause.child_by_field_name("value") if clause is not None and around.type == "if_statement" else None
        alike = value is not None and is_uniform(kernel, variables, value)
        if not alike and not (around.type == "for_statement" and is_even_loop(kernel, around)):
            raise NoMatchError(
                f"What stands at line {line_of(source, around)} around the branch may part the block as well."
            )


def _pieces(kernel: Kernel, braces: Node) -> list[_Piece]:
    source = kernel.source
    found: list[_Piece] = []
    plain: list[Node] = []
    for child in braces.named_children:
        inside = [n for n in descendants(child, "expression_statement") if is_barrier(n, source)]
        if not inside:
            behind = found and found[-1].is_barrier and not plain and child.type == "comment"
            if behind and line_of(source, child) == line_of(source, found[-1].nodes[0]):
                found[-1] = _Piece((found[-1].nodes[0], child), is_barrier=True)
            else:
                plain.append(child)
            continue
        if plain and plain[-1].type == "preproc_call":
            raise NoMatchError(
                f"The directive at line {line_of(source, plain[-1])} stands before a loop with a barrier."
            )
        if plain:
            found.append(_Piece(tuple(plain)))
            plain = []
        if child.type == "expression_statement":
            found.append(_Piece((child,), is_barrier=True))
            continue
        inner = child.child_by_field_name("body") if child.type == "for_statement" else None
        if inner is None or inner.type != "compound_statement" or not is_even_loop(kernel, child):
            raise NoMatchError(
                f"What stands at line {line_of(source, child)} around a barrier may be done unequally often by the "
                "threads of a block."
            )
        found.append(_Piece((child,), inner=tuple(_pieces(kernel, inner))))
    if plain:
        found.append(_Piece(tuple(plain)))
    return found


def _rewrite(kernel: Kernel, block: Node, branch: _Branch) -> Rewrite:
    source, unit = kernel.source, indent_unit(kernel.source, block)
    indent = source.line_indent(branch.node.start_byte)
    head = source.text(branch.node.start_byte, branch.braces.start_byte + 1)
    lines: list[str] = []
    if not _is_repeatable(source, branch):
        name = free_name(kernel.span.code, "takes_part")
        lines.append(f"const bool {name} = {source.node_text(branch.test)};")
        before = source.text(branch.node.start_byte, branch.test.start_byte)
        head = before + name + source.text(branch.test.end_byte, branch.braces.start_byte + 1)
    hoisted, changes = _hoisted(kernel, branch)
    lines += hoisted
    moved = _lines(source, branch.pieces, head, indent, indent, unit, changes)
    acts = any(True for _ in descendants(branch.test, "call_expression", "assignment_expression", "update_expression"))
    is_tested = any(head.split("\n")[0] in line for line in moved)
    lines = [*(lines if is_tested or acts else hoisted), *moved]
    text = lines[0] + "".join(f"\n{indent}{line}" if line.strip() else "\n" for line in lines[1:])
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=source,
        edits=(TextEdit(branch.node.start_byte, branch.node.end_byte, text),),
        explanation=(
            f"A barrier waits for every thread of the block, and `{source.node_text(branch.test)}` keeps some of them "
            "away from it, which is undefined behaviour. It stands behind the branch now, where all threads come, and "
            "the condition guards what stood before and behind it. What the threads outside leave in shared memory is "
            "as it was: nothing."
        ),
    )


def _is_repeatable(source: Source, branch: _Branch) -> bool:
    """Whether the condition gives the same each time: of variables and numbers that the branch does not change."""
    kinds = ("call_expression", "subscript_expression", "pointer_expression", "assignment_expression")
    if any(True for _ in descendants(branch.test, *kinds, "update_expression")) or "->" in source.node_code(
        branch.test
    ):
        return False
    variables = [t for t in targets(branch.braces, source) if t.type in ("identifier", "field_expression")]
    changed = {source.node_text(n) for t in variables for n in descendants(t, "identifier")}
    return not changed & {source.node_text(n) for n in descendants(branch.test, "identifier")}


def _hoisted(kernel: Kernel, branch: _Branch) -> tuple[list[str], list[TextEdit]]:
    """Declarations for before the branch of what one piece declares and another uses, and what is left in its place."""
    source = kernel.source
    lines: list[str] = []
    changes: list[TextEdit] = []
    for pieces in _levels(branch.pieces):
        for piece in pieces:
            for declaration in piece.nodes:
                if declaration.type != "declaration":
                    continue
                declarators = declaration.children_by_field_name("declarator")
                used = [d for d in declarators if _is_used_in(source, pieces, piece, declared_name(source, d))]
                if not used:
                    continue
                line, change = _declared_before(kernel, declaration, declarators)
                lines.append(line)
                changes.append(change)
    return lines, changes


def _levels(pieces: tuple[_Piece, ...]) -> list[tuple[_Piece, ...]]:
    return [pieces, *(level for piece in pieces if piece.inner for level in _levels(piece.inner))]


def _is_used_in(source: Source, pieces: tuple[_Piece, ...], own: _Piece, name: str) -> bool:
    return any(any(names(node, source, name)) for piece in pieces if piece is not own for node in piece.nodes)


def _declared_before(kernel: Kernel, declaration: Node, declarators: list[Node]) -> tuple[str, TextEdit]:
    """`float x = in[i];` as `float x;` and `x = in[i];`; a shared array moves as it is."""
    source = kernel.source
    text, line = source.node_text(declaration), line_of(source, declaration)
    name = declared_name(source, declarators[0])
    if name not in locals_of(kernel).types:
        raise NoMatchError(f"`{name}`, declared at line {line} and used behind a barrier, names several variables.")
    if "__shared__" in text:
        return text, TextEdit(declaration.start_byte, declaration.end_byte, "")
    typed = declaration.child_by_field_name("type")
    written = source.node_text(typed) if typed is not None else ""
    plain = len(declarators) == 1 and declarators[0].type in ("init_declarator", "identifier")
    inner = (
        declarators[0].child_by_field_name("declarator") if declarators[0].type == "init_declarator" else declarators[0]
    )
    if not plain or inner is None or inner.type != "identifier" or builtin_type(written) is None or "static" in text:
        raise NoMatchError(
            f"`{name}`, declared at line {line}, is used behind a barrier and cannot be declared earlier."
        )
    value = declarators[0].child_by_field_name("value")
    if value is not None and value.type == "initializer_list":
        raise NoMatchError(
            f"`{name}`, declared at line {line}, is used behind a barrier and cannot be declared earlier."
        )
    rest = f"{name} = {source.node_text(value)};" if value is not None else ""
    return f"{written} {name};", TextEdit(declaration.start_byte, declaration.end_byte, rest)


def _lines(
    source: Source, pieces: tuple[_Piece, ...], head: str, old: str, new: str, unit: str, changes: list[TextEdit]
) -> list[str]:
    """The pieces as lines, without the indent of the first level; `old` is the branch's own."""
    found: list[str] = []
    for piece in pieces:
        first, last = piece.nodes[0], piece.nodes[-1]
        if piece.is_barrier:
            found.append(source.text(first.start_byte, last.end_byte))
        elif piece.inner:
            inside = first.child_by_field_name("body")
            opened = source.text(first.start_byte, inside.start_byte + 1) if inside is not None else ""
            found += reindented(opened, source.line_indent(first.start_byte), "").split("\n")
            found += [unit + line for line in _lines(source, piece.inner, head, old, new + unit, unit, changes)]
            found.append("}")
        elif all(node.type == "comment" for node in piece.nodes):
            found += reindented(source.text(first.start_byte, last.end_byte), old + unit, "").split("\n")
        else:
            text = _changed(source, first.start_byte, last.end_byte, changes)
            if not text.strip():
                continue
            found += reindented(head, old, "").split("\n")
            code = next((n for n in piece.nodes if n.type != "comment"), first)
            found += (unit + line for line in reindented(text, source.line_indent(code.start_byte), "").split("\n"))
            found.append("}")
    return found


def _changed(source: Source, start: int, end: int, changes: list[TextEdit]) -> str:
    """The text of [start, end) with changes; a line that a change leaves empty goes."""
    found, at = "", start
    for change in sorted((c for c in changes if start <= c.start < end), key=lambda c: c.start):
        found += source.text(at, change.start) + change.new_text
        at = change.end
        if not change.new_text:
            found = found.rstrip(" \t")
            at += len(re.match(r"[ \t]*\n?[ \t]*", source.code_text(at, end))[0]) if at < end else 0  # type: ignore[index]
            found += source.line_indent(start) if found.endswith("\n") else ""
    return found + source.text(at, end)
