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

A barrier in a loop in the branch takes the loop along, where all threads of the block run it equally often. Where both
sides of an `if` begin with a barrier, one stands in front of it. A `__syncwarp()` that lanes do not come to, and a
barrier of the grid that threads do not come to, move in the same way.

## Assumes

- The branch is an `if` that the analysis saw part a block, and what stands around it is the same for the whole block.
- The barriers stand in its braces, or in those of a `for` there whose header is made of parameters, constants and
  blockDim. Nothing in the branch leaves it early.
- A variable that is declared before a barrier and used after it is of a built-in type, so that it can be declared
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

from warpwright.facts.model import Kernel
from warpwright.facts.types import builtin_type
from warpwright.rewrites._alike import require_alike_around
from warpwright.rewrites._code import NoMatchError, body_of, in_macro, names, overlaps, squeezed
from warpwright.rewrites._interleaved import is_barrier
from warpwright.rewrites._layout import before_statement, free_name, indent_unit, line_of, reindented, without_lines
from warpwright.rewrites._locals import locals_of
from warpwright.rewrites._movable import unmovable
from warpwright.rewrites._row_loop import targets
from warpwright.rewrites._uniform import is_even_loop
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import BREAKABLE, declared_name, descendants, enclosing, node_at, uncommented
from warpwright.syntax.source import Source, Span

NAME = "move-barrier-out-of-branch"
title = "Move the barrier out of the branch"
goals = ("fix",)
relies_on = ()

_WAITS = re.compile(
    r"__syncwarp\((?:0[xX][fF]{8}[uU]?)?\);|(?:\w+|(?:\w+::)*this_grid\(\))\.sync\(\);|\w+::sync\(\w+\);"
)
_CHANGES = ("call_expression", "assignment_expression", "update_expression")


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
    parted: list[tuple[Span, Span | None]] = [
        (each.span, each.condition) for each in kernel.barriers if each.divergent and each.condition is not None
    ]
    parted += [(each.span, None) for each in kernel.missed_waits if not each.wanted and each.threads[1] is not None]
    for span, condition in parted:
        if at is not None and not overlaps(span, at):
            continue
        try:
            return _moved(kernel, block, span, condition)
        except NoMatchError as mismatch:
            reason = str(mismatch)
    return Declined(NAME, reason)


def _moved(kernel: Kernel, block: Node, span: Span, condition: Span | None) -> Rewrite:
    """A barrier moved out of the `if` of its condition, of the next one around it where no condition is known."""
    source = kernel.source
    call = node_at(source.root, span.start, span.end) if span.source is source else None
    statement = enclosing(call, "expression_statement") if call is not None else None
    if call is None or statement is None or in_macro(call):
        raise NoMatchError("The barrier is no statement of the kernel's own.")
    if condition is None and not _WAITS.fullmatch(squeezed(source.node_code(statement))):
        raise NoMatchError("What waits there does more than wait.")
    if reason := unmovable(kernel):
        raise NoMatchError(reason)
    branch = enclosing(statement, "if_statement")
    if branch is not None and (condition is None or _holds_span(branch, condition)):
        whole = _whole(kernel, block, branch, statement)
        if whole is not None:
            return whole
    return _rewrite(kernel, _branch(kernel, block, statement, condition))


def _whole(kernel: Kernel, block: Node, branch: Node, statement: Node) -> Rewrite | None:
    """The branch is nothing but the barrier, or both its sides begin with the barrier and have no other."""
    source, wait = kernel.source, kernel.source.node_text(statement)
    test, taken = branch.child_by_field_name("condition"), branch.child_by_field_name("consequence")
    other = branch.child_by_field_name("alternative")
    if test is None or taken is None or any(True for _ in descendants(test, *_CHANGES)):
        return None
    if other is None:
        if taken != statement and uncommented(taken) != [statement]:
            return None
        require_alike_around(kernel, block, branch)
        return _with(source, (TextEdit(branch.start_byte, branch.end_byte, wait),), source.node_text(test))
    sides = [taken, *(each for each in other.named_children if each.type == "compound_statement")]
    if len(sides) != 2 or any(side.type != "compound_statement" for side in sides):
        return None
    first = [next(iter(uncommented(side)), None) for side in sides]
    waits = [each for each in descendants(branch, "expression_statement") if is_barrier(each, source)]
    if not all(each is not None and source.node_text(each) == wait for each in first) or len(waits) > 2:
        return None
    require_alike_around(kernel, block, branch)
    gone = tuple(without_lines(source, each) for each in first if each is not None)
    return _with(source, (before_statement(source, branch, [wait]), *gone), source.node_text(test))


