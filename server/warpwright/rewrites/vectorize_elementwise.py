"""Let each thread move four consecutive elements as one `float4`.

## Before

```cuda
__global__ void scale(float *out, const float *in, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = factor * in[i];
}

void run(float *out, const float *in, int n) {
  scale<<<(n + 255) / 256, 256>>>(out, in, 2.0f, n);
}
```

```cuda
__global__ void softplus(float *y, const float *x, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
    y[i] = log1pf(expf(x[i]));
  }
}

void run(float *y, const float *x, int n) {
  softplus<<<32, 256>>>(y, x, n);
}
```

## After

```cuda
__global__ void scale(float *out, const float *in, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  const bool aligned = (reinterpret_cast<size_t>(out) | reinterpret_cast<size_t>(in)) % 16 == 0;
  const auto vectors = aligned ? n / 4 : 0;
  if (i < vectors) {
    alignas(16) float out_values[4];
    alignas(16) float in_values[4];
    *reinterpret_cast<float4 *>(in_values) = reinterpret_cast<const float4 *>(in)[i];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      out_values[k] = factor * in_values[k];
    }
    reinterpret_cast<float4 *>(out)[i] = *reinterpret_cast<const float4 *>(out_values);
  }
  for (i += 4 * vectors; i < n; i += blockDim.x * gridDim.x)
    out[i] = factor * in[i];
}

void run(float *out, const float *in, int n) {
  scale<<<((n + 255) / 256 + 3) / 4, 256>>>(out, in, 2.0f, n);
}
```

```cuda
__global__ void softplus(float *y, const float *x, int n) {
  const bool aligned = (reinterpret_cast<size_t>(y) | reinterpret_cast<size_t>(x)) % 16 == 0;
  const auto vectors = aligned ? n / 4 : 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += blockDim.x * gridDim.x) {
    alignas(16) float y_values[4];
    alignas(16) float x_values[4];
    *reinterpret_cast<float4 *>(x_values) = reinterpret_cast<const float4 *>(x)[i];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      y_values[k] = log1pf(expf(x_values[k]));
    }
    reinterpret_cast<float4 *>(y)[i] = *reinterpret_cast<const float4 *>(y_values);
  }
  for (int i = 4 * vectors + blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
    y[i] = log1pf(expf(x[i]));
  }
}

void run(float *y, const float *x, int n) {
  softplus<<<32, 256>>>(y, x, n);
}
```

A `double` goes in pairs, as `double2`; `__half`, `__nv_bfloat16` and other elements of two bytes or one go by eights.
Elements of a template's type, or of one that has a name of the user's, are moved as an aligned structure of some of
them. The arrays of values are registers once the loop is unrolled.

## Assumes

- The kernel does the same to each element below a bound, and works on element i of its arrays alone: what is read or
  written elsewhere, in another order or only under a condition is left as it is or refused.
- All launches are in this file, with one-dimensional blocks and a grid that is seen to cover the bound. Where the
  threads walk over all elements by the size of the grid, any launch in this file will do, and a grid that covers the
  bound is made smaller.
- Five quarters of the bound (three halves for pairs) stay under the largest value of the index's type: 1.7 billion
  elements for an `int`.
- An array of which data decide whether an element is read has all elements below the bound. Where they decide whether
  one is changed, nothing else changes it meanwhile.
- Nothing of the pointers: an address that is off by an element is seen at run time, and its elements go one by one.

## Cost

Registers for four elements, and a quarter of the threads: a launch that hardly fills the GPU gets slower. The work
stands in the text twice. Results stay the same bit for bit.
"""

from __future__ import annotations

from warpwright.facts.aliasing import known_overlaps, restricted
from warpwright.facts.model import AccessKind, Basis, Kernel, Space
from warpwright.rewrites._code import host_launches, overlaps
from warpwright.rewrites._element_arrays import ElementArray, element_array
from warpwright.rewrites._elementwise import Elements, match_elements, not_by_element, not_the_thread
from warpwright.rewrites._grids import divided, grid_formula, launches_in_sight, launches_of_flat_blocks, uncovered
from warpwright.rewrites._indices import indices_of
from warpwright.rewrites._short_loops import is_short
from warpwright.rewrites._strided import match_strided, not_all_elements
from warpwright.rewrites._vector_text import vector_edits
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import LOOPS, descendants
from warpwright.syntax.source import Span

