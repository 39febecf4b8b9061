"""Count in bins of each block's own in shared memory, and add these to the histogram at the end.

## Before

```cuda
__global__ void histogram(unsigned int *bins, const unsigned char *data, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    atomicAdd(&bins[data[i]], 1);
}

void run(unsigned int *bins, const unsigned char *data, int n) {
  histogram<<<(n + 255) / 256, 256>>>(bins, data, n);
}
```

## After

```cuda
__global__ void histogram(unsigned int *bins, const unsigned char *data, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __shared__ unsigned int own_bins[256];
  for (int bin = threadIdx.x; bin < 256; bin += blockDim.x)
    own_bins[bin] = 0;
  __syncthreads();
  if (i < n)
    atomicAdd(&own_bins[data[i]], 1);
  __syncthreads();
  for (int bin = threadIdx.x; bin < 256; bin += blockDim.x)
    if (own_bins[bin] != 0)
      atomicAdd(&bins[bin], own_bins[bin]);
}

void run(unsigned int *bins, const unsigned char *data, int n) {
  histogram<<<(n + 255) / 256, 256>>>(bins, data, n);
}
```

An early return, `if (i >= n) return;`, becomes an `if (i < n) {...}` around what follows, so that every thread reaches
the barriers.

## Assumes

- The number of bins follows from the text: the index is a byte, has a mask, a remainder, a shift or a `min` with a
  constant, or stands under a test against one, or every launch hands over memory that cudaMalloc gave in a size that is
  known. It is not negative.
- The bins are integers or floats of 32 bits, few for the threads of a block, and fit with the rest of its shared memory
  in 48 KB.
- The kernel uses the histogram for nothing else. All launches are found, and every thread comes to the statement at
  the kernel's outermost level in which the atomic stands.

## Cost

4 bytes of shared memory for each bin, two barriers, and for each block an atomic for each bin that it counted in. Where
a thread has a single element and the data fill all bins evenly, that gains little; threads that take many elements
each gain most. Integer sums stay the same bit for bit. The order in which atomics add floats was never fixed; sums by
block change it once more, so the last bits can change: the error of any order of n numbers is at most about
n * 2^-24 * sum(|x|) (N. J. Higham, Accuracy and Stability of Numerical Algorithms, section 4.2).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.cuda.numbers import number_at
from warpwright.facts.model import Access, AccessKind, Basis, Kernel, Space
from warpwright.facts.types import CType, builtin_type
from warpwright.rewrites._allocations import elements_allocated
from warpwright.rewrites._code import (
    NoMatchError,
    body_of,
    host_launches,
    in_macro,
    matched,
    names,
    overlaps,
    squeezed,
)
from warpwright.rewrites._early import around_rest, closing, early_returns, without_overlap
from warpwright.rewrites._guards import comparisons
from warpwright.rewrites._launched import block_of, found_launches
from warpwright.rewrites._layout import after_statement, before_statement, free_name, indent_unit, line_of
from warpwright.rewrites._limits import SHARED_BYTES
from warpwright.rewrites._locals import Locals, locals_of
from warpwright.rewrites._movable import unmovable
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import ancestors, node_at, uncommented
from warpwright.syntax.source import Span

NAME = "privatize-histogram"
title = "Privatize the histogram in shared memory"
goals = ("speed",)
relies_on = (Reliance.BLOCK, Reliance.SHARED, Reliance.SIZES)

BINS_PER_THREAD = 4
"""Bins for each thread of a block up to which adding them up at the end is taken to pay."""
IN_LOOP = 16
"""The same where each thread counts in a loop."""
_FENCE = re.compile(r"\b(?:__threadfence\w*|atomic_thread_fence|this_grid|__nanosleep)\b")
"""By what a kernel tells other blocks, or the host, that its counts are there: they would be added up behind it."""


@dataclass(frozen=True, slots=True)
class _Count:
    """`atomicAdd(&array[index], value);`, and the statement at the kernel's outermost level around it."""

    array: str
    name: Node
    index: Node
    statement: Node
    outer: Node
    kind: CType


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = body_of(kernel)
    reason = "Nothing to gain: no atomic here counts at a data-dependent address of global memory."
    atomics = [
        a
        for a in kernel.accesses
        if a.kind is AccessKind.ATOMIC and a.space is Space.GLOBAL and (at is None or overlaps(a.span, at))
    ]
    for access in atomics:
        if access.basis not in (Basis.DATA_DEPENDENT, Basis.UNKNOWN):
            continue
        try:
            return _rewrite(kernel, block, access, _matched(kernel, block, access))
        except NoMatchError as mismatch:
            reason = str(mismatch)
    return Declined(NAME, reason)


