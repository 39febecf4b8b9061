"""Put the threads of blocks that have one thread each into blocks of whole warps.

## Before

```cuda
__global__ void midpoints(float *out, const float *a, const float *b, int n) {
  int i = blockIdx.x;
  if (i < n)
    out[i] = 0.5f * (a[i] + b[i]);
}

void run(float *out, const float *a, const float *b, int n) {
  midpoints<<<n, 1>>>(out, a, b, n);
}
```

```cuda
__global__ void spread(float *lengths, const float *ends, int count) {
  float2 end = reinterpret_cast<const float2 *>(ends)[blockIdx.x];
  lengths[blockIdx.x] = fabsf(end.y - end.x);
}

void run(float *lengths, const float *ends, int count) {
  spread<<<count, 1>>>(lengths, ends, count);
}
```

## After

```cuda
__global__ void midpoints(float *out, const float *a, const float *b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = 0.5f * (a[i] + b[i]);
}

void run(float *out, const float *a, const float *b, int n) {
  midpoints<<<(n + 255) / 256, 256>>>(out, a, b, n);
}
```

```cuda
__global__ void spread(float *lengths, const float *ends, int count) {
  if (blockIdx.x * blockDim.x + threadIdx.x >= count)
    return;
  float2 end = reinterpret_cast<const float2 *>(ends)[blockIdx.x * blockDim.x + threadIdx.x];
  lengths[blockIdx.x * blockDim.x + threadIdx.x] = fabsf(end.y - end.x);
}

void run(float *lengths, const float *ends, int count) {
  spread<<<(count + 255) / 256, 256>>>(lengths, ends, count);
}
```

## Assumes

- Every launch is in this file, with blocks of one thread. The number of blocks is an argument of the kernel, or the
  kernel tests the block's index against one that is no larger: threads beyond it do nothing. Where neither is so, the
  kernel gets a parameter more, which each launch hands over.
- Blocks have nothing to do with each other beyond atomics. There are no shared memory, barriers, warp functions or
  other uses of `threadIdx`, `blockDim` and `gridDim`, and no loops of more than a few steps: a thread that goes over
  much memory alone is no faster in a warp whose lanes each go over their own.

## Cost

Lanes of a warp go through both sides of a branch where they differ. A grid that is known to have few blocks is left
alone: all of them run at once already. Results stay the same bit for bit, apart from the order of atomic additions.
"""

from __future__ import annotations

import re
from math import prod

from tree_sitter import Node

from warpwright.algebra.trials import Values, holds
from warpwright.facts.lifts import Footprint
from warpwright.facts.model import WARP, Kernel, Launch
from warpwright.rewrites._added_parameter import added_size
from warpwright.rewrites._code import NoMatchError, body, in_macro, macros_of, matched, naming
from warpwright.rewrites._elementwise import match_elements
from warpwright.rewrites._formulas import formula, same
from warpwright.rewrites._grids import arguments_of, call_of, divided_along, grid_formula, launches_along_x, uncovered
from warpwright.rewrites._guards import loads_nothing
from warpwright.rewrites._indices import indices_of
from warpwright.rewrites._launch_shape import extents_of
from warpwright.rewrites._layout import before_statement, indent_unit, line_of
from warpwright.rewrites._linear_threads import BLOCK, SIZE, THREAD, is_thread_number
from warpwright.rewrites._short_loops import is_short
from warpwright.rewrites._thread_numbers import NUMBER, calls_by_number
from warpwright.rewrites._threads import TIES
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import LOOPS, descendants, launch_configuration, uncommented
from warpwright.syntax.source import Span

NAME = "fill-warps"
title = "Merge one-thread blocks into warps"
goals = ("speed",)
relies_on = (Reliance.GRID, Reliance.BLOCK, Reliance.PARAMETERS)

