"""Capture the launches of a host loop in a CUDA graph, and launch that.

## Before

```cuda
#include <utility>

__global__ void diffuse(float *out, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n - 1)
    out[i] = 0.25f * (in[i - 1] + 2.0f * in[i] + in[i + 1]);
}

void run(float *a, float *b, int n, int steps) {
  for (int t = 0; t < steps; ++t) {
    diffuse<<<(n + 255) / 256, 256>>>(b, a, n);
    std::swap(a, b);
  }
}
```

## After

```cuda
#include <utility>

__global__ void diffuse(float *out, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n - 1)
    out[i] = 0.25f * (in[i - 1] + 2.0f * in[i] + in[i + 1]);
}

void run(float *a, float *b, int n, int steps) {
  int done = 0;  // iterations that a graph of 16 has made
  cudaStream_t capturing;
  if (steps >= 64 && cudaStreamCreateWithFlags(&capturing, cudaStreamNonBlocking) == cudaSuccess) {
    if (cudaStreamBeginCapture(capturing, cudaStreamCaptureModeThreadLocal) == cudaSuccess) {
      for (int k = 0; k < 16; ++k) {
        diffuse<<<(n + 255) / 256, 256, 0, capturing>>>(b, a, n);
        std::swap(a, b);
      }
      cudaGraph_t graph;
      cudaGraphExec_t captured;
      if (cudaStreamEndCapture(capturing, &graph) == cudaSuccess) {
        if (cudaGraphInstantiate(&captured, graph, 0) == cudaSuccess) {
          while (done <= steps - 16 && cudaGraphLaunch(captured, 0) == cudaSuccess)
            done += 16;
          cudaGraphExecDestroy(captured);
        }
        cudaGraphDestroy(graph);
      }
    }
    cudaStreamDestroy(capturing);
  }
  if (steps >= 64 && done <= steps - 16)
    cudaGetLastError();  // of a graph that could not be made: the loop does its part
  for (int t = done; t < steps; ++t) {
    diffuse<<<(n + 255) / 256, 256>>>(b, a, n);
    std::swap(a, b);
  }
}
```

The loop stays for the iterations that are left, and for all of them where there are few or a graph cannot be made.

## Assumes

- The loop counts up by 1 and does nothing but launch with the same arguments, or with pointers that two by two change
  places; other host code that runs meanwhile changes none of them.
- Nobody captures the default stream's thread at the time, nor the stream that the launches go to.

## Cost

Making a graph takes the host about as long as 30 launches, so that few iterations stay as they are. Where a kernel
takes longer than a launch, nothing is gained: on a GPU of compute capability 9.0, 1,000 steps of such a stencil took
3.1 ms and 1.2 ms afterwards for 4,096 elements, 4.6 ms and 3.6 ms for a million.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.facts.model import Kernel, Launch
from warpwright.rewrites._code import NoMatchError, is_enclosed, is_macro_of_several
from warpwright.rewrites._formulas import formula
from warpwright.rewrites._layout import free_name, indent_unit, reindented
from warpwright.rewrites._repeated_launches import STREAM_PART, RepeatedLaunches, launches_in_loops, repeated_launches
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import descendants, launch_configuration, uncommented
from warpwright.syntax.source import Source, Span

NAME = "capture-graph"
title = "Capture the launches in a CUDA graph"
goals = ("speed",)
relies_on = ()

BATCH = 16
"""Iterations in one graph: even, so that what changes places is back where it was."""
LEAST = 4 * BATCH
"""Iterations for which a graph is made."""
MOST_THREADS = 4 * 132 * 2048
"""Four times as many as an H100 holds at once: the launch after one of more arrives while they work."""


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    refusal = f"No launch of {kernel.name} stands in a loop of the host."
    for launch, _, loop in launches_in_loops(kernel, at):
        try:
            return _captured(kernel, launch, loop)
        except NoMatchError as mismatch:
            refusal = str(mismatch)
    return Declined(NAME, refusal)


def _captured(kernel: Kernel, launch: Launch, loop: Node) -> Rewrite:
    source = kernel.source
    if kernel.node is not None and any(launch_configuration(n) for n in descendants(kernel.node, "call_expression")):
        raise NoMatchError(f"{kernel.name} launches kernels itself.")
    found = repeated_launches(source, loop)
    bound = formula(source, found.bound)
    count = bound.value({}) if bound is not None and not bound.symbols else None
    if count is not None and count - found.start < LEAST:
        raise NoMatchError(f"Nothing to gain: a graph pays from some {LEAST} iterations on, and there are {count:g}.")
    blocks = [each or 1 for each in launch.grid] if None not in launch.grid else []
    threads = launch.threads
    if blocks and threads is not None and blocks[0] * blocks[1] * blocks[2] * threads > MOST_THREADS:
        shown = blocks[0] * blocks[1] * blocks[2]
        raise NoMatchError(f"Nothing to gain: {shown:,} blocks of {threads} threads take longer than a launch.")
    per = f"{len(found.calls)} launches" if len(found.calls) > 1 else "one launch"
    return Rewrite(
        rewrite=NAME,
        title="Capture the loop's launches in a CUDA graph",
        source=source,
        edits=(_before(source, found), TextEdit(found.value.start_byte, found.value.end_byte, _done(source))),
        explanation=(
            f"Each iteration makes {per}. A launch costs the host some 2 to 5 us (assumed), and a short kernel is done "
            f"before the next one arrives. The launches of {BATCH} iterations are captured once, in a stream of their "
            "own, and launched together from then on, in the same order and in the stream where they went before. "
            f"The loop stays for what is left, for fewer than {LEAST} iterations, and where a graph cannot be made."
        ),
        safe=False,
    )


def _done(source: Source) -> str:
    return free_name(source.code_text(), "done")


def _before(source: Source, found: RepeatedLaunches) -> TextEdit:
    """What stands before the loop: the graph is captured, launched and destroyed."""
    text, bound = source.code_text(), source.node_text(found.bound)
    is_plain = re.fullmatch(r"[\w.]+", bound) or is_enclosed(bound)
    is_plain = is_plain and not is_macro_of_several(source, found.bound)
    bound = bound if is_plain else f"({bound})"
    done, capturing, graph, captured, k = (
        free_name(text, name) for name in ("done", "capturing", "graph", "captured", "k")
    )
    last = BATCH - 1 if found.is_inclusive else BATCH
    least = "" if re.fullmatch(r"\d+", bound) else f"{bound} >= {LEAST + found.start} && "
    indent, unit = source.line_indent(found.loop.start_byte), indent_unit(source, found.loop.parent or found.loop)
    body = [
        reindented(_in_stream(source, statement, capturing), source.line_indent(statement.start_byte), unit * 3)
        for statement in found.statements
    ]
    lines = "\n".join([
        f"{found.type} {done} = {found.start};  // iterations that a graph of {BATCH} has made",
        f"cudaStream_t {capturing};",
        f"if ({least}cudaStreamCreateWithFlags(&{capturing}, cudaStreamNonBlocking) == cudaSuccess) {{",
        f"{unit}if (cudaStreamBeginCapture({capturing}, cudaStreamCaptureModeThreadLocal) == cudaSuccess) {{",
        f"{unit * 2}for (int {k} = 0; {k} < {BATCH}; ++{k}) {{",
        *(f"{unit * 3}{each}" for each in body),
        f"{unit * 2}}}",
        f"{unit * 2}cudaGraph_t {graph};",
        f"{unit * 2}cudaGraphExec_t {captured};",
        f"{unit * 2}if (cudaStreamEndCapture({capturing}, &{graph}) == cudaSuccess) {{",
        f"{unit * 3}if (cudaGraphInstantiate(&{captured}, {graph}, 0) == cudaSuccess) {{",
        f"{unit * 4}while ({done} <= {bound} - {last} && cudaGraphLaunch({captured}, {found.stream}) == cudaSuccess)",
        f"{unit * 5}{done} += {BATCH};",
        f"{unit * 4}cudaGraphExecDestroy({captured});",
        f"{unit * 3}}}",
        f"{unit * 3}cudaGraphDestroy({graph});",
        f"{unit * 2}}}",
        f"{unit}}}",
        f"{unit}cudaStreamDestroy({capturing});",
        "}",
        f"if ({least}{done} <= {bound} - {last})",
        f"{unit}cudaGetLastError();  // of a graph that could not be made: the loop does its part",
    ])  # fmt: skip
    inserted = "".join(f"{line}\n{indent}" for line in lines.split("\n"))
    return TextEdit(found.loop.start_byte, found.loop.start_byte, inserted)


def _in_stream(source: Source, statement: Node, stream: str) -> str:
    """A statement of the loop, with what it launches in the stream that is captured."""
    call = next((c for c in uncommented(statement) if launch_configuration(c) is not None), None)
    parts = uncommented(launch_configuration(call)) if call is not None else []
    if not parts:
        return source.node_text(statement)
    if len(parts) > STREAM_PART:
        start, end, new = parts[STREAM_PART].start_byte, parts[STREAM_PART].end_byte, stream
    else:
        start = end = parts[-1].end_byte
        new = f", {stream}" if len(parts) == STREAM_PART else f", 0, {stream}"
    return source.text(statement.start_byte, start) + new + source.text(end, statement.end_byte)
