r"""A launch of little work in a loop of the host.

## Why is this bad?

A launch costs the host some 2 to 5 us, whatever the kernel does, and launches of one stream run one after the other. A
kernel of a few blocks is done sooner than the next launch arrives, and leaves most of the GPU's multiprocessors idle
while it runs. One launch with a block for each part of the work pays once and fills the GPU. Where an iteration needs
what the one before has made, a CUDA graph that is captured once (`cudaStreamBeginCapture`) makes the launches cheaper.

## Example

```cuda
constexpr int kColumns = 4096;
constexpr int kRows = 512;

__global__ void scale(float *y, const float *x, float factor) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kColumns)
    y[i] = factor * x[i];
}

void run(float *y, const float *x) {
  for (int row = 0; row < kRows; ++row)
    scale<<<kColumns / 256, 256>>>(y + row * kColumns, x + row * kColumns, 2.0f);
}
```

## Use instead

```cuda
constexpr int kColumns = 4096;
constexpr int kRows = 512;

__global__ void scale(float *y, const float *x, float factor) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kColumns)
    y[i] = factor * x[i];
}

__global__ void scale_batched(float *y, const float *x, float factor) {
  y += (size_t)blockIdx.y * kColumns;
  x += (size_t)blockIdx.y * kColumns;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kColumns)
    y[i] = factor * x[i];
}

void run(float *y, const float *x) {
  scale_batched<<<dim3(kColumns / 256, kRows), 256>>>(y, x, 2.0f);
}
```

## Limits

- Only launches in a `for` are judged, whose grid and block the text gives, of kernels that were followed whole.
- What a launch costs is assumed: it depends on the host, the driver and the number of arguments.
- Little work is at most 4 MiB that fewer threads ask for than an H100 holds at once, without a loop or an atomic in the
  kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpwright.facts.launch_loops import LaunchLoop, launch_loop
from warpwright.facts.model import AccessKind, Basis, HostLoop, Kernel, Launch, Space
from warpwright.rules.base import Finding, Fix, Related, Severity
from warpwright.rules.weighing import threads_of
from warpwright.rules.words import plural
from warpwright.syntax.nodes import ancestors, descendants, enclosing, launch_configuration, node_at
from warpwright.syntax.source import Span

severity = Severity.INFORMATION

_BATCH = Fix("batch-launches", "Batch the iterations into one launch", safe=False)
_CAPTURE = Fix("capture-graph", "Capture the launches in a CUDA graph", safe=False)

LAUNCH_US = (2.0, 5.0)
"""What a launch costs the host, assumed."""
MOST_BYTES = 4 << 20
"""What an H100's memory of some 3 TB/s moves in less than 2 us."""
MOST_THREADS = 132 * 2048
"""Threads that an H100 holds at once."""
LEAST_LAUNCHES = 8
_LOOPS = ("for", "while", "do")


def check(kernel: Kernel) -> Iterator[Finding]:
    if kernel.node is None or kernel.incomplete is not None:
        return
    found: set[tuple[str, int, int]] = set()
    for index, launch in enumerate(kernel.launches):
        loop = launch.loop
        if loop is None or launch.span is None or launch.basis is not Basis.EXACT or not _counts(loop):
            continue
        if not _is_made_each_time(launch.span, loop):
            continue
        threads = threads_of(launch)
        asked = _bytes_asked(kernel, index, threads) if threads is not None else None
        if asked is None or threads is None or asked > MOST_BYTES or threads >= MOST_THREADS:
            continue
        if loop.span.key in found:  # one of several in its body
            continue
        found.add(loop.span.key)
        batched = isinstance(_taken_apart(launch.span), LaunchLoop)
        yield Finding(
            span=launch.span,
            message=_message(kernel, loop, asked, threads, batched=batched),
            evidence={"iterations": loop.iterations, "bytes": asked, "threads": threads, "launch_us": list(LAUNCH_US)},
            fixes=(_BATCH if batched else _CAPTURE,),
            related=(Related(loop.span, "the loop"),),
        )