THREADS = 256
"""In a block: with fewer, the blocks of a kernel that does little take longer to start than to run."""
FEWEST_BLOCKS = 4096
"""Of a grid that is known: some 132 multiprocessors run as many one-thread blocks at once."""
_NUMBER_OF_THREAD = f"{BLOCK} * {SIZE} + {THREAD}"


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    return _filled(kernel)


def _filled(kernel: Kernel) -> Rewrite:
    source, block = kernel.source, body(kernel)
    if block is None or kernel.node is None or kernel.node.has_error or in_macro(kernel.node):
        raise NoMatchError(f"The body of {kernel.name} is not plain text of this file.")
    launches = _launches(kernel)
    _require_independent(kernel, block)
    edits = _numbers(kernel, block)
    edits += _guard(kernel, block, launches)
    for launch in launches:
        edits += _launched(kernel, launch)
    held = Footprint(kernel.arch, 0, 0, 1).occupancy.blocks
    return Rewrite(
        rewrite=NAME,
        title=f"Merge {THREADS} one-thread blocks into warps",
        source=source,
        edits=tuple(edits),
        explanation=(
            f"A block of one thread takes a whole warp, of whose {WARP} lanes {WARP - 1} stay idle, and a "
            f"multiprocessor holds {held} blocks at most: {held} threads at a time. In blocks of {THREADS} all lanes "
            "work, consecutive lanes share their requests to memory, there are as many threads at once as the "
            "multiprocessor holds, and fewer blocks have to start, of which an H200 was measured to start some 1.6 in "
            "a nanosecond."
        ),
    )


def _launches(kernel: Kernel) -> list[Launch]:
    launches = matched(launches_along_x(kernel))
    for launch in launches:
        if launch.block[0] != 1:
            raise NoMatchError(f"Nothing to gain: the blocks at {launch.source} have {launch.block[0]} threads.")
        if launch.dynamic_shared_bytes != 0:
            raise NoMatchError(f"{kernel.name} is launched with dynamic shared memory.")
        blocks = None if None in launch.grid else prod(extent or 0 for extent in launch.grid)
        if blocks is not None and blocks < FEWEST_BLOCKS:
            raise NoMatchError(
                f"Nothing to gain: a GPU runs the {blocks} one-thread blocks of the launch at {launch.source} at once."
            )
    return launches


def _require_independent(kernel: Kernel, block: Node) -> None:
    source, text = kernel.source, kernel.source.node_code(block)
    found = TIES.search(text)
    if kernel.shared_arrays or kernel.barriers or found:
        tie = f"`{found.group()}`" if found else "shared memory or barriers"
        raise NoMatchError(f"{kernel.name} uses {tie}, so its blocks are not plain threads.")
    if "__launch_bounds__" in source.code_text(kernel.span.start, block.start_byte):
        raise NoMatchError(f"{kernel.name} is compiled for blocks of a size that its __launch_bounds__ gives.")
    words = set(re.findall(r"[A-Za-z_]\w*", text))
    for macro in naming(macros_of(kernel), NUMBER):
        if macro in words:
            raise NoMatchError(f"The macro {macro} reads the block's index.")
    if reason := calls_by_number(kernel, block):
        raise NoMatchError(reason)
    indices, span = indices_of(kernel, None), kernel.span
    for loop in descendants(block, *LOOPS):
        if not is_short(indices, loop):
            raise NoMatchError(
                f"Nothing to gain: the time of a thread goes into its loop at line {line_of(source, loop)}."
            )
    for access in kernel.accesses:
        own = access.span.path == span.path and span.start <= access.span.start <= span.end
        if access.in_loop and not own:
            raise NoMatchError(
                f"Nothing to gain: the time of a thread goes into a loop around `{access.span.one_line}`."
            )