def _matched(kernel: Kernel, block: Node, access: Access) -> _Count:
    source, span = kernel.source, access.span
    call = node_at(source.root, span.start, span.end) if span.source is source else None
    own = call is not None and block.start_byte <= call.start_byte < block.end_byte and not in_macro(call)
    if call is None or call.type != "call_expression" or not own:
        raise NoMatchError(f"{access.expression} is not in the kernel's own text.")
    arguments = uncommented(call.child_by_field_name("arguments"))
    line = line_of(source, call)
    if called_name(call, source) not in ("atomicAdd", "atomicInc") or len(arguments) != 2:
        raise NoMatchError(f"The atomic at line {line} is not a sum, so the counts of blocks cannot be added up.")
    if called_name(call, source) == "atomicInc":
        raise NoMatchError(
            f"atomicInc at line {line} wraps around at a limit, so the counts of blocks cannot be added up."
        )
    statement = call.parent
    outer = next((n for n in ancestors(call) if n.parent == block), None)
    if statement is None or statement.type != "expression_statement" or outer is None:
        raise NoMatchError(f"What the atomic at line {line} returns is used.")
    kind = builtin_type(access.type)
    if kind is None or kind.size != 4:
        raise NoMatchError(f"The bins are {access.type or 'of an unknown type'}, not numbers of 32 bits.")
    place: Node | None = arguments[0]
    if place is not None and place.type == "pointer_expression" and source.node_code(place).startswith("&"):
        place = place.child_by_field_name("argument")
        while place is not None and place.type == "parenthesized_expression" and uncommented(place):
            place = uncommented(place)[0]
        name = place.child_by_field_name("argument") if place is not None else None
        indices = place.child_by_field_name("indices") if place is not None else None
        index = uncommented(indices)[0] if uncommented(indices) else None
    else:
        sign = place.child_by_field_name("operator") if place is not None else None
        plus = place is not None and sign is not None and source.node_text(sign) == "+"
        name = place.child_by_field_name("left") if place is not None and plus else None
        index = place.child_by_field_name("right") if place is not None and plus else None
    if name is None or index is None or name.type != "identifier":
        raise NoMatchError(f"`{source.node_text(arguments[0])}` is not a plain element of an array.")
    array = source.node_text(name)
    if not any(p.name == array and p.is_pointer for p in kernel.parameters):
        raise NoMatchError(f"`{array}` is not a pointer that the kernel is given.")
    return _Count(array, name, index, statement, outer, kind)


