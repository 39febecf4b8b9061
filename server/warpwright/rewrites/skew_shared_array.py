"""Pad a flat shared array by one word per 128 bytes, so that strides of a power of two meet all banks.

## Before

```cuda
__global__ void transpose(float *out, const float *in, int n) {
  __shared__ float tile[1024];
  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 32 + threadIdx.y;
  tile[threadIdx.y * 32 + threadIdx.x] = in[y * n + x];
  __syncthreads();
  int at = threadIdx.x * 32 + threadIdx.y;
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  out[y * n + x] = tile[at];
}

void run(float *out, const float *in, int n) {
  transpose<<<dim3(n / 32, n / 32), dim3(32, 32)>>>(out, in, n);
}
```

## After

```cuda
static __device__ __forceinline__ int skewed(int i) { return i + (i >> 5); }

__global__ void transpose(float *out, const float *in, int n) {
  __shared__ float tile[1024 + 1024 / 32];
  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 32 + threadIdx.y;
  tile[skewed(threadIdx.y * 32 + threadIdx.x)] = in[y * n + x];
  __syncthreads();
  int at = threadIdx.x * 32 + threadIdx.y;
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  out[y * n + x] = tile[skewed(at)];
}

void run(float *out, const float *in, int n) {
  transpose<<<dim3(n / 32, n / 32), dim3(32, 32)>>>(out, in, n);
}
```

## Assumes

- The array is a static `__shared__` array of one dimension with elements of 4, 8 or 16 bytes, and every use of it names
  one element, so that nothing depends on where elements lie. Taking an address (other than for an atomic), `sizeof` and
  passing the array on are refused.
- The addresses that are known take fewer wavefronts in all, and the array still fits in 48 KB.

## Cost

An element for every 128 bytes of the array, and a shift and an addition for each access. Results stay the same bit for
bit.
"""

from __future__ import annotations

from tree_sitter import Node

from warpwright.facts.memory import wavefronts
from warpwright.facts.model import Access, Kernel, SharedArray, Space
from warpwright.rewrites._arrays import declarator_of, element_uses, in_brackets, indices_of, misuse
from warpwright.rewrites._code import body
from warpwright.rewrites._conflicts import of_worst_conflict
from warpwright.rewrites._layout import free_name, with_comments
from warpwright.rewrites._limits import SHARED_BYTES
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.source import Source, Span

NAME = "skew-shared-array"
title = "Pad the shared array"
goals = ("speed",)
relies_on = (Reliance.SHARED,)

_PERIOD = 128
"""Bytes that all 32 banks hold once."""
_SHIFTS = {4: 5, 8: 4, 16: 3}
"""By the bytes of an element: the logarithm of how many lie in a period."""


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    return of_worst_conflict(kernel, at, NAME, _skewed)


def _skewed(kernel: Kernel, access: Access) -> Rewrite | Declined:
    array = next((a for a in kernel.shared_arrays if a.name == access.array), None)
    block, source = body(kernel), kernel.source
    if array is None or block is None:
        return Declined(NAME, f"`{access.expression}` is not an access to a __shared__ array of this kernel.")
    if array.dynamic or len(array.dims) != 1 or array.dims[0] is None:
        return Declined(NAME, f"`{array.name}` is not a static array of one dimension whose size is known.")
    size = array.element_bytes or 0
    if size not in _SHIFTS:
        return Declined(NAME, f"The elements of `{array.name}` are not of 4, 8 or 16 bytes.")
    declarator = declarator_of(block, source, array.name)
    extent = declarator.child_by_field_name("size") if declarator is not None else None
    if declarator is None or extent is None:
        return Declined(NAME, f"The declaration of `{array.name}` is not in the body of {kernel.name}.")
    if reason := misuse(block, source, array.name, 1, declarator):
        return Declined(NAME, reason)
    if any(a.joined for a in kernel.accesses if a.array == array.name and a.space is Space.SHARED):
        return Declined(NAME, f"The compiler moves neighbours in `{array.name}` at once, and could not then.")
    shift = _SHIFTS[size]
    before, after = _cost(kernel, array, None), _cost(kernel, array, shift)
    if after >= before:
        return Declined(NAME, f"A word after every {_PERIOD} bytes of `{array.name}` would not lower its wavefronts.")
    if kernel.shared_bytes is None:
        return Declined(NAME, "The size of the kernel's other shared memory is not known from the text.")
    used = kernel.shared_bytes + max((launch.dynamic_shared_bytes or 0 for launch in kernel.launches), default=0)
    more = (array.dims[0] >> shift) * size
    if used + more > SHARED_BYTES:
        return Declined(NAME, f"The block uses {used} bytes of shared memory, and {more} more would pass 48 KB.")
    elements = in_brackets(source, extent)
    function = free_name(source.code_text(), "skewed")
    edits = [
        _definition(source, block, function, shift),
        TextEdit(extent.start_byte, extent.end_byte, f"{elements} + {elements} / {1 << shift}"),
    ]
    for use in element_uses(block, source, array.name, declarator):
        (brackets,) = indices_of(use)
        edits.append(TextEdit(brackets.start_byte + 1, brackets.start_byte + 1, f"{function}("))
        edits.append(TextEdit(brackets.end_byte - 1, brackets.end_byte - 1, ")"))
    return Rewrite(
        rewrite=NAME,
        title=f"Pad {array.name} by one word per {_PERIOD} bytes",
        source=source,
        edits=tuple(edits),
        explanation=(
            f"Element i of {array.name} now lies at i + i / {1 << shift}: elements a power of two apart, which were in "
            f"one bank, are in different ones. One request of each access takes {after} wavefronts in all where it "
            f"took {before}. It costs {more} bytes of shared memory per block, and a shift and an addition for each "
            "access."
        ),
    )


def _definition(source: Source, block: Node, function: str, shift: int) -> TextEdit:
    """The function, in front of the kernel and of the comments above it."""
    kernel = block.parent
    assert kernel is not None
    while kernel.parent is not None and kernel.parent.type in ("template_declaration", "linkage_specification"):
        kernel = kernel.parent
    start, _ = with_comments(source, kernel)
    text = f"static __device__ __forceinline__ int {function}(int i) {{ return i + (i >> {shift}); }}\n\n"
    return TextEdit(start, start, text)


def _cost(kernel: Kernel, array: SharedArray, shift: int | None) -> int:
    """Wavefronts of the worst requests to an array, as it is (`shift` None) or skewed."""
    size = array.element_bytes or 1
    total = 0
    for access in kernel.accesses:
        if access.array == array.name and access.space is Space.SHARED and access.lanes is not None:
            skew = [
                a if a is None or shift is None else a + (a // size >> shift) * size for a in access.lanes.addresses
            ]
            total += wavefronts(skew, access.bytes)
    return total
