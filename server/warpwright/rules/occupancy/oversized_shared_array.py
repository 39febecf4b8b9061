"""A shared array of which the threads never touch the end.

## Why is this bad?

Shared memory is given to a block whole for as long as it runs, used or not. What an array takes beyond its highest
index is lost to other blocks, and to the L1 cache, which shares the same memory: fewer blocks fit, or fewer loads hit.

## Example

```cuda
__global__ void sum(float *out, const float *in) {
  __shared__ float partial[4096];
  partial[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s)
      partial[threadIdx.x] += partial[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0)
    out[blockIdx.x] = partial[0];
}

void run(float *out, const float *in) {
  sum<<<1024, 256>>>(out, in);
}
```

## Use instead

```cuda
__global__ void sum(float *out, const float *in) {
  __shared__ float partial[256];
  partial[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s)
      partial[threadIdx.x] += partial[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0)
    out[blockIdx.x] = partial[0];
}

void run(float *out, const float *in) {
  sum<<<1024, 256>>>(out, in);
}
```

## Limits

- Said only where every index is exact: every launch found has a block that the text gives, no index depends on data
  or run-time sizes, every loop was followed to its end, and the array is only ever used by its elements.
- Launches from other files are not found; an array sized for their larger blocks is found too.
- Information where the rest would let another block fit on a multiprocessor, else a hint; from a quarter of the array
  and half a kilobyte unused.
- The fix gives the array the size that the launches found need.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from tree_sitter import Node

from warpwright.facts.model import Kernel, SharedArray
from warpwright.facts.occupancy import occupancy
from warpwright.rules.base import Finding, Fix, Severity
from warpwright.syntax.nodes import descendants

severity = Severity.HINT

UNUSED = 1 / 4
"""Share of the array that has to be unused."""
WORTHWHILE = 512
"""Bytes that have to be unused."""


def check(kernel: Kernel) -> Iterator[Finding]:
    for array in kernel.shared_arrays:
        size, used = array.bytes, array.used_bytes
        if array.dynamic or size is None or not used or not array.element_bytes or kernel.incomplete:
            continue
        used = ceil(used / array.element_bytes) * array.element_bytes
        unused = size - used
        if unused < WORTHWHILE or unused < UNUSED * size or not _by_elements(kernel, array):
            continue
        gained = _gained(kernel, unused)
        then = f"\nWithout the rest, {gained} fit on an SM of {kernel.arch}." if gained else ""
        yield Finding(
            span=array.span,
            message=f"Oversized shared array `{array.name}`: {used} of {size} bytes are used{then}",
            severity=Severity.INFORMATION if gained else Severity.HINT,
            evidence={"bytes": size, "used_bytes": used, "basis": "exact"},
            fixes=(Fix("shrink-shared-array", f"Shrink `{array.name}` to {used} bytes"),),
        )


def _by_elements(kernel: Kernel, array: SharedArray) -> bool:
    """Whether every use of the array in the kernel names one element with all its indices, and takes no address."""
    body = kernel.node.child_by_field_name("body") if kernel.node is not None else None
    if body is None:
        return False
    for use in descendants(body, "identifier"):
        if kernel.source.node_text(use) != array.name:
            continue
        depth, node = 0, use
        while node.parent is not None and node.parent.type == "subscript_expression":
            if node.parent.child_by_field_name("argument") != node:
                break
            node, depth = node.parent, depth + 1
        declares = node.parent is not None and node.parent.type == "array_declarator"
        if not declares and (depth != len(array.dims) or _has_address_taken(node.parent)):
            return False
    return True


def _has_address_taken(parent: Node | None) -> bool:
    while parent is not None and parent.type in ("field_expression", "parenthesized_expression"):
        parent = parent.parent
    return parent is not None and parent.type in ("pointer_expression", "argument_list", "initializer_list")


def _gained(kernel: Kernel, unused: int) -> str:
    """How many more blocks fit where every array keeps only what it uses, as "7 blocks instead of 5"; else empty."""
    static = kernel.shared_bytes
    for launch in kernel.launches:
        if static is None or launch.threads is None or launch.dynamic_shared_bytes is None:
            return ""
        shared = static + launch.dynamic_shared_bytes
        try:
            now, then = (occupancy(kernel.arch, 0, size, launch.threads) for size in (shared, shared - unused))
        except ValueError:
            return ""
        if then.blocks > now.blocks:
            return f"{then.blocks} blocks instead of {now.blocks}"
    return ""
