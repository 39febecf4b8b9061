"""Compute a matrix product in tiles of a block, with several rows and columns of the result in each thread's registers.

## Before

```cuda
__global__ void matmul(float *c, const float *a, const float *b, int rows, int columns, int depth) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows && column < columns) {
    float sum = 0.0f;
    for (int k = 0; k < depth; k++) {
      sum += a[row * depth + k] * b[k * columns + column];
    }
    c[row * columns + column] = sum;
  }
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
  __shared__ __align__(16) float a_tile[16][64 + 4];
  __shared__ __align__(16) float b_tile[16][64];
  const int thread = threadIdx.y * blockDim.x + threadIdx.x;
  const int first = thread / 16 * 4;
  const int lane = thread % 16;
  float sums[4][4] = {};
  for (int k_start = 0; k_start < depth; k_start += 16) {
    #pragma unroll
    for (int e = 0; e < 4; e++) {
      const int at = thread + e * 256;
      const int k = k_start + at % 16;
      int row = blockIdx.y * 64 + at / 16;
      a_tile[at % 16][at / 16] = row < rows && k < depth ? a[row * depth + k] : 0.0f;
    }
    #pragma unroll
    for (int e = 0; e < 4; e++) {
      const int at = thread + e * 256;
      const int k = k_start + at / 64;
      int column = blockIdx.x * 64 + at % 64;
      b_tile[at / 64][at % 64] = column < columns && k < depth ? b[k * columns + column] : 0.0f;
    }
    __syncthreads();
    #pragma unroll
    for (int k = 0; k < 16; k++) {
      float a_part[4];
      #pragma unroll
      for (int r = 0; r < 4; r++) a_part[r] = a_tile[k][first + r];
      float b_part[4];
      #pragma unroll
      for (int c2 = 0; c2 < 4; c2++) b_part[c2] = b_tile[k][lane + c2 * 16];
      #pragma unroll
      for (int r = 0; r < 4; r++) {
        #pragma unroll
        for (int c2 = 0; c2 < 4; c2++) sums[r][c2] += a_part[r] * b_part[c2];
      }
    }
    __syncthreads();
  }
  #pragma unroll
  for (int r = 0; r < 4; r++) {
    #pragma unroll
    for (int c2 = 0; c2 < 4; c2++) {
      int row = blockIdx.y * 64 + first + r;
      int column = blockIdx.x * 64 + lane + c2 * 16;
      if (row < rows && column < columns) {
        float sum = sums[r][c2];
        c[row * columns + column] = sum;
      }
    }
  }
}

void run(float *c, const float *a, const float *b, int rows, int columns, int depth) {
  dim3 block(16, 16);
  dim3 grid((columns + 15) / 16, (rows + 15) / 16);
  matmul<<<dim3((grid.x + 3) / 4, (grid.y + 3) / 4), block>>>(c, a, b, rows, columns, depth);
}
```

Instead of their product, the loop may add up another value of the two elements that is 0 for zeros: `fabsf(x - y)`,
`sqrtf(x * y)`, or `d * d` for a `float d = x - y` of its own. Either matrix may be transposed, and threadIdx.x may pick
the row or the column: consecutive lanes take consecutive elements of what they load and store. What a thread has to
do for each of its elements is the kernel's own text, once more where it says what a sum starts at.

## Assumes

- Every launch is found, with a block of 64 to 1024 threads, a power of two a side; the block's extent in y and the
  grid are changed where the launch stands. Elements beyond the old grid find nothing to do: the guard tests each index
  against the number that the grid is made of, or the grid is a multiple of the new tile.
- The thread's place in x and in y is one variable each, and nothing else depends on threadIdx or blockIdx. What stands
  before the loop sets variables. One factor is picked by the one index, the other by the other, and both by the loop's
  variable, which runs from 0. The sum is a variable of the thread.
- The kernel does not write the matrices that it multiplies, and its threads have nothing to do with each other.
- Indices of 32 bits have room for the elements of one tile more.

## Cost

Shared memory for two tiles, registers for the sums, and fewer threads to hide latency with. The order of each sum
stays, so the result is the same bit for bit.
"""

from __future__ import annotations

from tree_sitter import Node

