r"""A launch whose error nobody reads.

## Why is this bad?

A launch returns nothing. When it fails (too many threads or too much shared memory for a block, no code for this
GPU), the kernel does not run, the program goes on with whatever the output held before, and the error appears at some
later call that has nothing to do with it. `cudaGetLastError()` right after the launch reads it without waiting for the
kernel.

It slows nothing down, but it hides every other mistake. A file has one hint: it marks the first such launch and names
the others. Of launches that follow each other without a wait between them, or stand in the branches of one `switch` or
`if` or in one loop that the host learns nothing in, the last one counts: one check covers them all.

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

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tree_sitter import Node

from warpwright.facts.launch_checks import is_covered_later, is_waited_for
from warpwright.facts.model import Basis, Kernel, Launch
from warpwright.rules.base import Finding, Fix, Related, Severity
from warpwright.syntax.nodes import enclosing, launch_configuration, node_at
from warpwright.syntax.source import Span

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
        if call is None:
            continue
        function = enclosing(call, "function_definition", "lambda_expression")
        if function is not None and is_covered_later(launch.span.source, function, call):
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
