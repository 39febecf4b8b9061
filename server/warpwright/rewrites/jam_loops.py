"""Do several iterations of an outer loop at a time, so that what its inner loop loads serves all of them.

## Before

```cuda
constexpr int CENTERS = 16, DIM = 8;

__global__ void nearest(float *__restrict__ out, const float *__restrict__ points, const float *__restrict__ centers,
                        int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float best = 1e30f;
  for (int c = 0; c < CENTERS; c++) {
    float sum = 0.0f;
    for (int d = 0; d < DIM; d++) {
      sum += fabsf(points[i * DIM + d] - centers[c * DIM + d]);
    }
    best = fminf(best, sum);
  }
  out[i] = best;
}

void run(float *out, const float *points, const float *centers, int n) {
  nearest<<<(n + 127) / 128, 128>>>(out, points, centers, n);
}
```

## After

```cuda
constexpr int CENTERS = 16, DIM = 8;

__global__ void nearest(float *__restrict__ out, const float *__restrict__ points, const float *__restrict__ centers,
                        int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float best = 1e30f;
  for (int c_first = 0; c_first < CENTERS; c_first += 8) {
    float sums[8] = {};
    for (int d = 0; d < DIM; d++) {
      #pragma unroll
      for (int e = 0; e < 8; e++) {
        const int c = c_first + e;
        sums[e] += fabsf(points[i * DIM + d] - centers[c * DIM + d]);
      }
    }
    #pragma unroll
    for (int e = 0; e < 8; e++) {
      float sum = sums[e];
      best = fminf(best, sum);
    }
  }
  out[i] = best;
}

void run(float *out, const float *points, const float *centers, int n) {
  nearest<<<(n + 127) / 128, 128>>>(out, points, centers, n);
}
```

Where the number of iterations is not known to be a multiple, the loop as it is does those that are left.

## Assumes

- The outer loop counts up by 1 and is not left early. Its body declares sums, has one loop that adds to them and
  changes nothing else, and does something with them after it. How often the inner loop runs does not depend on it.
- What the inner loop reads, the outer one does not change: neither variables nor arrays that are stored to.

## Cost

Registers for the further sums. Each sum, and what is done with them, stays in order: results are the same bit for bit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.facts.aliasing import changes
from warpwright.facts.model import AccessKind, Kernel, Space
from warpwright.rewrites._code import NoMatchError, body, overlaps
from warpwright.rewrites._guards import loads_nothing
from warpwright.rewrites._indices import Indices, indices_of
from warpwright.rewrites._layout import free_name, indent_unit, line_of, reindented, with_comments
from warpwright.rewrites._locals import changed_names, declared_names
from warpwright.rewrites._loops import CountedLoop, counted_loop, header_of, pragmas_before
from warpwright.rewrites._movable import movable_body
from warpwright.rewrites._threads import TIES, unfit_call
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit, apply_edits
from warpwright.syntax.encoding import decoded
from warpwright.syntax.nodes import declared_name, descendants, uncommented
from warpwright.syntax.source import Source, Span

NAME = "jam-loops"
title = "Unroll and jam the outer loop"
goals = ("speed",)
relies_on = (Reliance.APART,)

COUNTS = (8, 4)
"""Iterations at a time, the first of which the number of iterations is known to be a multiple."""
MOST_SUMS = 4
"""Of one iteration: more would take too many registers."""

_JUMPS = ("break_statement", "continue_statement", "return_statement", "goto_statement")
_ZERO = re.compile(r"0+(?:\.0*)?[fF]?|\.0+[fF]?")


@dataclass(frozen=True, slots=True)
class _Nest:
    """An outer loop whose body is declarations, one inner loop, and what stands behind it. `sums` are the declarators
    of the variables that the inner loop adds to, `others` of those that it does not change."""

    outer: CountedLoop
    inner: Node
    inside: tuple[Node, ...]
    sums: tuple[Node, ...]
    others: tuple[Node, ...]
    behind: tuple[Node, ...]


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = movable_body(kernel)
    indices = indices_of(kernel, None)
    reason = "No loop here has a loop in it that adds up sums of one iteration."
    for node in descendants(block, "for_statement"):
        if at is not None and not overlaps(kernel.source.span(node), at):
            continue
        try:
            return _rewrite(kernel, indices, _nest(kernel, node))
        except NoMatchError as mismatch:
            reason = str(mismatch) or reason
    return Declined(NAME, reason)


def _nest(kernel: Kernel, node: Node) -> _Nest:
    """Raises NoMatchError with the reason; without one where there is nothing like it."""
    source = kernel.source
    outer = counted_loop(source, node)
    if outer is None or outer.body.type != "compound_statement":
        raise NoMatchError
    parts = [n for n in uncommented(outer.body) if n.type != "preproc_call"]
    loops = [n for n in parts if n.type == "for_statement"]
    if len(loops) != 1 or outer.step is not None:
        raise NoMatchError
    inner = loops[0]
    before, behind = parts[: parts.index(inner)], tuple(parts[parts.index(inner) + 1 :])
    inside = inner.child_by_field_name("body")
    if not before or inside is None or any(s.type != "declaration" for s in before):
        raise NoMatchError
    added = set(changed_names(source, inside))
    declarators = [d for s in before for d in s.children_by_field_name("declarator")]
    sums = tuple(d for d in declarators if declared_name(source, d) in added)
    if not sums:
        raise NoMatchError
    if len(sums) > MOST_SUMS:
        raise NoMatchError(f"The loop at line {line_of(source, inner)} adds to {len(sums)} variables.")
    others = tuple(d for d in declarators if d not in sums)
    statements = uncommented(inside) if inside.type == "compound_statement" else [inside]
    return _Nest(outer, inner, tuple(statements), sums, others, behind)


def _rewrite(kernel: Kernel, indices: Indices, nest: _Nest) -> Rewrite:
    source, outer = kernel.source, nest.outer
    _require_independent(kernel, indices, nest)
    _require_gain(kernel, nest)
    first, last = indices.number(outer.start), indices.number(outer.bound)
    steps = last - first if first is not None and last is not None else None
    count = next((n for n in COUNTS if steps is not None and steps % n == 0 and steps > n), COUNTS[-1])
    if len(nest.sums) > 2:
        count = COUNTS[-1]
    if steps is not None and steps < 2 * count:
        raise NoMatchError(f"Nothing to gain: the loop at line {line_of(source, outer.node)} has {steps} iterations.")
    whole = steps is not None and steps % count == 0
    if not whole and (outer.node.parent is None or outer.node.parent.type != "compound_statement"):
        raise NoMatchError(f"The loop at line {line_of(source, outer.node)} stands in a statement without braces.")
    edit = _text(kernel, nest, count, whole)
    names = " and ".join(declared_name(source, d) for d in nest.sums)
    return Rewrite(
        NAME,
        f"Do {count} iterations of {outer.name} at a time",
        source,
        (edit,),
        f"For each {outer.name} the inner loop loaded again what does not depend on it. Now {count} values of "
        f"{names} are made at a time, in registers: what they have in common is loaded once, {count} times less often, "
        "and their sums do not wait for each other. Each is added up in the same order.",
    )


def _require_independent(kernel: Kernel, indices: Indices, nest: _Nest) -> None:
    source, outer = kernel.source, nest.outer
    line = line_of(source, nest.inner)
    text = source.node_code(outer.node)
    if found := TIES.search(text) or re.search(r"\batomic\w*", text):
        raise NoMatchError(f"The loop at line {line_of(source, outer.node)} uses `{found.group()}`.")
    if reason := unfit_call(kernel, outer.node):
        raise NoMatchError(reason)
    for jump in descendants(outer.node, *_JUMPS):
        raise NoMatchError(f"The loop may be left at line {line_of(source, jump)}.")
    names = [declared_name(source, d) for d in (*nest.sums, *nest.others)]
    for name in (outer.name, *names):
        if name not in indices.variables.types:
            raise NoMatchError(f"`{name}` is declared more than once in {kernel.name}.")
    own = declared_names(source, *nest.inside, nest.inner)
    sums = {declared_name(source, d) for d in nest.sums}
    inside = set(changed_names(source, nest.inner)) - own - sums
    if inside:
        raise NoMatchError(f"The loop at line {line} changes `{min(inside)}`, which outlives an iteration.")
    changed = list(descendants(nest.inner, "assignment_expression", "update_expression"))
    targets = [n.child_by_field_name("left") or n.child_by_field_name("argument") for n in changed]
    stored = [n for n in targets if n is not None and n.type != "identifier"]
    if stored:
        raise NoMatchError(f"The loop at line {line} stores at line {line_of(source, stored[0])}.")
    late = {name for s in nest.behind for name in changed_names(source, s)}
    head = [n for n in nest.inner.children if n != nest.inner.child_by_field_name("body")]
    of_iteration = {outer.name, *names}
    for part in head:
        if used := _used(source, part) & (of_iteration | late):
            raise NoMatchError(f"How often the loop at line {line} runs depends on `{min(used)}`.")
    for part in (*nest.inside, *nest.sums, *nest.others):
        if used := _used(source, part) & (late - sums - {declared_name(source, part)}):
            raise NoMatchError(f"`{min(used)}` changes from one iteration to the next, and the sums depend on it.")
    kept = {name for s in nest.behind for name in _elements_set(source, s)}
    for part in (outer.bound, nest.inner, *nest.sums, *nest.others):
        if used := _used(source, part) & kept:
            raise NoMatchError(f"The loop at line {line_of(source, outer.node)} stores to `{min(used)}`, and reads it.")
    if outer.name in late or _used(source, outer.bound) & late:
        raise NoMatchError(f"How often the loop at line {line_of(source, outer.node)} runs is changed in it.")
    for d in nest.others:
        statement = d.parent
        if statement is None or not loads_nothing(source, statement) or d.type != "init_declarator":
            raise NoMatchError(
                f"`{declared_name(source, d)}` at line {line_of(source, d)} is not initialised by arithmetic alone."
            )


def _elements_set(source: Source, statement: Node) -> set[str]:
    """The arrays, pointers and structures of which a statement sets an element."""
    changed = descendants(statement, "assignment_expression", "update_expression")
    targets = [n.child_by_field_name("left") or n.child_by_field_name("argument") for n in changed]
    found = [next(descendants(n, "identifier"), None) for n in targets if n is not None and n.type != "identifier"]
    return {source.node_text(n) for n in found if n is not None}


def _used(source: Source, node: Node) -> set[str]:
    return {source.node_text(n) for n in descendants(node, "identifier")}


def _require_gain(kernel: Kernel, nest: _Nest) -> None:
    """The inner loop loads something for all iterations of the outer one alike, which nobody stores to."""
    source = kernel.source
    read = [
        a
        for a in kernel.accesses
        if a.kind is AccessKind.LOAD
        and a.space in (Space.GLOBAL, Space.SHARED)
        and a.span.source is source
        and nest.outer.node.start_byte <= a.span.start < nest.inner.end_byte
    ]
    loads = [a for a in read if a.span.start >= nest.inner.start_byte]
    varying = {nest.outer.name, *(declared_name(source, d) for d in nest.others)}
    for statement in nest.inside:
        for declaration in descendants(statement, "init_declarator"):
            if _used(source, declaration) & varying:
                varying.add(declared_name(source, declaration))
    if not any(not set(re.findall(r"[A-Za-z_]\w*", a.span.code)) & varying for a in loads):
        raise NoMatchError(f"Nothing to gain: all that the inner loop loads depends on {nest.outer.name}.")
    written = {a.array for a in kernel.accesses if changes(a)}
    for access in read:
        if access.array is None or access.array in written:
            raise NoMatchError(f"The kernel stores to `{access.array or access.expression}`, which the loop reads.")


def _text(kernel: Kernel, nest: _Nest, count: int, whole: bool) -> TextEdit:
    source, outer = kernel.source, nest.outer
    block = body(kernel)
    unit = indent_unit(source, block) if block is not None else "  "
    start = next((p.start_byte for p in pragmas_before(source, outer.node)), outer.node.start_byte)
    indent = source.line_indent(start)
    text = source.code_text()
    counter, first = free_name(text, "e"), free_name(text, f"{outer.name}_first")
    arrays = {name: free_name(text, f"{name}s") for d in nest.sums if (name := declared_name(source, d))}
    each = ["#pragma unroll", f"for (int {counter} = 0; {counter} < {count}; {counter}++) {{"]

    def setup(texts: list[str]) -> list[str]:
        """What a piece of code needs of its iteration, in order."""
        words = set(re.findall(r"[A-Za-z_]\w*", " ".join(texts)))
        lines: list[str] = []
        for d in reversed(nest.others):
            if declared_name(source, d) in words and d.parent is not None:
                prefix = source.text(d.parent.start_byte, d.parent.children_by_field_name("declarator")[0].start_byte)
                lines.insert(0, f"{prefix}{source.node_text(d)};")
                words |= _used(source, d)
        step = [f"const {outer.type} {outer.name} = {first} + {counter};"] if outer.name in words else []
        return [*step, *lines]

    def looped(lines: list[str]) -> list[str]:
        return [*each, *(f"{unit}{line}" for line in lines), "}"]

    inner: list[str] = []
    kinds: dict[Node, str] = {}
    values = [source.node_text(v) for d in nest.sums if (v := d.child_by_field_name("value")) is not None]
    zeros = len(values) == len(nest.sums) and all(_ZERO.fullmatch(v) for v in values)
    for d in nest.sums:
        statement = d.parent
        declared = statement.children_by_field_name("declarator")[0] if statement is not None else d
        kinds[d] = source.text(statement.start_byte, declared.start_byte) if statement is not None else ""
        inner.append(f"{kinds[d]}{arrays[declared_name(source, d)]}[{count}]{' = {}' if zeros else ''};")
    if not zeros:
        if len(values) != len(nest.sums):
            raise NoMatchError(f"A sum of the loop at line {line_of(source, outer.node)} has no initial value.")
        pairs = zip(arrays.values(), values, strict=True)
        inner += looped([*setup(values), *(f"{array}[{counter}] = {value};" for array, value in pairs)])
    head = header_of(source, nest.inner)
    pieces = [_with_arrays(source, s, arrays, counter) for s in nest.inside]
    own = looped([*setup(pieces), *(line for piece in pieces for line in piece.split("\n"))])
    ahead = source.text(with_comments(source, nest.inner)[0], nest.inner.start_byte).strip()
    inner += [line.strip() for line in ahead.split("\n") if line]
    inner += [*(source.node_text(p).rstrip() for p in pragmas_before(source, nest.inner)), f"{head} {{"]
    inner += [*(f"{unit}{line}" for line in own), "}"]
    behind = [
        reindented(source.text(*with_comments(source, s)), source.line_indent(s.start_byte), "") for s in nest.behind
    ]
    if behind:
        words = set(re.findall(r"[A-Za-z_]\w*", " ".join(behind)))
        sums = [f"{kinds[d]}{name} = {arrays[name]}[{counter}];" for d in nest.sums
                if (name := declared_name(source, d)) in words]  # fmt: skip
        inner += looped([*setup(behind), *sums, *(line for piece in behind for line in piece.split("\n"))])
    begun, bound = source.node_text(outer.start), source.node_text(outer.bound)
    if whole:
        lines = [f"for ({outer.type} {first} = {begun}; {first} < {bound}; {first} += {count}) {{"]
        lines += [*(f"{unit}{line}" for line in inner), "}"]
    else:
        rest = source.text(outer.body.start_byte, outer.node.end_byte)
        lines = [f"{outer.type} {first} = {begun};", f"for (; {first} + {count - 1} < {bound}; {first} += {count}) {{"]
        lines += [*(f"{unit}{line}" for line in inner), "}"]
        again = f"for ({outer.type} {outer.name} = {first}; {outer.name} < {bound}; {outer.name}++) {rest}"
        lines += reindented(again, source.line_indent(outer.node.start_byte), "").split("\n")
    new = re.sub(r"[ \t]+$", "", "\n".join(lines).replace("\n", f"\n{indent}"), flags=re.MULTILINE)
    return TextEdit(start, outer.node.end_byte, new)


def _with_arrays(source: Source, statement: Node, arrays: dict[str, str], counter: str) -> str:
    """A statement with an element of an array in place of each sum."""
    start, end = with_comments(source, statement)
    edits = [
        TextEdit(use.start_byte - start, use.end_byte - start, f"{arrays[name]}[{counter}]")
        for use in descendants(statement, "identifier")
        if (name := source.node_text(use)) in arrays
    ]
    text = decoded(apply_edits(source.data[start:end], edits))
    return reindented(text, source.line_indent(start), "")
