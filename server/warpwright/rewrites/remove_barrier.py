"""Remove a barrier that orders nothing between the threads of a block.

## Before

```cuda
__global__ void reverse(float *out, const float *in, int n) {
  __shared__ float tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i < n ? in[i] : 0.0f;
  __syncthreads();
  if (i < n)
    out[i] = tile[255 - threadIdx.x];
  __syncthreads();
}

void run(float *out, const float *in, int n) {
  reverse<<<(n + 255) / 256, 256>>>(out, in, n);
}
```

## After

```cuda
__global__ void reverse(float *out, const float *in, int n) {
  __shared__ float tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i < n ? in[i] : 0.0f;
  __syncthreads();
  if (i < n)
    out[i] = tile[255 - threadIdx.x];
}

void run(float *out, const float *in, int n) {
  reverse<<<(n + 255) / 256, 256>>>(out, in, n);
}
```

## Assumes

A barrier is removed in these places alone, where the text is proof:

- at the end of the kernel, after all of its statements;
- at its start, before any statement that touches memory;
- after another barrier, with nothing between that touches memory;
- anywhere in a kernel without shared memory that stores through `__restrict__` pointers only, loads nothing through
  these, and stores through each in one statement that is in no loop.

A kernel that reads the clock, uses fences, volatile memory, inline assembly or cooperative groups keeps its barriers.

## Cost

None. Warps no longer wait for the slowest of the block.
"""

from __future__ import annotations

import re
from collections.abc import Set

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.cuda.numbers import number_at
from warpwright.facts.aliasing import restricted
from warpwright.facts.model import AccessKind, Kernel, Space
from warpwright.rewrites._code import body, in_macro, names, overlaps
from warpwright.rewrites._guards import loads_nothing
from warpwright.rewrites._layout import line_of, with_comment, without_text
from warpwright.rewrites._locals import locals_of
from warpwright.rewrites._movable import unmovable
from warpwright.rewrites._row_loop import root_name, targets
from warpwright.rewrites._threads import unfit_call
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.nodes import LOOPS, ancestors, declared_name, descendants, uncommented
from warpwright.syntax.source import Source, Span

NAME = "remove-barrier"
title = "Remove the barrier"
goals = ("speed",)
relies_on = ()

_TIMED = re.compile(
    r"\b(?:clock|clock64|__nanosleep|globaltimer|__threadfence\w*|volatile|asm|__asm__|cooperative_groups|cg|cuda"
    r"|this_thread_block|this_grid|memcpy_async|__pipeline\w*)\b"
)
"""What a barrier may stand for besides the memory that the text shows."""
_NUMBERS = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"})


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block, source = body(kernel), kernel.source
    if block is None:
        return Declined(NAME, f"The body of {kernel.name} is not in this file.")
    barriers = [n for n in descendants(block, "expression_statement") if _is_barrier(source, n)]
    if not barriers:
        return Declined(NAME, f"{kernel.name} has no barrier of its own.")
    if reason := unmovable(kernel):
        return Declined(NAME, reason)
    if tied := _TIMED.search(source.node_code(block)):
        return Declined(
            NAME, f"{kernel.name} uses `{tied.group()}`, so its barriers may be there for more than memory."
        )
    for ended in re.findall(r"~\s*(\w+)\s*\(\s*(?:void)?\s*\)\s*(?:noexcept\s*)?\{", source.code_text()):
        if re.search(rf"\b{ended}\b", source.node_code(block)):
            return Declined(NAME, f"{kernel.name} uses {ended}, whose destructor runs after the last statement.")
    idle = {} if _shares_memory(kernel, block) else dict.fromkeys(barriers, "no thread reads what another one stores")
    for barrier in barriers:
        if why := _idle_place(kernel, block, barrier, idle):
            idle[barrier] = why
    chosen = [b for b in idle if at is None or overlaps(source.span(b), at)]
    if not chosen:
        return Declined(NAME, "Every barrier here may order what threads of the block write and read.")
    chosen.sort(key=lambda b: b.start_byte)
    said = "; ".join(f"line {line_of(source, b)}: {idle[b]}" for b in chosen)
    return Rewrite(
        rewrite=NAME,
        title=title if len(chosen) == 1 else "Remove the barriers",
        source=source,
        edits=tuple(without_text(source, *with_comment(source, b)) for b in chosen),
        explanation=(
            f"A barrier makes every warp wait for the slowest of the block, so that what it wrote can be read by the "
            f"others. Here it orders nothing ({said})."
        ),
    )


