"""A loop that the first thread of a block runs alone.

## Why is this bad?

While thread 0 runs a loop by itself, one lane of one warp works and the block's other threads are idle, at the next
barrier or at their end. Each of its loads waits for the one before. A loop that fills an array, or adds one up, takes a
block of 256 threads one iteration each.

## Example

```cuda
__global__ void dot(float *partial, const float *a, const float *b) {
  __shared__ float products[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  products[threadIdx.x] = a[i] * b[i];
  __syncthreads();
  if (threadIdx.x == 0) {
    float sum = 0.0f;
    for (int k = 0; k < 256; k++)
      sum += products[k];
    partial[blockIdx.x] = sum;
  }
}

void run(float *partial, const float *a, const float *b) {
  dot<<<64, 256>>>(partial, a, b);
}
```

## Use instead

```cuda
__global__ void dot(float *partial, const float *a, const float *b) {
  __shared__ float products[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  products[threadIdx.x] = a[i] * b[i];
  __syncthreads();
  float sum_part = 0.0f;
  if (threadIdx.x < 32) {
    for (int k = threadIdx.x; k < 256; k += 32)
      sum_part += products[k];
    for (int offset = 16; offset > 0; offset /= 2)
      sum_part += __shfl_down_sync(0xffffffff, sum_part, offset);
  }
  if (threadIdx.x == 0) {
    float sum = 0.0f;
    sum += sum_part;
    partial[blockIdx.x] = sum;
  }
}

void run(float *partial, const float *a, const float *b) {
  dot<<<64, 256>>>(partial, a, b);
}
```

## Limits

- Only a `for` under a test such as `if (threadIdx.x == 0)`, of more than 32 iterations that use memory, or of a number
  that is known only at run time.
- Whether its iterations depend on each other is not looked at: a recurrence cannot be shared like a sum.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from warpwright.facts.model import Access, AccessKind, Basis, Kernel
from warpwright.rules.base import Finding, Fix, Severity
from warpwright.rules.words import block_of, launch_evidence, launch_of
from warpwright.syntax.nodes import LOOPS, ancestors, descendants
from warpwright.syntax.source import Source, Span

severity = Severity.INFORMATION

LEAST_ITERATIONS = 33
"""More than a block has warps: what each warp has left is customarily put together by one thread."""
LEAST_THREADS = 64
_FIRST = re.compile(r"\(*(?:!{0}|{0}==0|0=={0}|{0}<1)\)*".replace("{0}", r"threadIdx\.[xyz]"))


def check(kernel: Kernel) -> Iterator[Finding]:
    body = kernel.node.child_by_field_name("body") if kernel.node is not None else None
    if body is None:
        return
    for loop in descendants(body, "for_statement"):
        tested = _tested_axes(kernel.source, loop, body)
        if not tested:
            continue
        inside = [a for a in kernel.accesses if _within(a, kernel.source, loop)]
        launch = launch_of(kernel, inside[0].launch) if inside else None
        if launch is None or launch.basis is not Basis.EXACT or (launch.threads or 0) < LEAST_THREADS:
            continue
        if any(extent != 1 and axis not in tested for axis, extent in zip("xyz", launch.block, strict=True)):
            continue
        counted = [a for a in inside if a.launch == inside[0].launch]
        if max(a.iterations for a in counted) < LEAST_ITERATIONS or any(a.active_lanes > 1 for a in counted):
            continue
        yield Finding(
            span=_header(kernel.source, loop),
            message=(
                f"Loop run by one thread: the other {(launch.threads or 0) - 1:,} threads of the block are idle\n"
                f"{block_of(launch).capitalize()}. Independent iterations can be shared by all threads."
            ),
            evidence=launch_evidence(launch),
            fixes=_fixes(counted),
        )


def _header(source: Source, loop: Node) -> Span:
    """A loop up to its body."""
    inner = loop.child_by_field_name("body")
    end = len(source.data[: inner.start_byte].rstrip()) if inner is not None else loop.end_byte
    return Span(source, loop.start_byte, end)


def _fixes(inside: list[Access]) -> tuple[Fix, ...]:
    spread = Fix("spread-serial-loop", "Spread the loop over the block")
    share = Fix("share-first-thread-loop", "Run the loop with the first warp", safe=False)
    stores = any(access.kind is AccessKind.STORE for access in inside)
    return (spread, share) if stores else (share, spread)


def _within(access: Access, source: Source, loop: Node) -> bool:
    span = access.span
    return span.path == source.path and access.in_loop and loop.start_byte <= span.start < loop.end_byte


def _tested_axes(source: Source, loop: Node, body: Node) -> str:
    """The axes, of x, y and z, along which a test around a loop lets the first thread alone pass: "" for another test,
    for one that gives the other threads work of their own, and where another loop stands between."""
    inner = loop
    for around in ancestors(loop):
        if around == body or around.type in LOOPS:
            return ""
        if around.type == "if_statement" and inner == around.child_by_field_name("consequence"):
            condition = around.child_by_field_name("condition")
            text = "".join(source.node_text(condition).split()) if condition is not None else ""
            tests = [_FIRST.fullmatch(_spelled(source, body, part)) for part in text[1:-1].split("&&")]
            if around.child_by_field_name("alternative") is not None or None in tests:
                return ""
            return "".join(axis for test in tests if test for axis in re.findall(r"threadIdx\.([xyz])", test.group()))
        inner = around
    return ""


def _spelled(source: Source, body: Node, part: str) -> str:
    """A part of a condition with `tid` written as the `threadIdx.x` that it is declared as."""
    for name in set(re.findall(r"\b[A-Za-z_]\w*", part)) - {"threadIdx"}:
        for declarator in descendants(body, "init_declarator"):
            target, value = declarator.child_by_field_name("declarator"), declarator.child_by_field_name("value")
            if target is not None and value is not None and source.node_text(target) == name:
                part = re.sub(rf"\b{name}\b", "".join(source.node_text(value).split()), part)
                break
    return part
