"""Work without the tests for the borders where no border is near.

## Before

```cuda
__global__ void window_sums(float *__restrict__ out, const float *__restrict__ in, int n, int radius) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0.0f;
  for (int k = -radius; k <= radius; k++) {
    if (i + k >= 0 && i + k < n) sum += in[i + k];
  }
  out[i] = sum;
}

void run(float *out, const float *in, int n) {
  window_sums<<<(n + 127) / 128, 128>>>(out, in, n, 8);
}
```

## After

```cuda
__global__ void window_sums(float *__restrict__ out, const float *__restrict__ in, int n, int radius) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0.0f;
  const bool inner = i + (-radius) >= 0 && i + radius < n;
  if (inner) {
    for (int k = -radius; k <= radius; k++) {
      sum += in[i + k];
    }
    out[i] = sum;
    return;
  }
  for (int k = -radius; k <= radius; k++) {
    if (i + k >= 0 && i + k < n) sum += in[i + k];
  }
  out[i] = sum;
}

void run(float *out, const float *in, int n) {
  window_sums<<<(n + 127) / 128, 128>>>(out, in, n, 8);
}
```

A test in loops becomes a condition at that end of each loop where it is hardest to hold; the kernel as it is does what
is left.

## Assumes

- A test compares signed integers, sums whose terms with a loop's variable have a number before it: it holds all the way
  where it holds at the end. The ends of the loops are the same throughout.
- Nothing is tested first that the statements before it change; the threads of a block do not meet.

## Cost

Code for both ways, and at the borders of the data the lanes of a warp take both. Results stay the same bit for bit.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.facts.model import Kernel
from warpwright.rewrites._code import NoMatchError
from warpwright.rewrites._guards import leading
from warpwright.rewrites._indices import indices_of
from warpwright.rewrites._interior import Way, interior
from warpwright.rewrites._launched import block_of_all_launches
from warpwright.rewrites._layout import free_name, indent_unit, reindented, with_comment
from warpwright.rewrites._movable import movable_body
from warpwright.rewrites._threads import TIES
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit, apply_edits
from warpwright.syntax.encoding import decoded
from warpwright.syntax.source import Source, Span

NAME = "drop-border-tests"
title = "Split off the borders: no bounds tests inside"
goals = ("speed",)
relies_on = (Reliance.BLOCK,)

MOST_CONDITIONS = 12


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = movable_body(kernel)
    return _rewrite(kernel, block)


def _rewrite(kernel: Kernel, block: Node) -> Rewrite:
    source = kernel.source
    shape = block_of_all_launches(kernel)
    indices = indices_of(kernel, None if isinstance(shape, str) else shape)
    statements = [n for n in block.named_children if n.type != "comment"]
    head = leading(source, statements)
    work = statements[len(head) :]
    way = interior(indices, work)
    if not way.edits:
        raise NoMatchError(f"No test of borders in a loop of {kernel.name} could be made before the loop.")
    if found := TIES.search(source.node_code(block)):
        raise NoMatchError(
            f"{kernel.name} uses `{found.group()}`, which threads on a path of their own would not reach."
        )
    if len(way.conditions) > MOST_CONDITIONS:
        raise NoMatchError(f"{len(way.conditions)} conditions would stand before the work of {kernel.name}.")
    return Rewrite(
        NAME,
        title,
        source,
        (_text(source, block, work[0], way),),
        f"Each step of a loop in {kernel.name} tested whether it was within the data. Threads that stay within all the "
        f"way find that out once, by {len(way.conditions)} conditions, and then go round without tests, so that the "
        "compiler can issue the loads of several steps together.",
    )


def _text(source: Source, block: Node, first: Node, way: Way) -> TextEdit:
    """The way without tests, put before the work."""
    indent, unit = source.line_indent(first.start_byte), indent_unit(source, block)
    inner = free_name(source.code_text(), "inner")
    lines = [f"const bool {inner} = {' && '.join(way.conditions)};", f"if ({inner}) {{"]
    for statement in way.statements:
        start, end = with_comment(source, statement)
        edits = [
            TextEdit(e.start - start, e.end - start, e.new_text) for e in way.edits if start <= e.start and e.end <= end
        ]
        text = decoded(apply_edits(source.data[start:end], edits))
        lines += [f"{unit}{line}" for line in reindented(text, source.line_indent(start), "").split("\n")]
    lines += [f"{unit}return;", "}", ""]
    new = re.sub(r"[ \t]+$", "", "\n".join(lines).replace("\n", f"\n{indent}"), flags=re.MULTILINE)
    return TextEdit(first.start_byte, first.start_byte, f"{new.rstrip()}\n{indent}")
