r"""A launch whose error nobody reads.

## Why is this bad?

A launch returns nothing. When it fails (too many threads or too much shared memory for a block, no code for this
GPU), the kernel does not run, the program goes on with whatever the output held before, and the error appears at some
later call that has nothing to do with it. `cudaGetLastError()` right after the launch reads it without waiting for the
kernel.

It slows nothing down, but it hides every other mistake. A file has one hint: it marks the first such launch and names
the others. Of launches that follow each other, or stand in the branches of one `switch` or `if` or in a loop that only
launches, the last one counts, where one check covers them all.

## Example

```cuda
#include <cstdio>
#include <cstdlib>

#define CUDA_CHECK(call)                                                \
  do {                                                                  \
    cudaError_t status = (call);                                        \
    if (status != cudaSuccess) {                                        \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status)); \
      exit(EXIT_FAILURE);                                               \
    }                                                                   \
  } while (0)

__global__ void fill(float *out, float value, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = value;
}

void run(float *out, int n) {
  fill<<<(n + 255) / 256, 256>>>(out, 1.0f, n);
}
```

## Use instead

```cuda
#include <cstdio>
#include <cstdlib>

#define CUDA_CHECK(call)                                                \
  do {                                                                  \
    cudaError_t status = (call);                                        \
    if (status != cudaSuccess) {                                        \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status)); \
      exit(EXIT_FAILURE);                                               \
    }                                                                   \
  } while (0)

__global__ void fill(float *out, float value, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = value;
}

void run(float *out, int n) {
  fill<<<(n + 255) / 256, 256>>>(out, 1.0f, n);
  CUDA_CHECK(cudaGetLastError());
}
```

## Limits

- A check in the same function or after each call of it is seen; one in another file, or in a function that is called
  later, is not.
- A launch in a macro is not judged where the macro is used.
- Where the block has a size that each GPU takes and the next call waits for the kernel and is checked, nothing is
  said. What that call does not tell is a grid of 0 blocks, and that the program has no code for the GPU.
- An error while the kernel runs appears only at a call that waits for it, such as `cudaDeviceSynchronize()`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from tree_sitter import Node

from warpwright.facts.launch_checks import ends_of_branches, is_waited_for, loop_of_launches
from warpwright.facts.model import Basis, Kernel, Launch
from warpwright.rules.base import Finding, Fix, Related, Severity
from warpwright.syntax.nodes import descendants, enclosing, launch_configuration, node_at, parent_of
from warpwright.syntax.source import Source, Span

severity = Severity.HINT
MOST_THREADS = 1024
MOST_DEEP = 64
MOST_SHARED_BYTES = 48 << 10
"""What a launch may have of threads, of threads in z, and of dynamic shared memory, on each GPU and without asking."""


def check(kernel: Kernel) -> Iterator[Finding]:
    for launch in kernel.launches:
        if launch.span is None or launch.checked:
            continue
        call = _launch_call(launch.span)
        if call is None or _is_covered_later(call, launch.span.source):
            continue
        if _is_sound(launch) and is_waited_for(launch.span.source, call):
            continue
        yield Finding(
            span=_head(launch.span, call),
            message=(
                f"Launch errors of `{kernel.name}` are not checked: a failed launch leaves the output unchanged\n"
                "Check cudaGetLastError() after the launch."
            ),
            evidence={"launch": launch.source},
            fixes=(Fix("check-launch", "Check the launch"),),
        )


def together(findings: Sequence[Finding]) -> Finding:
    """One for all launches of a file, at the first that has a fix."""
    first = next((each for each in findings if each.fixes), findings[0])
    others = [each for each in findings if each is not first]
    if not others:
        return first
    return replace(
        first,
        message=(
            f"Errors of {len(findings)} launches are not checked: a failed launch leaves the output unchanged\n"
            "Check cudaGetLastError() after each launch, or once after launches that follow each other."
        ),
        related=tuple(Related(each.span, f"launch of {each.kernel}, not checked") for each in others),
    )


def _is_sound(launch: Launch) -> bool:
    """Whether a GPU takes blocks of this size."""
    threads, deep, shared = launch.threads, launch.block[2], launch.dynamic_shared_bytes
    if launch.basis is not Basis.EXACT or threads is None or deep is None or shared is None:
        return False
    return 0 < threads <= MOST_THREADS and deep <= MOST_DEEP and shared <= MOST_SHARED_BYTES


def _launch_call(span: Span) -> Node | None:
    node = node_at(span.source.root, span.start, span.end)
    while node is not None and not (node.type == "call_expression" and launch_configuration(node) is not None):
        node = node.parent
    return node


def _head(span: Span, call: Node) -> Span:
    """`kernel<<<...>>>` without the arguments: what a reader has to look at."""
    configuration = launch_configuration(call)
    return Span(span.source, span.start, configuration.end_byte) if configuration is not None else span


def _is_covered_later(call: Node, source: Source) -> bool:
    """Whether a check after a later launch of the same function would also read this one's error.

    It does where every path from this launch comes by: the later launch's block is the same or surrounds it, or both
    stand in branches of one statement or in one loop that only launches, which the check follows.
    """
    function = enclosing(call, "function_definition", "lambda_expression")
    if function is None:
        return False
    branches = ends_of_branches(source, function)
    later = _launches(source, function)
    place = branches.get(call.start_byte)
    if place is not None:
        alike = [start for start, each in branches.items() if each == place]
    else:
        place = loop_of_launches(call) or call
        alike = [start for start, _ in later if place.start_byte <= start < place.end_byte]
    if call.start_byte != max(alike, default=call.start_byte):
        return True
    first = bisect_left(later, (place.end_byte, 0))
    return first < len(later) and later[first][1] <= place.start_byte


@lru_cache(maxsize=8)
def _launches(_source: Source, function: Node) -> list[tuple[int, int]]:
    """Where each launch of a function starts, and where the first block starts that it or a later one stands in. The
    kernels that one function launches ask in turn."""
    found: list[tuple[int, int]] = []
    calls = [call for call in descendants(function, "call_expression") if launch_configuration(call) is not None]
    outermost = function.end_byte
    for call in reversed(calls):
        block = _block(call)
        if block is not None:
            outermost = min(outermost, block.start_byte)
            found.append((call.start_byte, outermost))
    return found[::-1]


def _block(call: Node) -> Node | None:
    """The statement that surrounds the launch's own statement, or the loop that the check follows."""
    statement = loop_of_launches(call) or enclosing(call, "expression_statement")
    return parent_of(statement) if statement is not None else None
