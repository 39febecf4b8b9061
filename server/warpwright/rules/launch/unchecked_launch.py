r"""A launch whose error nobody reads.

## Why is this bad?

A launch returns nothing. When it fails (too many threads or too much shared memory for a block, no code for this
GPU), the kernel does not run, the program goes on with whatever the output held before, and the error appears at some
later call that has nothing to do with it. `cudaGetLastError()` right after the launch reads it without waiting for the
kernel.

It is information: it slows nothing down, but it hides every other mistake. Launches that follow each other are reported
once, at the last one, where one check covers them all.

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

- A check in another function or file is not seen.
- A launch in a macro is not judged where the macro is used.
- An error while the kernel runs appears only at a call that waits for it, such as `cudaDeviceSynchronize()`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from tree_sitter import Node

from warpwright.facts.model import Kernel
from warpwright.rules.base import Finding, Fix, Severity
from warpwright.syntax.nodes import ancestors, descendants, enclosing, launch_configuration, node_at
from warpwright.syntax.source import Source, Span

severity = Severity.INFORMATION


def check(kernel: Kernel) -> Iterator[Finding]:
    for launch in kernel.launches:
        if launch.span is None or launch.checked:
            continue
        call = _launch_call(launch.span)
        if call is None or _is_covered_later(call, launch.span.source):
            continue
        yield Finding(
            span=_head(launch.span, call),
            message=(
                f"Nothing reads whether this launch of {kernel.name} failed: if it does, the kernel does not run and "
                "its output keeps what it held. Check cudaGetLastError() after it."
            ),
            evidence={"launch": launch.source},
            fixes=(Fix("check-launch", "Check the launch"),),
        )


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

    It does where every path from this launch comes by: the later launch's block is the same or surrounds it.
    """
    function = enclosing(call, "function_definition", "lambda_expression")
    if function is None:
        return False
    last = _last_launches(source, function)
    return any(last.get(around.id, -1) > call.start_byte for around in ancestors(call))


@lru_cache(maxsize=8)
def _last_launches(_source: Source, function: Node) -> dict[int, int]:
    """Where the last launch of each block of a function starts. The kernels that one function launches ask in turn."""
    last: dict[int, int] = {}
    for call in descendants(function, "call_expression"):
        block = _block(call) if launch_configuration(call) is not None else None
        if block is not None:
            last[block.id] = max(call.start_byte, last.get(block.id, -1))
    return last


def _block(call: Node) -> Node | None:
    """The statement that surrounds the launch's own statement."""
    statement = enclosing(call, "expression_statement")
    return statement.parent if statement is not None else None