def _rewrite(kernel: Kernel, block: Node, access: Access, found: _Count) -> Rewrite:
    source, variables = kernel.source, locals_of(kernel)
    if reason := unmovable(kernel):
        raise NoMatchError(reason)
    if fence := _FENCE.search(source.node_code(block)):
        raise NoMatchError(f"{kernel.name} uses `{fence.group()}`, so others may read `{found.array}` while it runs.")
    early = matched(early_returns(source, block))
    early = [e for e in early if e.start_byte < found.outer.start_byte]
    for use in names(block, source, found.array):
        if use.start_byte != found.name.start_byte:
            raise NoMatchError(f"`{found.array}` is used at line {line_of(source, use)}, too.")
    count, text = _number_of_bins(kernel, variables, found)
    is_flat = _require_blocks(kernel, count, access.in_loop)
    first, last = early[0] if early else found.outer, _last(block) if early else found.outer
    words = kernel.span.code
    own, bin_ = free_name(words, f"own_{found.array}"), "bin"
    if bin_ != free_name(words, bin_):
        bin_ = free_name(words, "slot")
    thread, threads = ("threadIdx.x", "blockDim.x")
    if not is_flat:
        thread, threads = "threadIdx.y * blockDim.x + threadIdx.x", "blockDim.x * blockDim.y"
    unit = indent_unit(source, block)
    typed = {"uint": "unsigned int", "float": "float"}.get(found.kind.kind, "int")
    zero = "0" if found.kind.is_integer else "0.0f"
    head = f"for (int {bin_} = {thread}; {bin_} < {text}; {bin_} += {threads})"
    rounding = (
        ""
        if found.kind.is_integer
        else " The order of the sums, which atomics never fixed, changes, so the last bits can change."
    )
    edits = [
        before_statement(
            source,
            first,
            [
                f"__shared__ {typed} {own}[{text}];",
                head,
                f"{unit}{own}[{bin_}] = {zero};",
                "__syncthreads();",
            ],
        ),
        TextEdit(found.name.start_byte, found.name.end_byte, own),
        *(edit for guard in early for edit in around_rest(kernel, block, guard, last)),
        after_statement(
            source,
            last,
            [
                *closing(unit, len(early)),
                "__syncthreads();",
                head,
                f"{unit}if ({own}[{bin_}] != {zero})",
                f"{unit * 2}atomicAdd(&{found.array}[{bin_}], {own}[{bin_}]);",
            ],
        ),
    ]
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=source,
        edits=tuple(without_overlap(edits)),
        explanation=(
            f"All threads of the grid added to the same {count} places of global memory, and waited for each other "
            f"in the L2 cache wherever data fall together. Each block now adds to {count} bins of its own in shared "
            f"memory ({4 * count} bytes) and adds those that it used to `{found.array}` at the end, after a barrier "
            f"that all threads reach. It pays most where each thread takes many elements.{rounding}"
        ),
        safe=found.kind.is_integer,
    )


def _last(block: Node) -> Node:
    """The last statement of a block."""
    last = block.named_children[-1]
    while last.type == "comment" and last.prev_named_sibling is not None:
        last = last.prev_named_sibling
    return last


def _require_blocks(kernel: Kernel, count: int, in_loop: bool) -> bool:
    """Whether all blocks are one-dimensional; refuses blocks that are not known, or too small for the bins."""
    launches = matched(found_launches(kernel))
    for launch in launches:
        x, y, z = matched(block_of(launch))
        threads = x * y
        if z != 1:
            raise NoMatchError(f"The block of the launch at {launch.source} has three dimensions.")
        if count > threads * (IN_LOOP if in_loop else BINS_PER_THREAD):
            raise NoMatchError(
                f"Nothing to gain: {count} bins are many for the {threads} threads of the block at {launch.source}."
            )
    shared = kernel.shared_bytes
    dynamic = [launch.dynamic_shared_bytes for launch in launches]
    if shared is None or None in dynamic or shared + max(d or 0 for d in dynamic) + 4 * count > SHARED_BYTES:
        raise NoMatchError(f"{count} bins are not known to fit with the block's other shared memory in 48 KB.")
    return all(launch.block[1] == 1 for launch in launches)


def _number_of_bins(kernel: Kernel, variables: Locals, found: _Count) -> tuple[int, str]:
    """How many bins the index can reach, and how that is written."""
    source = kernel.source
    bound = _bound(kernel, variables, found.index) or _tested(kernel, variables, found) or _allocated(kernel, found)
    if bound is None:
        raise NoMatchError(f"How many bins `{source.node_text(found.index)}` can reach does not follow from the text.")
    return bound


def _allocated(kernel: Kernel, found: _Count) -> tuple[int, str] | None:
    """What every launch hands over room for: an index beyond it would be wrong today."""
    counts = [elements_allocated(kernel, launch, found.array) for launch in host_launches(kernel)]
    known = [count for count in counts if count is not None]
    return (max(known), str(max(known))) if known and len(known) == len(counts) else None


