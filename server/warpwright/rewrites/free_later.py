"""Free memory after its last use.

## Before

```cuda
__global__ void step(float *x) { x[threadIdx.x] += 1.0f; }

void run(float *host) {
  float *x;
  cudaMalloc(&x, 64 * sizeof(float));
  cudaMemcpy(x, host, 64 * sizeof(float), cudaMemcpyHostToDevice);
  step<<<1, 64>>>(x);
  cudaFree(x);
  cudaMemcpy(host, x, 64 * sizeof(float), cudaMemcpyDeviceToHost);
}
```

## After

```cuda
__global__ void step(float *x) { x[threadIdx.x] += 1.0f; }

void run(float *host) {
  float *x;
  cudaMalloc(&x, 64 * sizeof(float));
  cudaMemcpy(x, host, 64 * sizeof(float), cudaMemcpyHostToDevice);
  step<<<1, 64>>>(x);
  cudaMemcpy(host, x, 64 * sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(x);
}
```

## Assumes

- The call that frees and the uses stand in one block, nothing there gives the pointer another value, and nothing leaves
  the block between. In the body of a loop that uses it again, the call moves behind the loop.

## Cost

The memory is held longer.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.facts.host_scopes import written_names
from warpwright.facts.model import Kernel
from warpwright.rewrites._code import in_macro, overlaps
from warpwright.rewrites._layout import after_statement, without_lines
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import LOOPS, descendants, enclosing, uncast, uncommented
from warpwright.syntax.source import Source, Span

NAME = "free-later"
title = "Free it after its last use"
goals = ("fix",)
relies_on = ()

_FREES = re.compile(r"cudaFree(?:Async)?")
_LEAVES = ("return_statement", "break_statement", "continue_statement", "goto_statement")


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    source = kernel.source
    for call in descendants(source.root, "call_expression"):
        edits = _moved(source, call, at)
        if edits:
            return Rewrite(
                rewrite=NAME,
                title=title,
                source=source,
                edits=edits,
                explanation="Freed memory may be another's by the next call. It is freed after the last statement "
                "that uses it.",
            )
    return Declined(NAME, f"No memory of {kernel.name} is known to be used after the call that frees it.")


def _moved(source: Source, call: Node, at: Span | None) -> tuple[TextEdit, ...]:
    given = [uncast(source, each) for each in uncommented(call.child_by_field_name("arguments"))]
    statement, function = call.parent, enclosing(call, "function_definition")
    if not _FREES.fullmatch(called_name(call, source)) or not given or given[0].type != "identifier":
        return ()
    if statement is None or statement.type != "expression_statement" or function is None or in_macro(call):
        return ()
    block, name = statement.parent, source.node_text(given[0])
    if block is None or block.type != "compound_statement":
        return ()
    behind = [each for each in uncommented(block) if each.start_byte >= statement.end_byte]
    uses = [each for each in behind if _names(source, each, name)]
    if not uses:
        return _behind_loop(source, statement, name, at)
    last = uses[-1]
    written = {
        source.node_text(each)
        for each in written_names(function)
        if statement.end_byte <= each.start_byte < last.end_byte
    }
    passed = [each for each in behind if each.start_byte <= last.start_byte]
    leaves = any(each.type in _LEAVES or any(True for _ in descendants(each, *_LEAVES)) for each in passed)
    is_meant = at is None or any(overlaps(source.span(each), at) for each in uses)
    if name in written or leaves or not is_meant:
        return ()
    return without_lines(source, statement), after_statement(source, last, [source.node_text(statement)])


def _behind_loop(source: Source, statement: Node, name: str, at: Span | None) -> tuple[TextEdit, ...]:
    """Of memory that a loop's body frees and its next turn uses again: the call moves behind the loop."""
    block = statement.parent
    loop = block.parent if block is not None else None
    if block is None or loop is None or loop.type not in LOOPS:
        return ()
    if at is not None and not overlaps(source.span(block), at):
        return ()
    around = loop.parent
    leaves = any(True for _ in descendants(block, *_LEAVES))
    set_inside = any(source.node_text(each) == name for each in written_names(loop))
    again = any(_names(source, each, name) for each in uncommented(block) if each.end_byte <= statement.start_byte)
    if around is None or around.type != "compound_statement" or leaves or set_inside or not again:
        return ()
    return without_lines(source, statement), after_statement(source, loop, [source.node_text(statement)])


def _names(source: Source, statement: Node, name: str) -> bool:
    return any(source.node_text(each) == name for each in descendants(statement, "identifier"))