def _numbers(kernel: Kernel, block: Node) -> list[TextEdit]:
    """The thread's index in the grid wherever the block's index alone stood for it."""
    source = kernel.source
    whole = [n for n in descendants(block, "binary_expression") if _is_number(kernel, n)]
    edits: list[TextEdit] = []
    used = bool(whole)
    for use in descendants(block, "identifier"):
        name, member = source.node_text(use), use.parent
        if not NUMBER.fullmatch(name):
            continue
        text = re.sub(r"\s", "", source.node_text(member)) if member is not None else ""
        if member is None or member.type != "field_expression":
            raise NoMatchError(f"`{name}` is used as a whole at line {line_of(source, use)}.")
        if any(n.start_byte <= use.start_byte < n.end_byte for n in whole) or text in ("blockIdx.y", "blockIdx.z"):
            continue
        if text != BLOCK:
            raise NoMatchError(f"`{text}` is used for itself at line {line_of(source, use)}.")
        alone = member.parent is not None and member.parent.type in (
            "init_declarator", "subscript_argument_list", "argument_list", "parenthesized_expression"
        )  # fmt: skip
        edits.append(
            TextEdit(member.start_byte, member.end_byte, _NUMBER_OF_THREAD if alone else f"({_NUMBER_OF_THREAD})")
        )
        used = True
    if not used:
        raise NoMatchError(f"{kernel.name} does not use blockIdx.x.")
    return edits


def _is_number(kernel: Kernel, node: Node) -> bool:
    """Whether an expression is the thread's index in the grid."""
    number = formula(kernel.source, node)
    return number is not None and is_thread_number(number)


def _guard(kernel: Kernel, block: Node, launches: list[Launch]) -> list[TextEdit]:
    """What keeps threads beyond the old grid from working: nothing new where the kernel tests its number before."""
    source = kernel.source
    elements = match_elements(kernel)
    if not isinstance(elements, str):
        number = formula(source, elements.initial)
        by_block = number is not None and number.symbols <= {BLOCK, SIZE, THREAD} and BLOCK in number.symbols

        def is_block(values: Values) -> bool:
            return number is not None and number.value({**values, SIZE: 1, THREAD: 0}) == values[BLOCK]

        plain = all(
            s.type == "declaration"
            and loads_nothing(source, s)
            and not any(True for _ in descendants(s, "update_expression", "assignment_expression"))
            for s in elements.before
        )
        tested = by_block and plain and holds(is_block, frozenset({BLOCK}))
        if tested and not any(uncovered(kernel, launch, elements.bound) for launch in launches):
            return []
    bound = _count(kernel, launches)
    added: tuple[TextEdit, ...] = ()
    if bound is None:
        size = matched(added_size(kernel))
        bound, added = size.name, size.edits
    unit, statements = indent_unit(source, block), uncommented(block)
    leave = [f"if ({_NUMBER_OF_THREAD} >= {bound})", f"{unit}return;"]
    return [*added, before_statement(source, statements[0], leave)]


def _count(kernel: Kernel, launches: list[Launch]) -> str | None:
    """The parameter that holds the number of blocks in x at every launch."""
    variables = indices_of(kernel, None).variables
    for parameter in kernel.parameters:
        fractional = re.search(r"\b(?:float|double|half|bool)\b", parameter.type)
        if parameter.is_pointer or fractional or not variables.is_fixed(parameter.name):
            continue
        found = True
        for launch in launches:
            grid, given = grid_formula(kernel.source, launch), arguments_of(kernel, launch).get(parameter.name)
            found = found and grid is not None and given is not None and same(grid, given)
        if found:
            return parameter.name
    return None


def _launched(kernel: Kernel, launch: Launch) -> list[TextEdit]:
    source, call = kernel.source, call_of(launch)
    configuration = uncommented(launch_configuration(call)) if call is not None else []
    grid = divided_along(source, launch, "x", THREADS)
    if isinstance(grid, str) or len(configuration) < 2:
        raise NoMatchError(grid if isinstance(grid, str) else f"The launch at {launch.source} is in a macro.")
    block = configuration[1]
    extents = extents_of(source, block)
    place = extents[0] if extents else block
    return [grid, TextEdit(place.start_byte, place.end_byte, str(THREADS))]