NAME = "vectorize-elementwise"
title = "Vectorize the element accesses"
goals = ("speed",)
relies_on = (Reliance.GRID, Reliance.SIZES)

WIDEST = 16
"""Bytes that one lane can load or store at once (CUDA C++ Programming Guide, "Device Memory Accesses")."""
MOST = 8
"""Elements of one thread: more of one byte each would only cost registers."""
FEW_ADDRESSES = 4.0
"""Different addresses in a request for one of which it makes no difference where the lanes lie."""
FEW_THREADS = 64 * 2048
"""Threads that some 64 multiprocessors hold at once: a launch of no more has none to give away."""


class _RefusedError(Exception):
    """The message is the reason for the user."""


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    elements = match_strided(kernel) or match_elements(kernel)
    if isinstance(elements, str):
        return Declined(NAME, elements)
    source = kernel.source
    if at is not None and not any(overlaps(source.span(statement), at) for statement in elements.work):
        return Declined(NAME, "The marked code is not the work on one element.")
    try:
        return _vectorized(kernel, elements)
    except _RefusedError as refused:
        return Declined(NAME, str(refused))


def _vectorized(kernel: Kernel, elements: Elements) -> Rewrite:
    source = kernel.source
    for statement in elements.before:
        if statement.type != "declaration" or "__shared__" in source.node_code(statement):
            line = source.position(statement.start_byte)[0]
            raise _RefusedError(f"Line {line} prepares something for the block, which is left as it is.")
    for loop in (n for statement in elements.work for n in descendants(statement, *LOOPS)):
        line = source.position(loop.start_byte)[0]
        if is_short(indices_of(kernel, None), loop):
            continue
        raise _RefusedError(f"Nothing to gain: the time of an element goes into its loop at line {line}.")
    arrays = _arrays(kernel, elements)
    factor = min(MOST, WIDEST // max(array.size for array in arrays))
    if reason := not_by_element(kernel, elements):
        raise _RefusedError(reason)
    strided = elements.guard.type == "for_statement"
    edits = _strided_launches(kernel, elements, factor) if strided else _launches(kernel, elements, factor)
    _require_all_moved(kernel, arrays, factor)
    late = _loaded_after_store(arrays, elements)
    together = [found for found in known_overlaps(kernel) if late is not None and set(late) == {found.one, found.other}]
    if late is not None and together:
        hands = "hands" if together[0].is_certain else "may hand"
        raise _RefusedError(
            f"A launch {hands} the same array to {late[0]} and {late[1]}, and one is read after the other."
        )
    apart = late is None or bool(set(late) & restricted(kernel))
    fewer = f"The grid has a {_share(factor)} of the blocks. " if edits else ""
    widths = sorted({a.vector(factor) if a.is_named else f"{factor} {a.type}" for a in arrays})
    listed = " and ".join(array.name for array in arrays)
    bytes_now = max(array.size for array in arrays)
    return Rewrite(
        rewrite=NAME,
        title=f"Vectorize: {factor} elements per access ({' and '.join(widths)})",
        source=source,
        edits=(*edits, *vector_edits(kernel, elements, arrays, factor)),
        explanation=(
            f"Each thread works on {factor} consecutive elements of {listed}, which it moves as one "
            f"{' or '.join(widths)}: a request carries {bytes_now * factor * 32} bytes where it carried "
            f"{bytes_now * 32}, so that fewer instructions keep more bytes in flight. {fewer}"
            "Elements after the last whole vector, or at an address that is not aligned, go one by one."
            + ("" if apart or late is None else f" {late[1]} must not be a part of {late[0]}, which is stored before.")
            + "".join(_said_of_condition(array) for array in arrays if array.by_data)
        ),
        safe=apart and not any(array.by_data for array in arrays),
    )


def _said_of_condition(array: ElementArray) -> str:
    if array.is_stored:
        return (
            f" {array.name} was stored where data decide it alone: whole vectors of it are loaded and stored, so that "
            "it has to have all elements, and nothing else may store in it meanwhile."
        )
    return f" {array.name} was loaded where data decide it alone: it has to have all elements."


def _launches(kernel: Kernel, elements: Elements, factor: int) -> list[TextEdit]:
    """Fewer blocks at each launch of a kernel whose threads have one element each."""
    source, launches = kernel.source, launches_of_flat_blocks(kernel)
    if isinstance(launches, str):
        raise _RefusedError(launches)
    for launch in launches:
        if launch.grid[1:] != (1, 1):
            raise _RefusedError(f"The launch at {launch.source} has more than one dimension.")
    if reason := not_the_thread(kernel, elements, launches):
        raise _RefusedError(reason)
    edits: list[TextEdit] = []
    for launch in launches:
        if reason := uncovered(kernel, launch, elements.bound):
            raise _RefusedError(reason)
        grid = grid_formula(source, launch)
        blocks = grid.value({}) if grid is not None and not grid.symbols else None
        known = launch.basis is Basis.EXACT
        if known and blocks is not None and blocks * (launch.block[0] or 0) <= FEW_THREADS:
            raise _RefusedError(
                f"Nothing to gain: the launch at {launch.source} has {int(blocks)} blocks of "
                f"{launch.block[0]} threads, too few to do with a part of them."
            )
        edit = divided(source, launch, factor)
        if isinstance(edit, str):
            raise _RefusedError(edit)
        edits.append(edit)
    return edits


def _strided_launches(kernel: Kernel, elements: Elements, factor: int) -> list[TextEdit]:
    """Fewer blocks where a grid grows with the elements, though its threads would loop; other grids stay."""
    if reason := not_all_elements(kernel, elements):
        raise _RefusedError(reason)
    if not host_launches(kernel):
        raise _RefusedError(
            f"No launch of {kernel.name} is in this file, so how many threads share the work is not known."
        )
    launches = launches_in_sight(kernel)
    edits: list[TextEdit] = []
    for launch in launches if not isinstance(launches, str) else ():
        grid = grid_formula(kernel.source, launch)
        if grid is not None and grid.symbols and not uncovered(kernel, launch, elements.bound):
            edit = divided(kernel.source, launch, factor)
            edits += [edit] if isinstance(edit, TextEdit) else []
    return edits


def _require_all_moved(kernel: Kernel, arrays: list[ElementArray], factor: int) -> None:
    """Nothing else takes the time: no atomics, and no access that would be strided where it was coalesced."""
    moved = {array.name for array in arrays}
    for access in kernel.accesses:
        if access.kind is AccessKind.ATOMIC:
            raise _RefusedError(f"Nothing to gain: the time goes into `{access.span.one_line}`, one for each element.")
        one_by_one = access.space is Space.GLOBAL and access.array not in moved
        if one_by_one and access.lanes is not None and (access.addresses_per_request or 0.0) > FEW_ADDRESSES:
            raise _RefusedError(
                f"Nothing to gain: `{access.span.one_line}` stays one by one, and its lanes would lie {factor} apart."
            )


def _loaded_after_store(arrays: list[ElementArray], elements: Elements) -> tuple[str, str] | None:
    """A stored array, and another that a later statement loads: were they one, the load would see what was stored."""
    for stored in arrays:
        for loaded in arrays:
            if stored.is_stored and loaded.is_loaded and stored is not loaded:
                for statement in elements.work[1:]:
                    before = any(use.start_byte < statement.start_byte for use in stored.uses)
                    after = any(statement.start_byte <= use.start_byte < statement.end_byte for use in loaded.uses)
                    if before and after:
                        return stored.name, loaded.name
    return None


def _share(factor: int) -> str:
    return {2: "half", 4: "quarter", 8: "eighth"}[factor]


def _arrays(kernel: Kernel, elements: Elements) -> list[ElementArray]:
    """The arrays that are moved as vectors, every stored one among them."""
    found: list[ElementArray] = []
    for parameter in kernel.parameters:
        if not parameter.is_pointer:
            continue
        array = element_array(kernel, elements, parameter)
        if isinstance(array, ElementArray):
            found.append(array)
        elif array:
            raise _RefusedError(array)
    if not found:
        raise _RefusedError(
            f"Nothing to gain: no array of {kernel.name} is of numbers that are read or written one by one at "
            f"[{elements.index}]."
        )
    return found
