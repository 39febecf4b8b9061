"""Stage the tiles of a matrix product in shared memory, so that a block loads each element once.

## Before

```cuda
__global__ void matmul(float *c, const float *a, const float *b, int rows, int columns, int depth) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows || column >= columns) return;
  float sum = 0.0f;
  for (int k = 0; k < depth; k++) {
    sum += a[row * depth + k] * b[k * columns + column];
  }
  c[row * columns + column] = sum;
}

void run(float *c, const float *a, const float *b, int rows, int columns, int depth) {
  dim3 block(16, 16);
  dim3 grid((columns + 15) / 16, (rows + 15) / 16);
  matmul<<<grid, block>>>(c, a, b, rows, columns, depth);
}
```

## After

```cuda
__global__ void matmul(float *c, const float *a, const float *b, int rows, int columns, int depth) {
  __shared__ float a_tile[16][16];
  __shared__ float b_tile[16][16];
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  for (int k_start = 0; k_start < depth; k_start += 16) {
    int a_k = k_start + threadIdx.x;
    int b_k = k_start + threadIdx.y;
    a_tile[threadIdx.y][threadIdx.x] = row < rows && a_k < depth ? a[row * depth + a_k] : 0.0f;
    b_tile[threadIdx.y][threadIdx.x] = column < columns && b_k < depth ? b[b_k * columns + column] : 0.0f;
    __syncthreads();
    for (int k = 0; k < 16; k++) {
      sum += a_tile[threadIdx.y][k] * b_tile[k][threadIdx.x];
    }
    __syncthreads();
  }
  if (row >= rows || column >= columns) return;
  c[row * columns + column] = sum;
}

void run(float *c, const float *a, const float *b, int rows, int columns, int depth) {
  dim3 block(16, 16);
  dim3 grid((columns + 15) / 16, (rows + 15) / 16);
  matmul<<<grid, block>>>(c, a, b, rows, columns, depth);
}
```

Either matrix may be transposed; its tile is then filled along its own rows. Instead of their product, the
loop may add up another value of the two elements that is 0 for zeros: `fabsf(x - y)`, `sqrtf(x * y)`, or `d * d` for
a `float d = x - y` of its own.

## Assumes

- Every launch is found, with a square block of 8 to 32 threads a side, which is the side of the tiles.
- One factor is picked by threadIdx.y, the other by threadIdx.x, and both by the loop's variable, which runs from 0. The
  sum is a variable of the thread.
- The loop stands at the kernel's outermost level, or in one `if` of comparisons; what stands between that and the loop
  only sets variables. All threads of the block come to the barriers then, and those outside of the data add zeros.
- The kernel does not write the matrices that it multiplies.

## Cost

Shared memory for two tiles, and two barriers for each tile. The order of the sum stays, so the result is the same bit
for bit. The block has to keep its shape.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.facts.model import Kernel
from warpwright.rewrites._code import NoMatchError, matched, overlaps
from warpwright.rewrites._guards import Guard, guard_of, loads_nothing, move_guard_behind
from warpwright.rewrites._indices import Indices, constant_named, indices_of
from warpwright.rewrites._launched import block_of_all_launches
from warpwright.rewrites._layout import free_name, indent_unit, reindented
from warpwright.rewrites._limits import SHARED_BYTES
from warpwright.rewrites._loops import pragmas_before
from warpwright.rewrites._movable import block_by_directive, movable_body
from warpwright.rewrites._products import Product, match_product, require_even, require_unwritten
from warpwright.rewrites._tiles import Tile, element_bytes, tile_of, zero_of
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit, apply_edits
from warpwright.syntax.encoding import decoded
from warpwright.syntax.nodes import declared_name, descendants
from warpwright.syntax.source import Source, Span

NAME = "stage-tile-in-shared"
title = "Stage tiles in shared memory"
goals = ("speed",)
relies_on = (Reliance.BLOCK, Reliance.APART, Reliance.SHARED)

SMALLEST, LARGEST = 8, 32
"""Threads along a side of the block; 32 x 32 is the largest square block."""

_SQUARE = re.compile(r"\bdim3\s+\w+\s*[({]\s*([A-Za-z_]\w*)\s*,\s*\1\s*[,)}]")


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = movable_body(kernel)
    shape = block_of_all_launches(kernel)
    indices = indices_of(kernel, None if isinstance(shape, str) else shape)
    reason = "No loop here sums products of two elements of global memory."
    for node in descendants(block, "for_statement"):
        if at is not None and not overlaps(kernel.source.span(node), at):
            continue
        try:
            product = match_product(kernel, indices, node)
            return Declined(NAME, shape) if isinstance(shape, str) else _rewrite(kernel, block, indices, product)
        except NoMatchError as mismatch:
            reason = str(mismatch) or reason
    return Declined(NAME, reason)


def _rewrite(kernel: Kernel, block: Node, indices: Indices, product: Product) -> Rewrite:
    source, loop = kernel.source, product.loop
    side = _side(kernel, indices, product)
    guard = matched(guard_of(source, block, loop.node))
    require_even(indices, product, side)
    _require_movable(kernel, indices, guard, product)
    tiles: list[Tile] = []
    for load in product.loads:
        taken = tuple(name for tile in tiles for name in (tile.name, tile.step))
        tiles.append(tile_of(indices, product, load, guard.conditions, side, taken))
    size = _size(source, block, indices, side)
    if size.isdigit() and (reason := block_by_directive(kernel)):
        raise NoMatchError(reason)
    edits = [
        _declarations(source, block, tiles, size),
        _loop_edit(kernel, block, product, tiles, size, guard),
        *move_guard_behind(source, guard, loop.node),
    ]
    names = " and ".join(dict.fromkeys(load.array for load in product.loads))
    total = sum((element_bytes(t.load) or 4) * side * (side + t.padded) for t in tiles)
    return Rewrite(
        NAME,
        title,
        source,
        tuple(edits),
        f"Every element of {names} that a block needs was loaded by {side} of its threads. Now the block loads tiles "
        f"of {side} x {side} once, and each thread reads them from shared memory: {side} times fewer loads of global "
        f"memory. It costs {total} bytes of shared memory and two barriers for {side} steps of {loop.name}; the block "
        f"has to stay {side} x {side}.",
    )


def _side(kernel: Kernel, indices: Indices, product: Product) -> int:
    """Threads along each side of the block."""
    x, y, z = indices.block or (0, 0, 0)
    if x != y or z != 1 or not SMALLEST <= x <= LARGEST:
        raise NoMatchError(f"The block of {x} x {y} x {z} threads is not a square of {SMALLEST} to {LARGEST} a side.")
    for load in product.loads:
        zero_of(kernel, load)
    dynamic = [launch.dynamic_shared_bytes for launch in kernel.launches]
    if kernel.shared_bytes is None or None in dynamic:
        raise NoMatchError(f"How much shared memory {kernel.name} uses is not known from the text.")
    used = kernel.shared_bytes + max(bytes_ or 0 for bytes_ in dynamic)
    if used + sum((element_bytes(load) or 8) * x * (x + 1) for load in product.loads) > SHARED_BYTES:
        raise NoMatchError(f"The block uses {used} bytes of shared memory, and two tiles would pass 48 KB.")
    return x


def _require_movable(kernel: Kernel, indices: Indices, guard: Guard, product: Product) -> None:
    source, loop = kernel.source, product.loop.node
    pragmas = pragmas_before(source, loop)
    for statement in guard.before:
        if statement not in pragmas and not loads_nothing(source, statement):
            line = source.position(statement.start_byte)[0]
            raise NoMatchError(
                f"Line {line} would run for threads outside of the data too, and does more than set variables."
            )
        for declarator in statement.children_by_field_name("declarator"):
            name = declared_name(source, declarator)
            if guard.around is not None and name not in indices.variables.types:
                raise NoMatchError(f"`{name}` is declared more than once in {kernel.name}.")
    require_unwritten(kernel, product)


def _size(source: Source, block: Node, indices: Indices, side: int) -> str:
    """How the file calls the block's side: a constant of the kernel or of a dim3, else the number."""
    used = [source.node_text(use) for use in descendants(block, "identifier")]
    squares: list[str] = _SQUARE.findall(source.code_text())
    return constant_named(indices, block, used + squares, side) or str(side)


