"""Give a warp's shuffle or vote the mask of the lanes that come to it.

## Before

```cuda
__global__ void peers(unsigned *out, const int *keys, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = __popc(__match_any_sync(0xffffffffu, keys[i]));
}

void run(const int *host) {
  unsigned *out;
  int *keys;
  cudaMalloc(&out, 200 * sizeof(unsigned));
  cudaMalloc(&keys, 200 * sizeof(int));
  cudaMemcpy(keys, host, 200 * sizeof(int), cudaMemcpyHostToDevice);
  peers<<<2, 128>>>(out, keys, 200);
}
```

## After

```cuda
__global__ void peers(unsigned *out, const int *keys, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned lanes = __ballot_sync(0xffffffffu, i < n);
  if (i < n)
    out[i] = __popc(__match_any_sync(lanes, keys[i]));
}

void run(const int *host) {
  unsigned *out;
  int *keys;
  cudaMalloc(&out, 200 * sizeof(unsigned));
  cudaMalloc(&keys, 200 * sizeof(int));
  cudaMemcpy(keys, host, 200 * sizeof(int), cudaMemcpyHostToDevice);
  peers<<<2, 128>>>(out, keys, 200);
}
```

A mask that leaves out lanes which call names all 32 where all of them come.

## Assumes

- All threads of the block come to the call, or to the `if` around it: what stands around is the same for the block.
- A shuffle under an `if` is left alone: whom it reads from is to be decided as well.

## Cost

A vote before the branch.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.facts.model import Kernel
from warpwright.rewrites._alike import require_alike_around
from warpwright.rewrites._code import NoMatchError, body_of, condition_of, in_macro, overlaps
from warpwright.rewrites._layout import before_statement, free_name
from warpwright.rewrites._locals import locals_of
from warpwright.rewrites._movable import unmovable
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import LOOPS, ancestors, descendants, enclosing, node_at, uncast, uncommented
from warpwright.syntax.source import Span

NAME = "name-lanes-that-come"
title = "Name the lanes that come"
goals = ("fix",)
relies_on = ()

_MASKED = re.compile(r"__(?:shfl(?:_up|_down|_xor)?|any|all|ballot|uni|match_any|match_all|reduce_\w+)_sync")
_WHOLE = "0xffffffffu"
_CHANGES = ("call_expression", "assignment_expression", "update_expression")


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    reason = "No mask here is known to be another than that of the lanes that come."
    for wait in kernel.missed_waits:
        call = node_at(wait.span.source.root, wait.span.start, wait.span.end)
        if wait.wanted or call is None or (at is not None and not overlaps(wait.span, at)):
            continue
        try:
            return _named(kernel, wait.span, is_left_out=wait.threads[1] is None)
        except NoMatchError as mismatch:
            reason = str(mismatch)
    return Declined(NAME, reason)


def _named(kernel: Kernel, span: Span, *, is_left_out: bool) -> Rewrite:
    source, block = kernel.source, body_of(kernel)
    if reason := unmovable(kernel):
        raise NoMatchError(reason)
    call = node_at(source.root, span.start, span.end) if span.source is source else None
    name = called_name(call, source) if call is not None and call.type == "call_expression" else ""
    if call is None or in_macro(call) or not _MASKED.fullmatch(name):
        raise NoMatchError("No call of a shuffle or a vote of the kernel's own stands there.")
    mask = uncommented(call.child_by_field_name("arguments"))[0]
    if is_left_out:
        require_alike_around(kernel, block, call)
        return _rewrite(kernel, (_replaced(kernel, mask, _WHOLE),))
    if name.startswith("__shfl"):
        raise NoMatchError("Whom a shuffle reads from under a condition is the author's to say.")
    branch = enclosing(call, "if_statement")
    test = condition_of(branch) if branch is not None else None
    taken = branch.child_by_field_name("consequence") if branch is not None else None
    if branch is None or test is None or taken is None or not taken.start_byte <= call.start_byte < taken.end_byte:
        raise NoMatchError("The call does not stand under an `if` of its own.")
    between = [each for each in ancestors(call) if taken.start_byte <= each.start_byte and each != taken]
    if any(each.type in LOOPS for each in between):
        raise NoMatchError("The call stands in a loop under the `if`.")
    if any(True for _ in descendants(test, *_CHANGES)):
        raise NoMatchError(f"The condition `{source.node_text(test)}` does something.")
    if branch.parent is None or branch.parent.type != "compound_statement":
        raise NoMatchError("The `if` is the body of another statement without braces.")
    require_alike_around(kernel, block, branch)
    lanes = free_name(kernel.span.code, "lanes")
    vote = f"const unsigned {lanes} = __ballot_sync({_WHOLE}, {source.node_text(test)});"
    return _rewrite(kernel, (before_statement(source, branch, [vote]), TextEdit(mask.start_byte, mask.end_byte, lanes)))


def _replaced(kernel: Kernel, mask: Node, text: str) -> TextEdit:
    """Another mask where it is written: a number in the call, or the value that a variable gets once."""
    source, variables = kernel.source, locals_of(kernel)
    plain = uncast(source, mask)
    value = variables.values.get(source.node_code(plain)) if plain.type == "identifier" else None
    if value is not None and variables.is_fixed(source.node_code(plain)):
        return TextEdit(value.start_byte, value.end_byte, text)
    return TextEdit(mask.start_byte, mask.end_byte, text)


def _rewrite(kernel: Kernel, edits: tuple[TextEdit, ...]) -> Rewrite:
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=kernel.source,
        edits=edits,
        explanation=(
            "The lanes of a warp that meet have to be those that the mask names: one that it names is waited for, and "
            "one that it does not name may not call."
        ),
    )