def _with(source: Source, edits: tuple[TextEdit, ...], test: str) -> Rewrite:
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=source,
        edits=edits,
        explanation=(
            f"A barrier waits for all that take part in it, and `{test}` keeps some of them away from it, which is "
            "undefined behaviour. It stands outside of the branch now, where all come."
        ),
    )


def _branch(kernel: Kernel, block: Node, statement: Node, condition: Span | None) -> _Branch:
    source = kernel.source
    if condition is not None and condition.source is not source:
        raise NoMatchError("The barrier or its condition is in another file.")
    test = node_at(source.root, condition.start, condition.end) if condition is not None else statement
    node = enclosing(test, "if_statement") if test is not None else None
    clause = node.child_by_field_name("condition") if node is not None else None
    value = clause.child_by_field_name("value") if clause is not None else None
    is_its = condition is None or (value is not None and _holds_span(value, condition))
    if test is None or node is None or value is None or in_macro(test) or not is_its:
        what = f"The condition `{condition.text}`" if condition is not None else "What is around it"
        raise NoMatchError(f"{what} is not that of an `if` around the barrier.")
    braces = node.child_by_field_name("consequence")
    if braces is None or braces.type != "compound_statement" or not _holds(braces, statement):
        raise NoMatchError(f"The barrier does not stand in the braces of the `if` at line {line_of(source, node)}.")
    if node.child_by_field_name("alternative") is not None:
        raise NoMatchError(f"The `if` at line {line_of(source, node)} has an `else`, whose threads do something else.")
    if node.parent is None or node.parent.type != "compound_statement":
        raise NoMatchError(f"The `if` at line {line_of(source, node)} is the body of another statement without braces.")
    require_alike_around(kernel, block, node)
    for jump in descendants(node, "return_statement", "break_statement", "continue_statement"):
        around = enclosing(jump, *BREAKABLE)
        if jump.type == "return_statement" or around is None or not _holds(node, around):
            raise NoMatchError(f"Threads may leave the branch at line {line_of(source, jump)}, before a barrier.")
    return _Branch(node, braces, value, tuple(_pieces(kernel, braces, source.node_text(statement))))


def _holds_span(outer: Node, inner: Span) -> bool:
    return outer.start_byte <= inner.start and inner.end <= outer.end_byte


def _holds(outer: Node, inner: Node) -> bool:
    return outer.start_byte <= inner.start_byte and inner.end_byte <= outer.end_byte


def _pieces(kernel: Kernel, braces: Node, wait: str) -> list[_Piece]:
    """What braces hold; the barriers there are those of the block, and the statements that read as `wait`."""
    source = kernel.source
    found: list[_Piece] = []
    plain: list[Node] = []
    for child in braces.named_children:
        statements = descendants(child, "expression_statement")
        inside = [n for n in statements if is_barrier(n, source) or source.node_text(n) == wait]
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
        found.append(_Piece((child,), inner=tuple(_pieces(kernel, inner, wait))))
    if plain:
        found.append(_Piece(tuple(plain)))
    return found


def _rewrite(kernel: Kernel, branch: _Branch) -> Rewrite:
    source, unit = kernel.source, indent_unit(kernel.source, body_of(kernel))
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
            "away from it, which is undefined behaviour. It now stands after the branch, where all threads arrive, and "
            "the condition guards what stood before and after it. What the threads outside leave in shared memory is "
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
        raise NoMatchError(f"`{name}`, declared at line {line} and used after a barrier, names several variables.")
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
            f"`{name}`, declared at line {line}, is used after a barrier and cannot be declared earlier."
        )
    value = declarators[0].child_by_field_name("value")
    if value is not None and value.type == "initializer_list":
        raise NoMatchError(
            f"`{name}`, declared at line {line}, is used after a barrier and cannot be declared earlier."
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
