"""Load the next tile while the block computes with the present one, by asynchronous copies.

## Before

```cuda
#define TILE 16

__global__ void matmul(float *c, const float *a, const float *b, int n) {
  __shared__ float as[TILE][TILE];
  __shared__ float bs[TILE][TILE];
  int y = blockIdx.y * TILE + threadIdx.y;
  int x = blockIdx.x * TILE + threadIdx.x;
  float sum = 0.0f;
  for (int start = 0; start < n; start += TILE) {
    int at = start + threadIdx.x;
    as[threadIdx.y][threadIdx.x] = at < n ? a[y * n + at] : 0.0f;
    bs[threadIdx.y][threadIdx.x] = b[(start + threadIdx.y) * n + x];
    __syncthreads();
    for (int k = 0; k < TILE; k++)
      sum += as[threadIdx.y][k] * bs[k][threadIdx.x];
    __syncthreads();
  }
  c[y * n + x] = sum;
}

void run(float *c, const float *a, const float *b) {
  matmul<<<dim3(2, 2), dim3(TILE, TILE)>>>(c, a, b, 32);
}
```

## After

```cuda
#include <cuda_pipeline_primitives.h>

#define TILE 16

__global__ void matmul(float *c, const float *a, const float *b, int n) {
  __shared__ float as[2][TILE][TILE];
  __shared__ float bs[2][TILE][TILE];
  int y = blockIdx.y * TILE + threadIdx.y;
  int x = blockIdx.x * TILE + threadIdx.x;
  float sum = 0.0f;
  int stage = 0;
  for (int start = 0; start < n + TILE; start += TILE) {
    if (start < n) {
      int at = start + threadIdx.x;
      if (at < n)
        __pipeline_memcpy_async(&as[stage][threadIdx.y][threadIdx.x], &a[y * n + at], sizeof(float));
      else
        as[stage][threadIdx.y][threadIdx.x] = 0.0f;
      __pipeline_memcpy_async(&bs[stage][threadIdx.y][threadIdx.x], &b[(start + threadIdx.y) * n + x], sizeof(float));
    }
    __pipeline_commit();
    if (start > 0) {
      __pipeline_wait_prior(1);
      __syncthreads();
      for (int k = 0; k < TILE; k++)
        sum += as[stage ^ 1][threadIdx.y][k] * bs[stage ^ 1][k][threadIdx.x];
      __syncthreads();
    }
    stage ^= 1;
  }
  c[y * n + x] = sum;
}

void run(float *c, const float *a, const float *b) {
  matmul<<<dim3(2, 2), dim3(TILE, TILE)>>>(c, a, b, 32);
}
```

The loop runs once more: each step loads a tile and computes with the one before. Zeros at the edges are
stored as before.

## Assumes

- The GPU is of compute capability 8.0 or newer, which copies from global to shared memory without registers.
- The loop runs from 0, sets variables, fills tiles with elements of global memory or zeros, waits, computes with the
  tiles, and waits. What it computes does not depend on where the tile begins.
- Elements have 4 or 8 bytes and the same type in both memories; the kernel does not write what it loads.
- Twice the tiles and the rest of the block's shared memory fit in 48 KB.

## Cost

Twice the shared memory for the tiles, which can lower occupancy. Results stay the same bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.facts.aliasing import changes
from warpwright.facts.model import Kernel
from warpwright.facts.occupancy import architecture_number
from warpwright.rewrites._arrays import declarator_of, misuse
from warpwright.rewrites._code import NoMatchError, is_macro_of_several, names, overlaps, squeezed
from warpwright.rewrites._copies import Copy, copy_of
from warpwright.rewrites._indices import indices_of
from warpwright.rewrites._layout import free_name, indent_unit, line_of, reindented
from warpwright.rewrites._limits import SHARED_BYTES
from warpwright.rewrites._locals import changed_names, declared_names
from warpwright.rewrites._loops import CountedLoop, counted_loop, pragmas_before
from warpwright.rewrites._movable import movable_body
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit, apply_edits
from warpwright.syntax.encoding import decoded
from warpwright.syntax.nodes import LOOPS, declared_name, descendants, uncommented
from warpwright.syntax.source import Source, Span

NAME = "double-buffer-tiles"
title = "Double-buffer the tiles"
goals = ("speed",)
relies_on = (Reliance.APART, Reliance.SHARED)

OLDEST = 80
HEADER = "cuda_pipeline_primitives.h"


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = movable_body(kernel)
    if architecture_number(kernel.arch) < OLDEST:
        return Declined(NAME, f"{kernel.arch} has no asynchronous copies to shared memory; sm_{OLDEST} and newer have.")
    reason = "No loop here fills tiles in shared memory, waits, computes with them and waits."
    for node in descendants(block, "for_statement"):
        if at is not None and not overlaps(kernel.source.span(node), at):
            continue
        try:
            return _rewrite(kernel, block, node)
        except NoMatchError as mismatch:
            reason = str(mismatch) or reason
    return Declined(NAME, reason)


def _rewrite(kernel: Kernel, block: Node, node: Node) -> Rewrite:
    source, indices = kernel.source, indices_of(kernel, None)
    loop = counted_loop(source, node)
    if loop is None or loop.body.type != "compound_statement":
        raise NoMatchError
    filling, computing = _parts(source, loop)
    copies = [c for s in filling if (c := copy_of(kernel, indices.variables, s)) is not None]
    if not copies:
        raise NoMatchError
    line = line_of(source, node)
    if indices.number(loop.start) != 0:
        raise NoMatchError(f"The loop at line {line} does not run from 0.")
    _require_plain(source, filling, copies, computing, loop)
    tiles = list(dict.fromkeys(copy.tile for copy in copies))
    _require_known_sources(kernel, filling, copies)
    _require_tiles(kernel, block, node, tiles)
    written = {access.array for access in kernel.accesses if changes(access)}
    if changed := next((c.array for c in copies if c.array in written), ""):
        raise NoMatchError(f"The kernel writes `{changed}`, which is copied while it computes.")
    stage = free_name(source.code_text(), "stage")
    edits = [_doubled(block, source, tile) for tile in tiles]
    edits.append(_loop_edit(source, block, loop, (filling, copies, computing), stage))
    first = next(iter(pragmas_before(source, node)), node)
    indent = source.line_indent(first.start_byte)
    edits.append(TextEdit(first.start_byte, first.start_byte, f"int {stage} = 0;\n{indent}"))
    if HEADER not in source.code_text():
        edits.append(_include(source))
    listed = " and ".join(tiles)
    more = sum(array.bytes or 0 for array in kernel.shared_arrays if array.name in tiles)
    return Rewrite(
        NAME,
        title,
        source,
        tuple(edits),
        "The block waited for each tile to arrive before it computed. Now the hardware copies the next tile into the "
        f"other half of {listed} while the block computes, and no register holds what is on its way. It costs {more} "
        "bytes of shared memory more.",
    )


def _parts(source: Source, loop: CountedLoop) -> tuple[list[Node], list[Node]]:
    """The statements before the first barrier and those between it and the second, which ends the body."""
    statements = uncommented(loop.body)
    barriers = [n for n, s in enumerate(statements) if _is_barrier(source, s)]
    every = [c for c in descendants(loop.body, "call_expression") if "sync" in called_name(c, source)]
    if len(barriers) != 2 or len(every) != 2 or barriers[1] != len(statements) - 1:
        raise NoMatchError
    return statements[: barriers[0]], statements[barriers[0] + 1 : barriers[1]]


def _is_barrier(source: Source, statement: Node) -> bool:
    return squeezed(source.node_code(statement)) == "__syncthreads();"


def _require_plain(
    source: Source, filling: list[Node], copies: list[Copy], computing: list[Node], loop: CountedLoop
) -> None:
    """Before the first barrier there are copies and declarations alone, and what follows does not need them."""
    copying = [copy.statement for copy in copies]
    declared = {loop.name}
    for statement in filling:
        touching = ("subscript_expression", "pointer_expression", "assignment_expression", "update_expression")
        if statement in copying:
            continue
        if statement.type != "declaration" or any(True for _ in descendants(statement, *touching)):
            raise NoMatchError(
                f"Line {line_of(source, statement)} does more than copy to a tile or declare a variable."
            )
        if "__shared__" in source.node_code(statement):
            raise NoMatchError(f"The tiles are declared in the loop, at line {line_of(source, statement)}.")
        declared |= {declared_name(source, d) for d in statement.children_by_field_name("declarator")}
    for jump in descendants(loop.body, "break_statement", "continue_statement", "return_statement"):
        raise NoMatchError(f"The loop may be left at line {line_of(source, jump)}.")
    own = declared_names(source, *computing)
    for statement in computing:
        for use in descendants(statement, "identifier"):
            name = source.node_text(use)
            if name in declared - own:
                line = line_of(source, use)
                raise NoMatchError(
                    f"What is computed at line {line} depends on `{name}`, which is of the next tile then."
                )
    changed = {name for s in computing for name in changed_names(source, s)} - own
    used = {source.node_text(n) for s in filling for n in descendants(s, "identifier")}
    used |= {source.node_text(n) for n in descendants(loop.bound, "identifier")} | {loop.name}
    if moved := sorted(changed & used):
        raise NoMatchError(f"`{moved[0]}` changes after the tile is filled, and decides what the next is filled with.")
    if not any(s.type in LOOPS or any(True for _ in descendants(s, *LOOPS)) for s in computing):
        raise NoMatchError("Nothing to gain: what is computed with a tile takes less time than its copy.")
    if loop.node.parent is None or loop.node.parent.type != "compound_statement":
        raise NoMatchError(f"There is no line before the loop at line {line_of(source, loop.node)}.")


def _require_known_sources(kernel: Kernel, filling: list[Node], copies: list[Copy]) -> None:
    """What decides about the copies is not in shared memory, which may change meanwhile."""
    shared = {array.name for array in kernel.shared_arrays}
    targets = [(copy.target.start_byte, copy.target.end_byte) for copy in copies]
    for use in (n for statement in filling for n in descendants(statement, "identifier")):
        filled = any(start <= use.start_byte < end for start, end in targets)
        if kernel.source.node_text(use) in shared and not filled:
            raise NoMatchError(f"Line {line_of(kernel.source, use)} reads shared memory to fill a tile.")


def _require_tiles(kernel: Kernel, block: Node, node: Node, tiles: list[str]) -> None:
    """The tiles are the kernel's, used by the loop alone, element by element, and there is room for them twice."""
    source, more = kernel.source, 0
    for tile in tiles:
        array = next(a for a in kernel.shared_arrays if a.name == tile)
        declarator = declarator_of(block, source, tile)
        if array.dynamic or array.bytes is None or declarator is None or declarator.type != "array_declarator":
            raise NoMatchError(f"The size of `{tile}` is not known from the text.")
        if reason := misuse(block, source, tile, len(array.dims), declarator):
            raise NoMatchError(reason)
        for use in names(block, source, tile):
            inside = node.start_byte <= use.start_byte < node.end_byte
            if not inside and not declarator.start_byte <= use.start_byte < declarator.end_byte:
                raise NoMatchError(f"`{tile}` is used outside of the loop, at line {line_of(source, use)}.")
        more += array.bytes
    dynamic = [launch.dynamic_shared_bytes for launch in kernel.launches]
    if kernel.shared_bytes is None or None in dynamic:
        raise NoMatchError(f"How much shared memory {kernel.name} uses is not known from the text.")
    used = kernel.shared_bytes + max((bytes_ or 0 for bytes_ in dynamic), default=0)
    if used + more > SHARED_BYTES:
        raise NoMatchError(f"The block uses {used} bytes of shared memory, and twice the tiles would pass 48 KB.")