from warpwright.algebra.sums import coefficient, symbols
from warpwright.facts.model import Kernel
from warpwright.rewrites._block_tiles import Plan, product_text
from warpwright.rewrites._code import NoMatchError, host_launches, is_power_of_two, matched, overlaps
from warpwright.rewrites._elements import elements_of, require_covered, require_repeatable
from warpwright.rewrites._guards import Guard, guard_of
from warpwright.rewrites._indices import Indices, indices_of
from warpwright.rewrites._launch_shape import block_divided, grid_divided_by, launches_for_none
from warpwright.rewrites._launched import block_of_all_launches
from warpwright.rewrites._loops import pragmas_before
from warpwright.rewrites._movable import block_by_directive, movable_body
from warpwright.rewrites._products import Product, match_product, require_even, require_unwritten
from warpwright.rewrites._tiles import element_bytes, zero_of
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.nodes import descendants, uncommented
from warpwright.syntax.source import Span

NAME = "tile-matrix-product"
title = "Tile the matrix product in registers"
goals = ("speed",)
relies_on = (Reliance.GRID, Reliance.BLOCK, Reliance.APART, Reliance.SHARED, Reliance.SIZES)

DEPTH = 16
"""Steps of the sum in a tile."""
THREADS = 256
"""Of a block at most: with more, the registers of all threads would not suffice."""
TILES = {256: ((64, 64), (64, 32)), 128: ((64, 64), (32, 32)), 64: ((32, 32),)}
"""By the block's threads, a tile's extents along the stored matrix's rows and down its columns, the better first."""
ENOUGH_BLOCKS, FEWEST_BLOCKS = 128, 32
"""Of a grid that is known: enough to fill an H200 with its 132 multiprocessors; fewer leave most of it idle."""


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
            if isinstance(shape, str):
                return Declined(NAME, shape)
            if by_directive := block_by_directive(kernel):
                return Declined(NAME, by_directive)
            return _rewrite(kernel, block, indices, product)
        except NoMatchError as mismatch:
            reason = str(mismatch) or reason
    return Declined(NAME, reason)