def _declarations(source: Source, block: Node, tiles: list[Tile], size: str) -> TextEdit:
    first = block.named_children[0]
    indent = source.line_indent(first.start_byte)
    lines = (
        f"__shared__ {t.load.element_type} {t.name}[{size}][{size}{' + 1' if t.padded else ''}];\n{indent}"
        for t in tiles
    )
    return TextEdit(first.start_byte, first.start_byte, "".join(lines))


def _loop_edit(kernel: Kernel, block: Node, product: Product, tiles: list[Tile], size: str, guard: Guard) -> TextEdit:
    """The loop over tiles, with the loop over the steps of a tile inside, in place of the loop."""
    source, loop = kernel.source, product.loop
    start = next((p.start_byte for p in pragmas_before(source, loop.node)), loop.node.start_byte)
    indent = source.line_indent((guard.around or loop.node).start_byte)
    within = indent + indent_unit(source, block)
    first = free_name(source.code_text(), f"{loop.name}_start")
    bound = source.node_text(loop.bound)
    lines = [f"for ({loop.type} {first} = 0; {first} < {bound}; {first} += {size}) {{"]
    lines += [f"{within}{loop.type} {t.step} = {first} + threadIdx.{t.step_axis};" for t in tiles]
    lines += [f"{within}{t.before}" for t in tiles if t.before]
    lines += [f"{within}{t.name}[threadIdx.y][threadIdx.x] = {t.fill};" for t in tiles]
    edits = [TextEdit(n.start_byte - start, n.end_byte - start, t.read) for t in tiles for n in t.load.nodes]
    edits.append(TextEdit(loop.bound.start_byte - start, loop.bound.end_byte - start, size))
    inner = decoded(apply_edits(source.data[start : loop.node.end_byte], edits))
    inner = reindented(inner, source.line_indent(loop.node.start_byte), within)
    lines += [f"{within}__syncthreads();", f"{within}{inner}", f"{within}__syncthreads();", f"{indent}}}"]
    return TextEdit(start, loop.node.end_byte, "\n".join(lines))