def _is_barrier(source: Source, statement: Node) -> bool:
    """`__syncthreads();` in the text itself, in braces."""
    call = uncommented(statement)[0] if len(uncommented(statement)) == 1 else None
    plain = call is not None and call.type == "call_expression" and called_name(call, source) == "__syncthreads"
    inside = statement.parent is not None and statement.parent.type == "compound_statement"
    return plain and inside and not in_macro(statement)


def _idle_place(kernel: Kernel, block: Node, barrier: Node, idle: dict[Node, str]) -> str:
    """Why a barrier orders nothing where it stands; empty where it may."""
    source = kernel.source
    siblings = [n for n in (barrier.parent or block).named_children if n.type != "comment"]
    place = siblings.index(barrier)
    if barrier.parent == block and all(_is_barrier(source, n) for n in siblings[place + 1 :]):
        return "the kernel ends after it"
    before, own = place - 1, _own_names(kernel)
    while before >= 0 and (siblings[before] in idle or _touches_nothing(source, siblings[before], own)):
        before -= 1
    if before >= 0 and _is_barrier(source, siblings[before]):
        return f"the one at line {line_of(source, siblings[before])} has no memory access after it"
    if before < 0 and barrier.parent == block:
        return "no thread has touched memory before"
    return ""


def _touches_nothing(source: Source, statement: Node, own: Set[str]) -> bool:
    """Whether a statement, not a barrier, only computes from the thread's own variables, or declares shared memory."""
    if _is_barrier(source, statement):
        return False
    if statement.type == "declaration" and "__shared__" in source.node_code(statement):
        return not any(True for _ in descendants(statement, "init_declarator"))
    if any(True for _ in descendants(statement, "function_declarator", "argument_list", "initializer_list")):
        return False  # a constructor may do anything: `Scan scan(tile);`
    used = {source.node_text(n) for n in descendants(statement, "identifier")} - own - _NUMBERS
    return loads_nothing(source, statement) and all(number_at(source, statement, name) is not None for name in used)


def _own_names(kernel: Kernel) -> Set[str]:
    """The parameters and variables that are a thread's own: neither shared, nor static, nor another's by reference."""
    source, block, variables = kernel.source, body(kernel), locals_of(kernel)
    others = {
        declared_name(source, declarator)
        for declaration in (descendants(block, "declaration") if block is not None else ())
        for declarator in declaration.children_by_field_name("declarator")
        if re.search(r"__shared__|\bstatic\b|\bextern\b|&", source.code_text(declaration.start_byte, _end(declarator)))
    }
    return (variables.parameters | variables.types.keys()) - others


def _end(declarator: Node) -> int:
    """The first byte behind what a declarator declares, without its value."""
    inner = declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else declarator
    return (inner or declarator).end_byte


def _shares_memory(kernel: Kernel, block: Node) -> bool:
    """Whether threads of a block may read what others of it write, as far as the text lets that be ruled out."""
    source, apart = kernel.source, restricted(kernel)
    if kernel.shared_arrays or "__shared__" in source.node_code(block) or kernel.incomplete:
        return True
    if unfit_call(kernel, block):
        return True
    if any(a.space is Space.SHARED or a.kind is AccessKind.ATOMIC for a in kernel.accesses):
        return True
    if any(True for _ in descendants(block, "reference_declarator", "pointer_declarator")):
        return True
    own, stored = _own_names(kernel), set[str]()
    for target in targets(block, source):
        root = root_name(source, target)
        if target.type == "call_expression":
            return True
        if target.type == "identifier" or (target.type == "field_expression" and "->" not in source.node_code(target)):
            if root not in own:
                return True
            continue
        if root not in apart or any(not _is_stored(use) for use in names(block, source, root)):
            return True
        again = any(n.type in LOOPS for n in ancestors(target))
        if root in stored or again:
            return True  # of two stores to an element, the later one has to come last
        stored.add(root)
    return False


def _is_stored(use: Node) -> bool:
    """Whether a use is that of an element on the left of a plain `=`."""
    for node in ancestors(use):
        if node.type == "assignment_expression":
            left, operator = node.child_by_field_name("left"), node.child_by_field_name("operator")
            inside = left is not None and left.start_byte <= use.start_byte < left.end_byte
            return inside and operator is not None and operator.type == "="
        if node.type not in (
            "subscript_expression",
            "field_expression",
            "pointer_expression",
            "parenthesized_expression",
        ):
            return False
    return False