def _rewrite(kernel: Kernel, block: Node, indices: Indices, product: Product) -> Rewrite:
    source, loop = kernel.source, product.loop.node
    guard = matched(guard_of(source, block, loop))
    require_even(indices, product, DEPTH)
    require_unwritten(kernel, product)
    head, tail = _around_loop(kernel, block, product, guard)
    elements = elements_of(kernel, indices, block, head, [loop, *tail])
    require_repeatable(source, [*head, *tail])
    plan = _plan(kernel, indices, product, tail)
    by = (plan.extents["x"] // plan.block[0], plan.extents["y"] // plan.block[1])
    launches = host_launches(kernel)
    require_covered(kernel, indices, guard.conditions, by, launches)
    edits = [product_text(block, product, guard, elements, plan)]
    for launch in launches:
        if launches_for_none(kernel, launch, 0) or launches_for_none(kernel, launch, 1):
            raise NoMatchError(f"The grid at {launch.source} has a block where no element is, which would load some.")
        divided = matched(grid_divided_by(kernel, launch, by))
        edits += divided
        if plan.fewer > 1:
            smaller = matched(block_divided(kernel, launch, "y", plan.fewer))
            edits.append(smaller)
    return Rewrite(NAME, title, source, tuple(edits), _explanation(kernel, product, plan))


def _around_loop(kernel: Kernel, block: Node, product: Product, guard: Guard) -> tuple[list[Node], list[Node]]:
    """The kernel's statements before the loop, and those behind it; what stands in an `if` around it among them."""
    loop = product.loop.node
    source = kernel.source
    skipped = {n.id for n in pragmas_before(source, loop)}
    head: list[Node] = []
    tail: list[Node] = []
    for statement in block.named_children:
        if guard.around is not None and statement == guard.around:
            inner = guard.around.child_by_field_name("consequence")
            within = inner.named_children if inner is not None else []
            head += [n for n in within if n.end_byte <= loop.start_byte]
            tail += [n for n in within if n.start_byte >= loop.end_byte]
        elif statement.end_byte <= loop.start_byte:
            head.append(statement)
        elif statement.start_byte >= loop.end_byte:
            if guard.around is not None and statement.type != "comment":
                line = source.position(statement.start_byte)[0]
                raise NoMatchError(f"Line {line} stands after the `if` around the loop.")
            tail.append(statement)
    head = [n for n in head if n.type != "comment" and n.id not in skipped]
    for statement in head:
        if statement.type != "declaration" and statement not in guard.early:
            line = source.position(statement.start_byte)[0]
            raise NoMatchError(f"Line {line} stands before the loop and does more than declare variables.")
    return head, [n for n in tail if n.type != "comment"]


def _plan(kernel: Kernel, indices: Indices, product: Product, tail: list[Node]) -> Plan:
    x, y, z = indices.block or (0, 0, 0)
    fewer = max(1, x * y // THREADS)
    threads = x * y // fewer
    fits = is_power_of_two(x) and is_power_of_two(y) and z == 1 and threads in TILES and y % fewer == 0
    for load in product.loads:
        zero_of(kernel, load)
    fast = _fast_axis(indices, tail)
    options = [
        extents
        for along, across in TILES.get(threads, ())
        if (extents := {fast: along, "xy"[fast == "x"]: across})["x"] % x == 0 and extents["y"] % y == 0
    ] if fits else []  # fmt: skip
    if not options:
        raise NoMatchError(
            f"The block of {x} x {y} x {z} threads has not 64 to 1024 threads, a power of two a side, that fit a tile."
        )
    counts = [_blocks(kernel, indices, extents) for extents in options]
    best = next((n for n, count in enumerate(counts) if count is None or count >= ENOUGH_BLOCKS), len(options) - 1)
    fewest = counts[best]
    if fewest is not None and fewest < FEWEST_BLOCKS:
        raise NoMatchError(f"Nothing to gain: the grid would have {fewest} blocks, and leave multiprocessors idle.")
    extents = options[best]
    slow = "xy"[fast == "x"]
    lanes = next(n for n in (16, 32, 8) if extents[slow] * n // threads >= 4 and extents[fast] // n >= 2)
    return Plan((x, y), fewer, extents, fast, lanes, DEPTH)


def _blocks(kernel: Kernel, indices: Indices, extents: dict[str, int]) -> int | None:
    """Blocks of the smallest launch with tiles of those extents; None where no grid is known."""
    x, y, _ = indices.block or (1, 1, 1)
    counts = [
        -(-launch.grid[0] * x // extents["x"]) * -(-launch.grid[1] * y // extents["y"]) * (launch.grid[2] or 1)
        for launch in host_launches(kernel)
        if launch.grid[0] is not None and launch.grid[1] is not None
    ]
    return min(counts, default=None)


def _fast_axis(indices: Indices, tail: list[Node]) -> str:
    """The axis of the grid along which the stores behind the loop run over consecutive elements."""
    for statement in tail:
        for assignment in descendants(statement, "assignment_expression"):
            target = assignment.child_by_field_name("left")
            if target is None or target.type != "subscript_expression":
                continue
            subscripts = target.child_by_field_name("indices")
            value = indices.read(uncommented(subscripts)[0]) if subscripts is not None else None
            if value is not None and coefficient(value, "threadIdx.y") == 1 and "threadIdx.x" in symbols(value):
                return "y"
    return "x"


def _explanation(kernel: Kernel, product: Product, plan: Plan) -> str:
    names = " and ".join(dict.fromkeys(load.array for load in product.loads))
    size = sum((element_bytes(load) or 4) * plan.depth * plan.extents[load.axis] for load in product.loads)
    rows, columns = plan.rows, plan.columns
    return (
        f"Each thread of {kernel.name} computed one element and read two numbers from memory for each product. Now a "
        f"block of {plan.threads} threads computes {plan.extents['x']} x {plan.extents['y']} elements: it loads tiles "
        f"of {names}, {plan.depth} steps of {product.loop.name} deep, into shared memory once, and each thread reads "
        f"{rows} + {columns} numbers for {rows * columns} products, whose sums stay in registers. It costs about "
        f"{size} bytes of shared memory and two barriers for {plan.depth} steps; the order of each sum stays."
    )
