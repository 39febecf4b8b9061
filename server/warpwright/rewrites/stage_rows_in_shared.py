"""Pass the rows along which the threads of a warp walk through a tile of shared memory, a few columns at a time.

## Before

```cuda
constexpr int columns = 64;

__global__ void smooth(float *out, const float *in, float factor, int rows) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  float last = 0.0f;
  for (int c = 0; c < columns; c++) {
    last += factor * (in[row * columns + c] - last);
    out[row * columns + c] = last;
  }
}

void run(float *out, const float *in, int rows) {
  smooth<<<(rows + 127) / 128, 128>>>(out, in, 0.5f, rows);
}
```

## After

```cuda
constexpr int columns = 64;

__global__ void smooth(float *out, const float *in, float factor, int rows) {
  __shared__ float in_tile[4][32][33];
  __shared__ float out_tile[4][32][33];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned int active = __ballot_sync(0xffffffff, row < rows);
  if (row >= rows)
    return;
  float last = 0.0f;
  for (int first = 0; first < columns; first += 32) {
    __syncwarp(active);
    if (active == 0xffffffff) {
      #pragma unroll
      for (int other = 0; other < 32; other++) {
        const int column = first + lane;
        const auto start = __shfl_sync(0xffffffff, row * columns, other);
        if (column < columns)
          in_tile[warp][other][lane] = in[start + column];
      }
    } else {
      for (int c = first; c < columns && c < first + 32; c++)
        in_tile[warp][lane][c - first] = in[row * columns + c];
    }
    __syncwarp(active);
    for (int c = first; c < columns && c < first + 32; c++) {
      last += factor * (in_tile[warp][lane][c - first] - last);
      out_tile[warp][lane][c - first] = last;
    }
    __syncwarp(active);
    if (active == 0xffffffff) {
      #pragma unroll
      for (int other = 0; other < 32; other++) {
        const int column = first + lane;
        const auto start = __shfl_sync(0xffffffff, row * columns, other);
        if (column < columns)
          out[start + column] = out_tile[warp][other][lane];
      }
    } else {
      for (int c = first; c < columns && c < first + 32; c++)
        out[row * columns + c] = out_tile[warp][lane][c - first];
    }
  }
}

void run(float *out, const float *in, int rows) {
  smooth<<<(rows + 127) / 128, 128>>>(out, in, 0.5f, rows);
}
```

Each thread does its row as before, in the same order. Rows that start or end elsewhere for each thread go the same way,
until none of the warp's rows has an element left.

## Assumes

- Each iteration loads the element, or stores it; where some iterations alone store it, it is loaded before.
- All lanes of a warp come to the loop, but those that one comparison keeps away, and the loop has no early end.
- What is stored along rows is used nowhere else in the kernel, and what is loaded is stored nowhere.
- All launches have one-dimensional blocks of one known size, whole warps; of a kernel in a header, those found.
- Arrays that are handed to different parameters do not overlap, nor do rows that are stored. Indices have room for a
  tile's columns more.

## Cost

Shared memory for 32 columns of each thread's rows, or for 16 or 8 where that is too much, and the tile's copies. Where
few warps run at a time, they have nothing else to do while a tile fills. The size of the block is written into the
kernel. Results stay the same bit for bit.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from warpwright.cuda.linkage import is_header
from warpwright.facts.aliasing import loop_around
from warpwright.facts.model import WARP, Access, Dim3, Kernel, Space
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import NoMatchError, body, matched, overlaps
from warpwright.rewrites._gain import edited_kernel
from warpwright.rewrites._indices import Indices, indices_of
from warpwright.rewrites._launched import block_in_sight
from warpwright.rewrites._layout import free_name, indent_unit, line_of, reindented
from warpwright.rewrites._limits import SHARED_BYTES
from warpwright.rewrites._loops import pragmas_before
from warpwright.rewrites._movable import block_by_directive, unmovable
from warpwright.rewrites._row_tile_copies import ALL, Words, copied, header_end
from warpwright.rewrites._row_walks import Piece, RowWalk, condition_before, require_own_rows, row_walk, walking
from warpwright.rewrites._shared_types import element_type
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit, apply_edits
from warpwright.syntax.encoding import decoded
from warpwright.syntax.nodes import ancestors, node_at
from warpwright.syntax.source import Span

NAME = "stage-rows-in-shared"
title = "Stage rows in shared memory"
goals = ("speed",)
relies_on = (Reliance.BLOCK, Reliance.APART, Reliance.SHARED, Reliance.SIZES)

STRIDED = 4.0
"""Sectors for each one needed from which the lanes are taken to be in rows of their own."""
FEWEST = 8
"""Elements of a row from which a tile is worth its copies: 8 floats fill a sector."""
COLUMNS = (32, 16, 8)
"""Columns of a tile, the first that fit: with one more than these each lane has a bank of its own."""


_NEW_NAMES = ("lane", "warp", "active", "first", "i", "other", "start", "column", "limit", "end")


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    if reason := unmovable(kernel):
        return Declined(NAME, reason)
    found = walking(kernel, STRIDED, FEWEST)
    if not [a for a in found if at is None or overlaps(a.span, at)]:
        return Declined(NAME, "Nothing to gain: no loop here is known to walk a row of its own in each lane.")
    return _staged(kernel, found)


def _staged(kernel: Kernel, found: list[Access]) -> Rewrite:
    source, block = kernel.source, body(kernel)
    shape = matched(block_in_sight(kernel))
    if reason := block_by_directive(kernel):
        raise NoMatchError(reason)
    if block is None or shape[1:] != (1, 1) or shape[0] % WARP:
        sides = " x ".join(map(str, shape))
        raise NoMatchError(f"A block of {sides} threads is not one row of whole warps.")
    indices = indices_of(kernel, shape)
    walks, columns = _fitting(indices, _walks(indices, found), found, shape)
    condition, guard = condition_before(kernel, block, [walk.node for walk in walks])
    require_own_rows(kernel, block, walks)
    tiles = _tiles(kernel, walks, shape, columns)
    words = _words(kernel, guard is None)
    unit = indent_unit(source, block)
    opening = block.named_children[0]
    inside = source.line_indent(opening.start_byte)
    lines = [*tiles, f"const int {words.lane} = threadIdx.x % 32, {words.warp} = threadIdx.x / 32;"]
    edits = [TextEdit(opening.start_byte, opening.start_byte, "".join(f"{line}\n{inside}" for line in lines))]
    if guard is not None:
        line = f"const unsigned int {words.active} = __ballot_sync(0xffffffff, {condition});"
        indent = source.line_indent(guard.start_byte)
        edits.append(TextEdit(guard.start_byte, guard.start_byte, f"{line}\n{indent}"))
    edits += [_walk_edit(indices, walk, words, unit, columns) for walk in walks]
    edited = edited_kernel(kernel, edits)
    arrays = list(dict.fromkeys(p.array for walk in walks for p in walk.pieces))
    before, after = _sectors(kernel, arrays), _sectors(edited, arrays) if edited is not None else None
    if before is None or after is None or after * 2 > before:
        raise NoMatchError("Nothing to gain: tiles are not known to move fewer sectors.")
    everywhere = ""
    if is_header(source):
        everywhere = f" {kernel.name} stands in a header: every launch of it has to have blocks of {shape[0]} threads."
    got = max(a.sectors_per_request or 0.0 for a in found)
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=source,
        edits=tuple(edits),
        explanation=(
            f"Each lane walked along a row of its own in {' and '.join(arrays)}, so a request touched up to {got:g} "
            f"sectors. Now the lanes of a warp copy {columns} columns of their rows at a time, as many neighbours at "
            "once as a tile is wide, and each thread takes its elements from the tile, in the same order as before. It "
            f"costs the tile and two `__syncwarp()` per tile.{everywhere}"
        ),
        safe=not everywhere,
    )


def _sectors(kernel: Kernel, arrays: Collection[str]) -> float | None:
    """Sectors of the arrays that the requests of whole warps touch; None where one is not known."""
    made = [a for a in kernel.accesses if a.space is Space.GLOBAL and a.launch == 0 and a.array in arrays]
    made = [a for a in made if not a.joined]
    whole = [a for a in made if not _is_of_partial_warps(a)]
    counts = [a.sectors_per_request * a.requests for a in whole if a.sectors_per_request is not None]
    return sum(counts) if len(counts) == len(whole) else None


def _is_of_partial_warps(access: Access) -> bool:
    """Whether it stands in the `else` of a test for all lanes."""
    source = access.span.source
    node = node_at(source.root, access.span.start, access.span.end)
    sides = [n.parent for n in ancestors(node) if n.type == "else_clause"] if node is not None else []
    tests = [side.child_by_field_name("condition") for side in sides if side is not None]
    return any(test is not None and f"== {ALL}" in source.node_text(test) for test in tests)


def _walks(indices: Indices, found: list[Access]) -> list[RowWalk]:
    """The loops around the accesses, each with the pieces that these are of."""
    source = indices.kernel.source
    walks: dict[int, RowWalk] = {}
    refusal = NoMatchError("No loop here walks along a row.")
    for access in found:
        node = loop_around(access.span)
        if node is None or node.start_byte in walks:
            continue
        try:
            walk = row_walk(indices, node, {a.array for a in found if a.array is not None})
            if node.parent is None or node.parent.type != "compound_statement":
                raise NoMatchError(f"The loop at line {line_of(source, node)} stands in no braces.")
        except NoMatchError as unfit:
            refusal = unfit
            continue
        starts = {a.span.start for a in found}
        pieces = tuple(p for p in walk.pieces if any(use.start_byte in starts for use in p.uses))
        if pieces:
            walks[node.start_byte] = replace(walk, pieces=pieces)
    loops = [walks[start] for start in sorted(walks)]
    if not loops:
        raise refusal
    return [w for w in loops if not any(o.node.start_byte < w.node.start_byte < o.node.end_byte for o in loops)]


def _fitting(indices: Indices, walks: list[RowWalk], found: list[Access], shape: Dim3) -> tuple[list[RowWalk], int]:
    """The loops, or where their tiles are too large the one that asks for most, with as many of its arrays as fit, what
    is stored first; and the columns of a tile."""
    kernel = indices.kernel
    used = sum(array.bytes or 0 for array in kernel.shared_arrays)

    def requests(walk: RowWalk) -> int:
        inside = [a for a in found if walk.node.start_byte <= a.span.start < walk.node.end_byte]
        return sum(access.requests for access in inside)

    dearest = max(walks, key=requests)
    by_use = sorted(dearest.pieces, key=lambda piece: not piece.stores)
    parts = [replace(dearest, pieces=tuple(by_use[:count])) for count in range(len(by_use), 0, -1)]
    least = 0
    for chosen in (walks, *([part] for part in parts)):
        width = sum(_element_bytes(kernel, array) for array in _tile_names(kernel, chosen).values())
        longest = max(_length(indices, walk) for walk in chosen)
        for columns in (c for c in COLUMNS if c < 2 * longest or c == COLUMNS[-1]):
            least = shape[0] * (columns + 1) * width
            if least + used <= SHARED_BYTES:
                return chosen, columns
    raise NoMatchError(f"A tile of {least} bytes for {shape[0]} threads does not fit into 48 KB of shared memory.")


def _length(indices: Indices, walk: RowWalk) -> int:
    """The elements of a row where they are known, else as many as no tile has."""
    start, bound = indices.number(walk.start), indices.number(walk.bound)
    return bound - start if start is not None and bound is not None else 2 * COLUMNS[0]


def _tile_names(kernel: Kernel, walks: list[RowWalk]) -> dict[str, str]:
    """The array of each tile."""
    return {name: piece.array for walk in walks for piece, name in _named(kernel, walk)}


def _tiles(kernel: Kernel, walks: list[RowWalk], shape: Dim3, columns: int) -> list[str]:
    """The declaration of a tile for each array, or for several rows of it."""
    names = _tile_names(kernel, walks).items()
    dims = f"[{shape[0] // WARP}][32][{columns + 1}]"
    return [f"__shared__ {_element_type(kernel, array)} {name}{dims};" for name, array in names]


def _named(kernel: Kernel, walk: RowWalk) -> list[tuple[Piece, str]]:
    """Each piece with the name of its tile."""
    text, counts = kernel.span.code, dict[str, int]()
    found: list[tuple[Piece, str]] = []
    for piece in walk.pieces:
        counts[piece.array] = counts.get(piece.array, 0) + 1
        number = counts[piece.array]
        found.append((piece, free_name(text, f"{piece.array}_tile" + (f"_{number}" if number > 1 else ""))))
    return found


def _element_type(kernel: Kernel, array: str) -> str:
    """The type of an array's elements as it is written, which is that of a number."""
    kind = element_type(kernel, array)
    known = {a.type for a in kernel.accesses if a.array == array}
    if not all(builtin_type(name) is not None for name in known):
        raise NoMatchError(f"`{array}` holds {kind}, which may not be put into shared memory as it is.")
    return kind