def _is_made_each_time(launch: Span, loop: HostLoop) -> bool:
    """Whether each iteration makes the launch, on one GPU, and not into a graph that is captured already."""
    node = node_at(launch.source.root, launch.start, launch.end)
    inside = [n for n in ancestors(node) if n.start_byte > loop.span.start] if node is not None else []
    function = enclosing(node, "function_definition", "lambda_expression") if node is not None else None
    around = launch.source.node_code(function) if function is not None else ""
    other = "BeginCapture" in around or re.search(r"\b(?:cuda|hip)SetDevice\b", loop.span.code)
    return not other and not any(n.type in ("if_statement", "switch_statement") for n in inside)


def _counts(loop: HostLoop) -> bool:
    """A `for` that is not known to launch a few times only."""
    node = node_at(loop.span.source.root, loop.span.start, loop.span.end)
    return node is not None and node.type == "for_statement" and (loop.iterations or LEAST_LAUNCHES) >= LEAST_LAUNCHES


def _message(kernel: Kernel, loop: HostLoop, asked: int, threads: int, *, batched: bool) -> str:
    low, high = LAUNCH_US
    times = f"{loop.iterations:,} times" if loop.iterations is not None else "repeatedly"
    kib = f"{plural(asked / 1024, 'KiB').removesuffix('s')}" if asked >= 1024 else plural(asked, "byte")
    who = f"{threads:,} threads per launch" if threads != 1 else "1 thread per launch"
    cost = f"some {low:g} to {high:g} us (assumed)"
    if loop.iterations is not None:
        cost += f", {_milliseconds(low * loop.iterations)} to {_milliseconds(high * loop.iterations)} ms in all"
    cure = (
        "If iterations are independent, use one launch with the loop index in blockIdx.y."
        if batched
        else "Do more work per launch, or capture the launches in a CUDA graph."
    )
    return (
        f"`{kernel.name}` is launched {times} in a loop, each moving at most {kib}\n"
        f"Launch overhead dominates: {who}; a launch costs the host {cost}.\n{cure}"
    )


def _milliseconds(us: float) -> str:
    """
    >>> _milliseconds(1024.0), _milliseconds(40.0)
    ('1.0', '0.04')
    """
    return f"{us / 1000:.1f}" if us >= 100 else f"{us / 1000:.2g}"


def _bytes_asked(kernel: Kernel, launch: int, threads: int) -> int | None:
    """Bytes of global memory that the threads of one launch ask for at most, each once for each access in the text.

    None where data say how long a thread works: in loops, and at atomics that wait for each other.
    """
    if any(branch.kind in _LOOPS for branch in kernel.branches):
        return None
    counted = _counted_for(kernel, launch)
    if any(access.in_loop or access.kind is AccessKind.ATOMIC for access in kernel.accesses):
        return None
    found = [a.bytes for a in kernel.accesses if a.launch == counted and a.space is Space.GLOBAL]
    return threads * sum(found) if found else None


def _counted_for(kernel: Kernel, index: int) -> int | None:
    """The launch whose accesses were counted that has a launch's grid and block; None where none has."""
    launch = kernel.launches[index]
    counted = {access.launch for access in kernel.accesses}
    alike = (n for n in sorted(counted) if 0 <= n < len(kernel.launches))
    return next((n for n in alike if _shape(kernel.launches[n]) == _shape(launch)), None)


def _shape(launch: Launch) -> tuple[object, ...]:
    return launch.grid, launch.block, launch.dynamic_shared_bytes


def _taken_apart(span: Span) -> LaunchLoop | str:
    node = node_at(span.source.root, span.start, span.end)
    calls = [n for n in (node, *ancestors(node)) if n is not None and launch_configuration(n)] if node else []
    call = calls[0] if calls else next((n for n in descendants(node, "call_expression")), None) if node else None
    found = launch_loop(span.source, call) if call is not None else "in a macro"
    if isinstance(found, LaunchLoop) and all(argument.step is None for argument in found.arguments):
        return "the same at each iteration"
    return found