def _doubled(block: Node, source: Source, tile: str) -> TextEdit:
    name = declarator_of(block, source, tile)
    while name is not None and name.type == "array_declarator":
        name = name.child_by_field_name("declarator")
    place = name.end_byte if name is not None else 0
    return TextEdit(place, place, "[2]")


def _loop_edit(
    source: Source, block: Node, loop: CountedLoop, parts: tuple[list[Node], list[Copy], list[Node]], stage: str
) -> TextEdit:
    """The loop's text from its bound to its end."""
    filling, copies, computing = parts
    indent, unit = source.line_indent(loop.node.start_byte), indent_unit(source, block)
    inner = source.line_indent(filling[0].start_byte)
    bound = source.node_text(loop.bound)
    step = source.node_text(loop.step) if loop.step is not None else "1"
    plain = loop.bound.type not in ("binary_expression", "conditional_expression")
    plain = plain and not is_macro_of_several(source, loop.bound)
    more = f"{bound} + {step}" if plain else f"({bound}) + {step}"
    within, deep = indent + unit, indent + 2 * unit
    by_copy = {copy.statement.start_byte: copy for copy in copies}
    lines = [f"if ({loop.name} < {bound}) {{"]

    def filled(statement: Node) -> str:
        copy = by_copy.get(statement.start_byte)
        return _asynchronous(source, copy, stage, unit, inner) if copy is not None else source.node_text(statement)

    lines += _between(source, loop.body.start_byte + 1, filling, inner, deep, filled)
    lines += [f"{within}}}", f"{within}__pipeline_commit();", f"{within}if ({loop.name} > 0) {{"]
    lines += [f"{deep}__pipeline_wait_prior(1);", f"{deep}__syncthreads();"]
    tiles = {copy.tile for copy in copies}
    barrier = next(s for s in uncommented(loop.body) if _is_barrier(source, s))
    lines += _between(source, barrier.end_byte, computing, inner, deep, lambda s: _other_half(source, s, tiles, stage))
    last = uncommented(loop.body)[-1]
    comment = source.text(last.end_byte, loop.body.end_byte - 1).strip()
    lines.append(f"{deep}__syncthreads();{' ' if comment else ''}{comment}")
    lines += [f"{within}}}", f"{within}{stage} ^= 1;", f"{indent}}}"]
    head = more + source.text(loop.bound.end_byte, loop.body.start_byte + 1)
    return TextEdit(loop.bound.start_byte, loop.node.end_byte, f"{head}\n{within}" + "\n".join(lines))