def _element_bytes(kernel: Kernel, array: str) -> int:
    return next(p.element_bytes or 8 for p in kernel.parameters if p.name == array)


def _words(kernel: Kernel, is_all: bool) -> Words:
    text = kernel.span.code
    given = [free_name(text, word) for word in _NEW_NAMES]
    words = Words(*given)
    return replace(words, active=ALL) if is_all else words


def _walk_edit(indices: Indices, walk: RowWalk, words: Words, unit: str, columns: int) -> TextEdit:
    """The loop with one around it that goes from tile to tile."""
    source, w, first = indices.kernel.source, words, words.first
    bound, start = source.node_text(walk.bound), source.node_text(walk.start)
    at = min([walk.node.start_byte, *(p.start_byte for p in pragmas_before(source, walk.node))])
    indent = source.line_indent(walk.node.start_byte)
    lines = [f"for ({walk.type} {first} = {start}; {first} < {bound}; {first} += {columns}) {{"]
    if not walk.even:
        bound = w.end
        goes_on = f"__any_sync({w.active}, {first} < {bound})"
        lines = [
            f"const {walk.type} {bound} = {source.node_text(walk.bound)};",
            f"for ({walk.type} {first} = {start}; {goes_on}; {first} += {columns}) {{",
        ]
    named = _named(indices.kernel, walk)
    counts = f"{walk.step} = {first}; {walk.step} < {bound} && {walk.step} < {first} + {columns}; {walk.update}"
    header = f"for ({walk.type + ' ' if walk.declares else ''}{counts})"
    before = copied(indices, walk, [p for p in named if p[0].loads], w, header, unit, columns, loads=True)
    behind = copied(indices, walk, [p for p in named if p[0].stores], w, header, unit, columns, loads=False)
    before = [f"__syncwarp({w.active});", *before, *([f"__syncwarp({w.active});"] if before else [])]
    behind = [f"__syncwarp({w.active});", *behind] if behind else []
    uses = [
        TextEdit(use.start_byte, use.end_byte, f"{tile}[{w.warp}][{w.lane}][{walk.step} - {first}]")
        for piece, tile in named
        for use in piece.uses
    ]
    work = decoded(apply_edits(source.data[: walk.body.end_byte], uses)[walk.body.start_byte :])
    pragmas = source.text(at, walk.node.start_byte)
    header += source.text(header_end(walk), walk.body.start_byte)
    text = reindented(f"{pragmas}{header}{work}", indent, indent + unit)
    above = [*lines, *(unit + line for line in before)]
    new = "".join(f"{line}\n{indent}" for line in above) + unit + text
    new += "".join(f"\n{indent}{unit}{line}" for line in behind) + f"\n{indent}}}"
    return TextEdit(at, walk.node.end_byte, indent.removeprefix(source.line_indent(at)) + new)
