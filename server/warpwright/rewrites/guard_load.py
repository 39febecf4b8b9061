"""Test a load that goes beyond its array as the kernel tests its stores.

## Before

```cuda
constexpr int kCount = 1000;

__global__ void smooth(float *out, const float *in, int n) {
  __shared__ float tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = in[i];
  __syncthreads();
  if (i < n)
    out[i] = 0.5f * tile[threadIdx.x] + 0.25f * tile[threadIdx.x / 2];
}

void run(float *host) {
  float *in, *out;
  cudaMalloc(&in, kCount * sizeof(float));
  cudaMalloc(&out, kCount * sizeof(float));
  cudaMemcpy(in, host, kCount * sizeof(float), cudaMemcpyHostToDevice);
  smooth<<<(kCount + 255) / 256, 256>>>(out, in, kCount);
  cudaMemcpy(host, out, kCount * sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(in);
  cudaFree(out);
}
```

## After

```cuda
constexpr int kCount = 1000;

__global__ void smooth(float *out, const float *in, int n) {
  __shared__ float tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = (i < n ? in[i] : 0);
  __syncthreads();
  if (i < n)
    out[i] = 0.5f * tile[threadIdx.x] + 0.25f * tile[threadIdx.x / 2];
}

void run(float *host) {
  float *in, *out;
  cudaMalloc(&in, kCount * sizeof(float));
  cudaMalloc(&out, kCount * sizeof(float));
  cudaMemcpy(in, host, kCount * sizeof(float), cudaMemcpyHostToDevice);
  smooth<<<(kCount + 255) / 256, 256>>>(out, in, kCount);
  cudaMemcpy(host, out, kCount * sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(in);
  cudaFree(out);
}
```

Where all threads have to come to a barrier, no thread can leave before it, and each load is tested by itself.

## Assumes

- An `if` of the kernel compares a variable that is set once with a count that never changes. With that test no access
  of the kernel is seen to lie outside of its array any more.
- What is loaded beyond the array is not meant: threads that use it get 0 instead.

## Cost

A comparison for each load. What threads within the bounds load stays the same bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from warpwright.facts.model import AccessKind, Kernel, OutOfBounds
from warpwright.facts.types import builtin_type
from warpwright.rewrites._block_tests import is_outer
from warpwright.rewrites._code import body, condition_of, in_macro, overlaps
from warpwright.rewrites._first_thread import conjuncts
from warpwright.rewrites._gain import edited_kernel
from warpwright.rewrites._locals import locals_of
from warpwright.rewrites._movable import unmovable
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import ancestors, descendants, node_at
from warpwright.syntax.source import Source, Span

NAME = "guard-load"
title = "Guard the load like the store"
goals = ("fix",)
relies_on = ()

_QUALIFIERS = ("const", "__restrict__", "__restrict", "restrict")


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    made = _guarded(kernel, at)
    return Declined(NAME, made) if isinstance(made, str) else made


def _guarded(kernel: Kernel, at: Span | None) -> Rewrite | str:
    source, block = kernel.source, body(kernel)
    if block is None or not kernel.outside:
        return f"No access of {kernel.name} is known to lie outside of its array."
    if at is not None and not any(overlaps(found.span, at) for found in kernel.outside):
        return f"What is marked of {kernel.name} is not known to lie outside of its array."
    if reason := unmovable(kernel):
        return reason
    loads: dict[int, Node] = {}
    for found in kernel.outside:
        node = _load(kernel, block, found)
        if node is None:
            return f"The access of {found.array} at line {found.span.line} is not a plain load of one number."
        loads[node.start_byte] = node
    first = min(loads.values(), key=lambda node: node.start_byte)
    for test in _tests(kernel, block, first):
        if any(_stands_under(source, node, test, block) for node in loads.values()):
            continue
        edits = tuple(
            TextEdit(node.start_byte, node.end_byte, f"({test} ? {source.node_text(node)} : 0)")
            for node in loads.values()
        )
        if _is_cured(kernel, edits):
            return _rewrite(kernel, loads, test, edits)
    return f"No test in {kernel.name} is one that would keep its loads within their arrays."


def _rewrite(kernel: Kernel, loads: dict[int, Node], test: str, edits: tuple[TextEdit, ...]) -> Rewrite:
    found = kernel.outside[0]
    what = "the load stays" if len(loads) == 1 else f"{len(loads)} loads stay"
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=kernel.source,
        edits=edits,
        explanation=(
            f"Thread {found.thread} of block {found.block[0]} loads from {found.array} beyond its end. Behind "
            f"`{test}`, which the kernel tests elsewhere, {what} within the array; the other threads get 0, and still "
            "come to every barrier."
        ),
        safe=False,
    )


def _load(kernel: Kernel, block: Node, found: OutOfBounds) -> Node | None:
    """The element that an access loads; None for a store, an address, a structure and what is not in the kernel's
    text."""
    source, span = kernel.source, found.span
    if found.kind is not AccessKind.LOAD or span.source is not source:
        return None
    node = node_at(source.root, span.start, span.end)
    parent = node.parent if node is not None else None
    if node is None or parent is None or node.type != "subscript_expression" or in_macro(node):
        return None
    if not block.start_byte <= node.start_byte < block.end_byte or parent.type == "field_expression":
        return None
    if parent.type in ("pointer_expression", "update_expression", "reference_declarator"):
        return None
    if parent.type == "assignment_expression" and parent.child_by_field_name("left") == node:
        return None
    argument = node.child_by_field_name("argument")
    name = source.node_text(argument) if argument is not None else ""
    for parameter in kernel.parameters:
        if parameter.name == name:
            words = parameter.type.replace("*", " ").split()
            kind = builtin_type(" ".join(word for word in words if word not in (*_QUALIFIERS, name)))
            number = kind is not None and (kind.kind in ("int", "uint") or kind.name in ("float", "double"))
            return node if number else None  # `i < n ? a : 0` of a half does not compile
    return None


def _tests(kernel: Kernel, block: Node, before: Node) -> Iterator[str]:
    """`i < n` for each comparison of the kernel's `if`s of a variable that keeps its value and is set before a load
    with a count that never changes."""
    source, variables = kernel.source, locals_of(kernel)
    seen: set[str] = set()
    for branch in descendants(block, "if_statement"):
        condition = condition_of(branch)
        for leaf in conjuncts(condition) if condition is not None else []:
            left, right = leaf.child_by_field_name("left"), leaf.child_by_field_name("right")
            if left is None or right is None or not any(child.type == "<" for child in leaf.children):
                continue
            value, text = variables.values.get(source.node_text(left)), source.node_text(leaf)
            known = right.type in ("identifier", "number_literal") and source.node_text(right) not in variables.changed
            inside = source.node_text(right) in variables.types and not variables.is_fixed(source.node_text(right))
            outer = value is not None and is_outer(value, block) and value.end_byte <= before.start_byte
            if left.type == "identifier" and outer and known and not inside and text not in seen:
                seen.add(text)
                yield text


def _stands_under(source: Source, node: Node, test: str, block: Node) -> bool:
    for around in ancestors(node):
        if around == block:
            return False
        condition = condition_of(around) if around.type == "if_statement" else None
        if condition is not None and any(source.node_text(leaf) == test for leaf in conjuncts(condition)):
            return True
    return False


def _is_cured(kernel: Kernel, edits: tuple[TextEdit, ...]) -> bool:
    """Whether no access is seen to lie outside of its array after the edits."""
    new = edited_kernel(kernel, list(edits))
    return new is not None and not new.outside and not new.incomplete