def _bound(kernel: Kernel, variables: Locals, node: Node, depth: int = 0) -> tuple[int, str] | None:
    """An exclusive upper bound of an index that is not negative, and how it is written; None where none is known."""
    source = kernel.source
    while node.type == "parenthesized_expression" and uncommented(node):
        node = uncommented(node)[0]
    if depth > 6:
        return None
    if node.type == "identifier":
        value = variables.values.get(source.node_text(node))
        kind = builtin_type(variables.types.get(source.node_text(node), ""))
        wide = kind is not None and kind.is_integer and (kind.size or 0) >= 4
        return (_bound(kernel, variables, value, depth + 1) if value is not None and wide else None) or _byte(kind)
    if node.type == "subscript_expression":
        array = node.child_by_field_name("argument")
        kind = builtin_type(variables.types.get(source.node_text(array), "")) if array is not None else None
        return _byte(kind)
    if node.type == "cast_expression":
        value, written = node.child_by_field_name("value"), node.child_by_field_name("type")
        kind = builtin_type(source.node_text(written)) if written is not None else None
        wide = kind is not None and kind.is_integer and (kind.size or 0) >= 4
        return (_bound(kernel, variables, value, depth + 1) if value is not None and wide else None) or _byte(kind)
    if node.type == "call_expression" and called_name(node, source) == "min":
        given = uncommented(node.child_by_field_name("arguments"))
        limits = [number_at(source, argument, source.node_code(argument)) for argument in given]
        largest = [limit for limit in limits if limit is not None]
        return (min(largest) + 1, str(min(largest) + 1)) if largest else None
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    operator = node.child_by_field_name("operator")
    if node.type != "binary_expression" or left is None or right is None or operator is None:
        return None
    number, sign = number_at(source, right, source.node_code(right)), source.node_text(operator)
    if number is None or number <= 0:
        return None
    inner = _bound(kernel, variables, left, depth + 1)
    if sign == "%":
        return number, source.node_text(right)
    if sign == "&":
        return number + 1, str(number + 1)
    if sign == "/" and inner is not None:
        return -(-inner[0] // number), str(-(-inner[0] // number))
    if sign == ">>" and inner is not None and number < 32:
        return ((inner[0] - 1) >> number) + 1, str(((inner[0] - 1) >> number) + 1)
    return None


def _byte(kind: CType | None) -> tuple[int, str] | None:
    return (256, "256") if kind is not None and kind.kind == "uint" and kind.size == 1 else None


def _tested(kernel: Kernel, variables: Locals, found: _Count) -> tuple[int, str] | None:
    """The constant that a condition around the statement finds the index less than, and not negative."""
    source, index = kernel.source, squeezed(source_text := kernel.source.node_code(found.index))
    if any(name in variables.changed for name in re.findall(r"[A-Za-z_]\w*", source_text)):
        return None
    kind = builtin_type(variables.types.get(index, ""))
    positive = kind is not None and kind.kind == "uint"
    below: tuple[int, str] | None = None
    child = found.statement
    for around in ancestors(found.statement):
        then = around.child_by_field_name("consequence") if around.type == "if_statement" else None
        clause = around.child_by_field_name("condition") if then is not None else None
        test = clause.child_by_field_name("value") if clause is not None and then == child else None
        for condition in comparisons(source, test, leaves=False) or []:
            left, right = squeezed(source.node_code(condition.left)), squeezed(source.node_code(condition.right))
            spelled = (left, condition.operator, right)
            positive = positive or spelled in ((index, ">=", "0"), (index, ">", "-1"), ("0", "<=", index))
            limit = number_at(source, condition.right, right)
            if left == index and limit is not None and condition.operator in ("<", "<="):
                one_more = limit + (condition.operator == "<=")
                below = (one_more, right if condition.operator == "<" else str(one_more))
        child = around
        if around == found.outer:
            break
    return below if positive else None