def _between(
    source: Source, start: int, statements: list[Node], old: str, new: str, text_of: Callable[[Node], str]
) -> list[str]:
    """Statements with the comments around them, each changed and at another indentation."""
    lines: list[str] = []
    for statement in statements:
        comments = source.text(start, statement.start_byte).strip()
        lines += [new + reindented(comment, old, new) for comment in [comments] if comment]
        lines.append(new + reindented(text_of(statement).rstrip(), old, new))
        start = statement.end_byte
    return lines


def _asynchronous(source: Source, copy: Copy, stage: str, unit: str, indent: str) -> str:
    """The copy as a call, and where a condition decides, the zero that takes its place."""
    place = copy.target
    while place.type == "subscript_expression":
        place = place.child_by_field_name("argument") or place
    target = f"{copy.tile}[{stage}]{source.text(place.end_byte, copy.target.end_byte)}"
    call = f"__pipeline_memcpy_async(&{target}, &{source.node_text(copy.element)}, sizeof({copy.type}));"
    if copy.condition is None:
        return call
    condition = source.node_text(copy.condition)
    test = condition if copy.condition.type == "parenthesized_expression" else f"({condition})"
    return f"if {test}\n{indent}{unit}{call}\n{indent}else\n{indent}{unit}{target} = {copy.zero};"


def _other_half(source: Source, statement: Node, tiles: set[str], stage: str) -> str:
    """A statement that reads the tiles of the step before."""
    start = statement.start_byte
    uses = [n for n in descendants(statement, "identifier") if source.node_text(n) in tiles]
    edits = [TextEdit(n.end_byte - start, n.end_byte - start, f"[{stage} ^ 1]") for n in uses]
    return decoded(apply_edits(source.data[start : statement.end_byte], edits))


def _include(source: Source) -> TextEdit:
    """The header behind the file's last `#include`, or at the file's start."""
    includes = [n for n in source.root.named_children if n.type == "preproc_include"]
    place = includes[-1].end_byte if includes else 0
    on_own_line = not includes or source.data[place - 1 : place] == b"\n"
    text = f"#include <{HEADER}>\n" if on_own_line else f"\n#include <{HEADER}>"
    return TextEdit(place, place, text if includes else f"{text}\n")
