"""Give each row to a warp instead of a thread, so that the lanes of a warp read consecutive elements.

## Before

```cuda
constexpr int columns = 64;

__global__ void row_sums(float *sums, const float *in, int rows) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  float sum = 0.0f;
  for (int c = 0; c < columns; c++)
    sum += in[row * columns + c];
  sums[row] = sum;
}

void run(float *sums, const float *in, int rows) {
  row_sums<<<(rows + 127) / 128, 128>>>(sums, in, rows);
}
```

## After

```cuda
constexpr int columns = 64;

__global__ void row_sums(float *sums, const float *in, int rows) {
  int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  int lane = threadIdx.x % 32;
  if (row >= rows)
    return;
  float sum = 0.0f;
  for (int c = lane; c < columns; c += 32)
    sum += in[row * columns + c];
  for (int offset = 16; offset > 0; offset /= 2)
    sum += __shfl_xor_sync(0xffffffff, sum, offset);
  if (lane == 0)
    sums[row] = sum;
}

void run(float *sums, const float *in, int rows) {
  row_sums<<<(rows + 127) / 128 * 32, 128>>>(sums, in, rows);
}
```

## Assumes

- The kernel knows its thread by the row alone, `blockIdx.x * blockDim.x + threadIdx.x`, by `gridDim.x * blockDim.x` of
  a loop over rows, and by the block's place in y and z. It has no shared memory, barrier or operation of a warp.
- Every launch is in this file, its block one-dimensional and of whole warps. The grid becomes 32 times as large, so
  that warp *i* does what thread *i* did; all 32 lanes do what stands outside the loops over a row, and lane 0 stores.
  Where rows are known to have 8 to 31 elements, each goes to 8 or 16 lanes, which alone wait for each other.
- Where all lanes walk over the same elements, as in a loop over all pairs, the launch is not known to have as many
  threads as a large GPU holds at once.
- A loop over a row counts up by 1 and does nothing from one iteration to the next but combine values by `+`, `*`, `&`,
  `|`, `^`, min or max into variables that start at the neutral number (any number for `&`, `|`, min and max), or make
  one running sum and store it, or keep the first of the smallest or largest numbers and its place. What it stores, it
  stores at other places in each iteration. Atomics whose result is not used may stand in it, where the kernel does
  nothing else with their array.
- What the kernel stores, it reads nowhere else than at the same element of the same row. Pointers that are handed
  different arguments lead to memory that does not overlap.

## Cost

Rows of fewer elements than lanes leave some idle. The order of a sum or product changes: of floating-point numbers the
last bits can change. For a sum of n numbers the error of any order is at most about n * 2^-24 * sum(|x|) in float and
n * 2^-53 * sum(|x|) in double (N. J. Higham, Accuracy and Stability of Numerical Algorithms, section 4.2); 32 partial
sums and 5 steps usually come closer than one long chain.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.cuda.numbers import number_at
from warpwright.facts.aliasing import loop_around
from warpwright.facts.model import WARP, Access, AccessKind, Kernel, Space
from warpwright.facts.types import builtin_type
from warpwright.rewrites._accumulate import combined, is_exact
from warpwright.rewrites._code import NoMatchError, body, body_of, in_macro, macros_naming, matched, overlaps, squeezed
from warpwright.rewrites._few_threads import explanation_of_few, size_of, walked_together
from warpwright.rewrites._gain import edited_kernel
from warpwright.rewrites._indent import braced_lines
from warpwright.rewrites._layout import after_statement, before_statement, free_name, indent_unit, line_of
from warpwright.rewrites._linear_threads import OTHER_AXES, size_in, whole_number
from warpwright.rewrites._located import LocatingLoop, locating_loop, put_together
from warpwright.rewrites._prefix_loop import PrefixLoop, prefix_edit, prefix_loop
from warpwright.rewrites._row_loop import RowLoop, accumulated, row_loop
from warpwright.rewrites._row_stores import guarded_stores
from warpwright.rewrites._threads import NUMBERS, TIES, grid_times, unfit_call, whole_warps
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import ancestors, descendants
from warpwright.syntax.source import Source, Span

NAME = "warp-per-row"
title = "Process one row per warp"
goals = ("speed",)
relies_on = (Reliance.GRID, Reliance.BLOCK, Reliance.APART)

WORTHWHILE = 4.0
"""Sectors for each one needed from which the lanes are taken to be in rows of their own."""

FEWEST = 8
"""Elements of a row from which lanes share it: 8 floats fill a sector."""


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = body_of(kernel)
    walking = [a for a in kernel.accesses if _walks_a_row(a) and _is_own(kernel, a.span)]
    lanes = _lanes(walking)
    walking = [a for a in walking if a.iterations >= lanes]
    alike = [] if walking else [a for a in walked_together(kernel) if _is_own(kernel, a.span)]
    if alike:
        walking, lanes = alike, WARP
    if not [a for a in walking if at is None or overlaps(a.span, at)]:
        return Declined(NAME, "Nothing to gain: no loop here is known to walk a row of its own in each lane.")
    return _rewrite(kernel, block, walking, lanes)


def _walks_a_row(access: Access) -> bool:
    """Whether each lane moves along by one element while its neighbours are far away."""
    size = size_of(access)
    return (
        access.space is Space.GLOBAL
        and access.loop_step is not None
        and 0 < access.loop_step <= max(size, 16)
        and access.iterations >= FEWEST
        and (access.excess or 0.0) >= WORTHWHILE
    )


def _lanes(walking: list[Access]) -> int:
    """The lanes for a row: a warp, or a half or a quarter where no row has more elements than that."""
    longest = max((access.iterations for access in walking), default=WARP)
    return next((lanes for lanes in (WARP, WARP // 2) if longest >= lanes), FEWEST)


def _is_own(kernel: Kernel, span: Span) -> bool:
    return span.source is kernel.source and kernel.span.start <= span.start < kernel.span.end


def _rewrite(kernel: Kernel, block: Node, walking: list[Access], lanes: int) -> Rewrite:
    source = kernel.source
    _require_plain(kernel, block)
    launches = matched(whole_warps(kernel))
    edits, row = _numbering(kernel, block, {launch.block[0] for launch in launches}, lanes)
    lane = free_name(kernel.span.code, "lane")
    offset = free_name(kernel.span.code, "offset")
    unit = indent_unit(source, block)
    steps = f"for (int {offset} = {lanes // 2}; {offset} > 0; {offset} /= 2)"
    loops = _row_loops(kernel, block, walking, lanes)
    mask = "0xffffffff" if lanes == WARP else free_name(kernel.span.code, "group")
    place = after_statement if row.type in ("declaration", "expression_statement") else before_statement
    numbers = [f"int {lane} = threadIdx.x % {lanes};"]
    if lanes < WARP and any(isinstance(loop, (PrefixLoop, LocatingLoop)) or loop.updates for loop in loops):
        numbers.append(f"unsigned int {mask} = {hex((1 << lanes) - 1)}u << (threadIdx.x % {WARP} / {lanes} * {lanes});")
    edits.append(place(source, row, numbers))
    exact = not any(_adds_floats(access, loops) for access in kernel.accesses)
    reduced, scanned = list[str](), list[str]()
    for loop in loops:
        if isinstance(loop, PrefixLoop):
            edits.append(prefix_edit(kernel, loop, lane, unit, (lanes, mask)))
            exact, scanned = exact and loop.kind.is_integer, [*scanned, loop.sum]
            continue
        edits += _strided(source, loop, lane, lanes)
        found = accumulated(kernel, block, loop)
        lines: list[str] = []
        for name, (operation, function, kind) in found.items():
            exact = exact and is_exact(operation, kind)
            other = f"__shfl_xor_sync({mask}, {name}, {offset})"
            lines.append(combined(operation, function, kind, name, other))
        reduced += found
        if isinstance(loop, LocatingLoop):
            lines += put_together(kernel, block, loop, f"__shfl_xor_sync({mask}, {{}}, {offset})", unit)
            reduced += [source.node_text(n) for each in loop.located for n in (each.best, each.at)]
        if lines:
            edits.append(after_statement(source, loop.node, braced_lines(steps, lines, unit)))
    guarded = guarded_stores(kernel, block, loops, lane, unit)
    edits += guarded
    for launch in launches:
        edit = matched(grid_times(source, launch, lanes))
        edits.append(edit)
    kept = "" if exact else " The order of the sum or product changes, so the last bits of the result can change."
    whole = list(dict.fromkeys(reduced))
    joined = f" {', '.join(whole)} {'is' if len(whole) == 1 else 'are'} reduced with warp shuffles." if whole else ""
    joined += f" The running sums in {', '.join(scanned)} are made by shuffles." if scanned else ""
    alone = " Lane 0 stores what is stored outside the loop." if guarded else ""
    if not any(_walks_a_row(access) for access in walking):
        told = explanation_of_few(f"{joined}{alone}", kept)
        return Rewrite(NAME, title, source, tuple(edits), told, safe=exact)
    before, after = _sectors(kernel, [loop.node for loop in loops]), _sectors_after(kernel, edits, lanes)
    if before is None or after is None or after * 2 > before:
        raise NoMatchError("Nothing to gain: a warp for each row is not known to move fewer sectors.")
    return Rewrite(
        rewrite=NAME,
        title=title if lanes == WARP else f"Give each row to {lanes} lanes",
        source=source,
        edits=tuple(edits),
        explanation=(
            f"Each lane walked a row of its own, so a request touched {before:g} sectors on average. Now {lanes} lanes "
            f"of a warp take consecutive elements of one row: {after:g} sectors.{joined}{alone} {lanes} times as many "
            f"blocks are launched. Rows of fewer than {lanes} elements leave lanes idle.{kept}"
        ),
        safe=exact,
    )


def _require_plain(kernel: Kernel, block: Node) -> None:
    source = kernel.source
    if kernel.incomplete:
        raise NoMatchError(f"{kernel.name} could not be followed whole: {kernel.incomplete}")
    if kernel.shared_arrays:
        raise NoMatchError(f"{kernel.name} uses shared memory, whose layout fits the present numbering of the threads.")
    if tied := TIES.search(source.node_code(block)):
        raise NoMatchError(f"{kernel.name} uses `{tied.group()}`, which ties its threads together.")
    if reason := unfit_call(kernel, block):
        raise NoMatchError(reason)
    for jump in descendants(block, "goto_statement", "lambda_expression", "preproc_if", "preproc_ifdef"):
        raise NoMatchError(f"What line {line_of(source, jump)} does to the order of the statements is not followed.")
    if macros := macros_naming(source, re.compile(r"\b(?:threadIdx|blockIdx)\b")):
        text = source.node_code(block)
        if used := next((m for m in macros if re.search(rf"\b{re.escape(m)}\b", text)), None):
            raise NoMatchError(f"{kernel.name} uses the macro {used}, which reads the thread's index.")
    for around in descendants(block, "reference_declarator"):
        raise NoMatchError(f"What the reference at line {line_of(source, around)} leads to is not followed.")
    for taken in descendants(block, "init_declarator"):
        value = taken.child_by_field_name("value")
        if value is not None and value.type == "pointer_expression" and _is_local_address(value):
            raise NoMatchError(f"What the pointer at line {line_of(source, taken)} leads to is not followed.")


def _is_local_address(value: Node) -> bool:
    """`&x` of a variable as a whole."""
    argument = value.child_by_field_name("argument")
    return value.children[0].type == "&" and argument is not None and argument.type == "identifier"


def _numbering(kernel: Kernel, block: Node, blocks: set[int | None], lanes: int) -> tuple[list[TextEdit], Node]:
    """The edits that make threads of one warp one thread, and the statement that computes the row."""
    source = kernel.source
    edits: list[TextEdit] = []
    seen: set[int] = set()
    row: Node | None = None
    for use in descendants(block, "identifier"):
        if source.node_text(use) not in NUMBERS or use.start_byte in seen:
            continue
        if use.parent is not None and squeezed(source.node_code(use.parent)) in OTHER_AXES:
            continue
        whole = whole_number(source, use)
        if whole is None or in_macro(use):
            raise NoMatchError(
                f"`{source.node_text(use.parent or use)}` at line {line_of(source, use)} is not a part of "
                "`blockIdx.x * blockDim.x + threadIdx.x`, so the row alone does not say which thread it is."
            )
        size = size_in(source, whole)
        if size != "blockDim.x" and {number_at(source, whole, size, kernel.macros)} != blocks:
            raise NoMatchError(f"{size} at line {line_of(source, use)} is not known to be the block size.")
        for part in descendants(whole, "field_expression", "identifier", "number_literal"):
            text = squeezed(source.node_code(part))
            if part.type == "field_expression":
                seen.update(n.start_byte for n in descendants(part, "identifier"))
            if text == size and not _inside(part, "field_expression"):
                edits.append(TextEdit(part.start_byte, part.end_byte, f"({source.node_text(part)} / {lanes})"))
            elif text == "threadIdx.x":
                edits.append(TextEdit(part.end_byte, part.end_byte, f" / {lanes}"))
                if row is not None:
                    raise NoMatchError(f"The row is computed again at line {line_of(source, part)}.")
                row = next((n for n in (part, *ancestors(part)) if n.parent == block), None)
    if row is None:
        raise NoMatchError("No row is computed as `blockIdx.x * blockDim.x + threadIdx.x`.")
    return edits, row


def _inside(node: Node, kind: str) -> bool:
    return node.parent is not None and node.parent.type == kind


def _row_loops(kernel: Kernel, block: Node, walking: list[Access], lanes: int) -> list[RowLoop]:
    """The loops whose iterations the lanes share: those that walk a row, and those that store along one."""
    source = kernel.source
    found: dict[int, RowLoop] = {}
    stores = [
        a
        for a in kernel.accesses
        if a.space is Space.GLOBAL and a.kind is AccessKind.STORE and _is_own(kernel, a.span) and a.loop_step
    ]
    for access in [*walking, *(s for s in stores if abs(s.loop_step or 0) <= 16 and s.iterations >= lanes)]:
        node = loop_around(access.span)
        if node is None or in_macro(node):
            raise NoMatchError(f"The loop around {access.expression} is not in the kernel's own text.")
        if node.start_byte not in found:
            found[node.start_byte] = _shared(kernel, block, node, lanes)
        if node.parent is None or node.parent.type != "compound_statement":
            line = line_of(source, node)
            raise NoMatchError(f"The loop at line {line} is the body of another statement without braces.")
    loops = [found[start] for start in sorted(found)]
    for loop in loops:
        if any(loop.node.start_byte < other.node.start_byte < loop.node.end_byte for other in loops):
            raise NoMatchError(f"The loop at line {line_of(source, loop.node)} holds another that walks a row.")
    return loops


def _shared(kernel: Kernel, block: Node, node: Node, lanes: int) -> RowLoop:
    """A loop whose iterations the lanes can share, each for itself or with the sums of those before."""
    try:
        return row_loop(kernel, node, lanes)
    except NoMatchError as unfit:
        if locating := locating_loop(kernel, node, lanes):
            return locating
        if prefix := prefix_loop(kernel, block, node, lanes):
            return prefix
        raise unfit


def _strided(source: Source, loop: RowLoop, lane: str, lanes: int) -> list[TextEdit]:
    first = source.node_text(loop.initial)
    start = lane if re.fullmatch(r"0[uUlL]*", first) else f"{first} + {lane}"
    if not re.fullmatch(r"[\w.\s*+]+", first):
        start = f"({first}) + {lane}"
    return [
        TextEdit(loop.initial.start_byte, loop.initial.end_byte, start),
        TextEdit(loop.update.start_byte, loop.update.end_byte, f"{loop.step} += {lanes}"),
    ]


def _adds_floats(access: Access, loops: list[RowLoop]) -> bool:
    """Whether it is an atomic within the loops on numbers whose sum depends on the order."""
    kind = builtin_type(access.type)
    inside = any(loop.node.start_byte <= access.span.start < loop.node.end_byte for loop in loops)
    return inside and access.kind is AccessKind.ATOMIC and not (kind is not None and kind.is_integer)


def _sectors(kernel: Kernel, loops: list[Node]) -> float | None:
    """Sectors of a request to global memory within the loops, on average; None where none is known."""
    counted = [
        (a.sectors_per_request, a.requests)
        for a in kernel.accesses
        if a.space is Space.GLOBAL
        and a.sectors_per_request is not None
        and a.launch == 0
        and any(loop.start_byte <= a.span.start < loop.end_byte for loop in loops)
    ]
    requests = sum(count for _, count in counted)
    return round(sum(sectors * count for sectors, count in counted) / requests, 1) if requests else None


def _sectors_after(kernel: Kernel, edits: list[TextEdit], lanes: int) -> float | None:
    edited = edited_kernel(kernel, edits)
    block = body(edited) if edited is not None else None
    if edited is None or block is None:
        return None
    strided = [
        loop
        for loop in descendants(block, "for_statement")
        if (update := loop.child_by_field_name("update")) is not None
        and re.fullmatch(rf"\w+ \+= {lanes}", edited.source.node_code(update))
    ]
    return _sectors(edited, strided)
