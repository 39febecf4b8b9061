"""Do the last five steps of a reduction in shared memory by shuffles within one warp.

## Before

```cuda
__global__ void sum(float *out, const float *in) {
  __shared__ float partial[256];
  unsigned int tid = threadIdx.x;
  partial[tid] = in[blockIdx.x * blockDim.x + tid];
  __syncthreads();
  for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (tid < s)
      partial[tid] += partial[tid + s];
    __syncthreads();
  }
  if (tid == 0)
    out[blockIdx.x] = partial[0];
}

void run(float *out, const float *in) {
  sum<<<64, 256>>>(out, in);
}
```

## After

```cuda
__global__ void sum(float *out, const float *in) {
  __shared__ float partial[256];
  unsigned int tid = threadIdx.x;
  partial[tid] = in[blockIdx.x * blockDim.x + tid];
  __syncthreads();
  for (unsigned int s = blockDim.x / 2; s > 16; s >>= 1) {
    if (tid < s)
      partial[tid] += partial[tid + s];
    __syncthreads();
  }
  if (tid < 32) {
    float value = partial[tid];
    for (int offset = 16; offset > 0; offset >>= 1)
      value += __shfl_down_sync(0xffffffff, value, offset);
    if (tid == 0)
      partial[0] = value;
  }
  if (tid == 0)
    out[blockIdx.x] = partial[0];
}

void run(float *out, const float *in) {
  sum<<<64, 256>>>(out, in);
}
```

Where other threads than the first read the result, or the array is used again, a barrier follows the shuffles.

## Assumes

- Every launch of the kernel is found, with a one-dimensional block of a power of two threads, at least 32, and the
  loop runs from half of it down to 1.
- The guarded statements combine `a[tid]` with `a[tid + s]` by `+`, `*`, `&`, `|`, `^`, min or max; a barrier stands
  before or after them in the same iteration, and the loop does nothing else. The elements are numbers of 4 or 8 bytes.
- Every thread of the block comes to the loop, or none: a condition around it and a `return` before it hold for the
  whole block, as `if (blockIdx.x >= rows) return;`.
- After the loop only element 0 is read, until each thread has set its element again.

## Cost

None at run time: five barriers and the shared memory between them are saved. The pairs that are combined stay the same
as before, so the result is the same bit for bit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.cuda.numbers import number_at
from warpwright.facts.model import WARP, Kernel
from warpwright.facts.types import CType
from warpwright.rewrites._accumulate import Update, combined, match_update, shuffled_type
from warpwright.rewrites._code import (
    NoMatchError,
    body_of,
    in_macro,
    is_power_of_two,
    matched,
    names,
    overlaps,
    squeezed,
)
from warpwright.rewrites._indent import braced_lines
from warpwright.rewrites._interleaved import is_barrier, is_thread_number, statements_of
from warpwright.rewrites._launched import flat_block_of, found_launches
from warpwright.rewrites._layout import after_statement, free_name, indent_unit, line_of
from warpwright.rewrites._templates import written_as
from warpwright.rewrites._tree_reduction import (
    by_first_thread,
    require_reorderable,
    require_unread,
    require_whole_block,
)
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.code import plain
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import LOOPS, ancestors, descendants
from warpwright.syntax.source import Source, Span

NAME = "shuffle-reduction"
title = "Finish the reduction with warp shuffles"
goals = ("speed",)
relies_on = (Reliance.BLOCK,)

STEPS = 5
"""Steps that halve 32 lanes to one."""


@dataclass(frozen=True, slots=True)
class HalvingLoop:
    """`for (s = half of the block; s > 0; s /= 2) { if (tid < s) updates; barrier; }`, or the same as a `while`.

    `is_ready`: a barrier is the last thing of an iteration, so that none is needed behind the loop.
    """

    node: Node
    step: str
    condition: Node
    thread: str
    barrier: str
    is_ready: bool
    updates: tuple[Update, ...]


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = body_of(kernel)
    reason = "No loop here halves its variable down to 1, as a reduction with sequential addressing does."
    for node in descendants(block, "for_statement", "while_statement"):
        if at is not None and not overlaps(kernel.source.span(node), at):
            continue
        try:
            return _rewrite(kernel, block, _match(kernel.source, block, node))
        except NoMatchError as mismatch:
            reason = str(mismatch) or reason
    return Declined(NAME, reason)


def _match(source: Source, block: Node, node: Node) -> HalvingLoop:
    condition = node.child_by_field_name("condition")
    if condition is not None and condition.type == "condition_clause":
        condition = condition.child_by_field_name("value")
    if condition is None or in_macro(node):
        raise NoMatchError
    statements = statements_of(node.child_by_field_name("body"))
    spelled = squeezed(source.node_code(condition))
    found = re.fullmatch(r"(?P<a>\w+)(?:>0[uU]?|>=1[uU]?|!=0[uU]?)?|0[uU]?<(?P<b>\w+)", spelled)
    step = (found["a"] or found["b"]) if found else ""
    update = node.child_by_field_name("update")
    if node.type == "while_statement":
        steps = [s for s in statements if s.type == "expression_statement" and _halves(source, s, step)]
        update = steps[0] if len(steps) == 1 else None
        statements = [s for s in statements if s not in steps]
    if update is None or not _halves(source, update, step or r"\w+"):
        raise NoMatchError
    if not found:
        raise NoMatchError(
            f"The loop at line {line_of(source, node)} does not run down to a step of 1: nothing is left to shuffle."
        )
    branches = [s for s in statements if s.type == "if_statement"]
    if not branches and not any(is_barrier(s, source) for s in statements):
        raise NoMatchError
    if len(branches) != 1 or branches[0].child_by_field_name("alternative") is not None:
        raise NoMatchError(f"The loop over {step} does not have exactly one `if` without `else`.")
    others = [s for s in statements if s is not branches[0]]
    barriers = [s for s in others if is_barrier(s, source)]
    if len(barriers) != len(others):
        other = next(s for s in others if s not in barriers)
        raise NoMatchError(
            f"The loop over {step} does something other than the reduction at line {line_of(source, other)}."
        )
    if not barriers:
        raise NoMatchError(f"No barrier stands in the loop over {step}.")
    if update.start_byte < branches[0].start_byte and node.type == "while_statement":
        raise NoMatchError(f"The loop over {step} halves it before the step.")
    clause = branches[0].child_by_field_name("condition")
    guard = squeezed(source.node_code(clause)) if clause is not None else ""
    tested = re.fullmatch(rf"(?P<a>[\w.]+)<{step}|{step}>(?P<b>[\w.]+)", guard)
    thread = (tested["a"] or tested["b"]) if tested else ""
    if not thread or not is_thread_number(source, block, thread):
        raise NoMatchError(f"The `if` in the loop over {step} does not test that threadIdx.x is less than {step}.")
    return HalvingLoop(
        node,
        step,
        condition,
        thread,
        source.node_text(barriers[0]),
        barriers[-1].start_byte > branches[0].start_byte,
        tuple(_update(source, block, s, step) for s in statements_of(branches[0].child_by_field_name("consequence"))),
    )


def _halves(source: Source, node: Node, step: str) -> bool:
    text = squeezed(source.node_code(node)).rstrip(";")
    return re.fullmatch(rf"(?P<s>{step})(?:>>=1|/=2[uU]?|=(?P=s)(?:/2[uU]?|>>1))", text) is not None


def _update(source: Source, block: Node, statement: Node, step: str) -> Update:
    """The statement as `a[tid] op= a[tid + s]`."""
    update = match_update(source, statement)
    found = re.fullmatch(r"(\w+)\[([\w.]+)\]", squeezed(source.node_code(update.target)) if update is not None else "")
    if update is not None and update.operand is not None and found and not update.negated:
        array, thread = found.groups()
        theirs = (f"{array}[{thread}+{step}]", f"{array}[{step}+{thread}]")
        if squeezed(source.node_code(update.operand)) in theirs and is_thread_number(source, block, thread):
            return update
    raise NoMatchError(
        f"The statement at line {line_of(source, statement)} does not combine an element of the thread's index with "
        f"the one that is {step} further on by an operation that may be reordered."
    )


def _rewrite(kernel: Kernel, block: Node, loop: HalvingLoop) -> Rewrite:
    source = kernel.source
    threads = _require_block(kernel, block, loop)
    require_whole_block(kernel, block, loop.node)
    arrays = [squeezed(source.node_code(u.target)).partition("[")[0] for u in loop.updates]
    kinds: list[tuple[str, CType]] = []
    for array in arrays:
        kinds.append(_element(kernel, array))
        require_reorderable(kernel, array)
        require_unread(kernel, loop.node, array)
    if len(set(arrays)) != len(arrays):
        raise NoMatchError(f"The loop over {loop.step} combines one array in two ways.")
    if loop.node.parent is None or loop.node.parent.type != "compound_statement":
        raise NoMatchError(f"The loop over {loop.step} is the body of another statement without braces.")
    initializer = loop.node.child_by_field_name("initializer")
    outside = initializer is None or initializer.type != "declaration"
    if outside and any(n.start_byte >= loop.node.end_byte for n in names(block, source, loop.step)):
        raise NoMatchError(f"`{loop.step}` is used after the loop, where it would have another value.")
    lines = _warp_lines(kernel, block, loop, arrays, kinds)
    again = _is_used_again(source, block, loop, arrays)
    listed = " and ".join(arrays)
    steps = max(threads).bit_length() - 1
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=source,
        edits=(
            TextEdit(loop.condition.start_byte, loop.condition.end_byte, f"{loop.step} > {WARP // 2}"),
            after_statement(source, loop.node, lines + ([loop.barrier] if again else [])),
        ),
        explanation=(
            f"The loop took {steps} steps with a barrier each, the last {STEPS} of them for {WARP} elements of "
            f"{listed}. It stops at {WARP} elements now, and the first warp combines these by __shfl_down_sync, "
            "in registers and without barriers. The same pairs are combined as before, so the result is the same bit "
            "for bit."
        ),
    )


def _warp_lines(
    kernel: Kernel, block: Node, loop: HalvingLoop, arrays: list[str], kinds: list[tuple[str, CType]]
) -> list[str]:
    """The statements that the first warp does behind the loop."""
    text, unit = kernel.span.code, indent_unit(kernel.source, block)
    offset = free_name(text, "offset")
    values = [free_name(text, "value" if len(arrays) == 1 else f"{array}_value") for array in arrays]
    steps: list[str] = []
    for update, array, value, (name, kind) in zip(loop.updates, arrays, values, kinds, strict=True):
        other = f"__shfl_down_sync(0xffffffff, {value}, {offset})"
        if update.operation in ("max", "min") and not update.function:
            theirs = free_name(text, "other" if len(arrays) == 1 else f"other_{array}")
            steps += _compared(kernel.source, update, value, f"{name} {theirs} = {other};")
        else:
            steps.append(combined(update.operation, update.function, kind, value, other))
    stores = [f"{array}[0] = {value};" for array, value in zip(arrays, values, strict=True)]
    return [
        *([] if loop.is_ready else [loop.barrier]),
        f"if ({loop.thread} < {WARP}) {{",
        *(
            f"{unit}{name} {value} = {array}[{loop.thread}];"
            for value, array, (name, _) in zip(values, arrays, kinds, strict=True)
        ),
        *(
            unit + line
            for line in (
                *braced_lines(f"for (int {offset} = {WARP // 2}; {offset} > 0; {offset} >>= 1)", steps, unit),
                *braced_lines(f"if ({loop.thread} == 0)", stores, unit),
            )
        ),
        "}",
    ]


def _compared(source: Source, update: Update, value: str, other: str) -> list[str]:
    """The user's own comparison, of a value in a register and one from another lane, so that a NaN goes its way."""
    target, operand = squeezed(source.node_code(update.target)), update.operand
    new, name = "", other.split(" = ", maxsplit=1)[0].rpartition(" ")[2]
    at = update.node.start_byte
    for element in descendants(update.node, "subscript_expression"):
        spelled = squeezed(source.node_code(element))
        with_ = (
            value if spelled == target else name if operand and spelled == squeezed(source.node_code(operand)) else ""
        )
        if not with_:
            raise NoMatchError(f"The comparison at line {line_of(source, element)} reads more than the two elements.")
        new += source.text(at, element.start_byte) + with_
        at = element.end_byte
    new += source.text(at, update.node.end_byte)
    return [other, re.sub(r"\s+", " ", plain(new)).strip()]


def _element(kernel: Kernel, array: str) -> tuple[str, CType]:
    """The type of an array's elements, as written and as it is."""
    shared = next((a for a in kernel.shared_arrays if a.name == array), None)
    if shared is None:
        raise NoMatchError(f"`{array}` is not a __shared__ array of {kernel.name}.")
    if "volatile" in kernel.span.code:
        raise NoMatchError(f"{kernel.name} uses volatile memory, whose reads and writes may not change.")
    kind = shuffled_type(shared.element_type)
    if kind is None:
        raise NoMatchError(f"`{array}` holds {shared.element_type}, which is not known to be what a shuffle takes.")
    return written_as(kernel, array, shared.element_type), kind


def _require_block(kernel: Kernel, block: Node, loop: HalvingLoop) -> list[int]:
    """The threads of the launches' blocks, powers of two, from whose half the loop starts."""
    start = _start(kernel.source, block, loop)
    found: list[int] = []
    for launch in matched(found_launches(kernel)):
        x = matched(flat_block_of(launch))
        if not is_power_of_two(x) or x < WARP:
            raise NoMatchError(
                f"The block at {launch.source} has {x} threads, which is not a power of two of {WARP} or more."
            )
        if not _is_half(kernel.source, loop.node, start, x):
            raise NoMatchError(
                f"The loop starts at {start}, which is not known to be half of the {x} threads at {launch.source}."
            )
        found.append(x)
    return found


def _start(source: Source, block: Node, loop: HalvingLoop) -> str:
    """What the step starts at, squeezed; empty where that is not set once, by the loop or right before it."""
    initializer = loop.node.child_by_field_name("initializer")
    if initializer is not None:
        return _given(source, initializer, loop.step)
    earlier = loop.node.prev_named_sibling
    while earlier is not None:
        if any(names(earlier, source, loop.step)):
            return _given(source, earlier, loop.step)
        earlier = earlier.prev_named_sibling
    return ""


def _given(source: Source, node: Node, step: str) -> str:
    """What a declaration or an assignment sets the step to; empty for anything else."""
    if node.type not in ("declaration", "expression_statement", "assignment_expression"):
        return ""
    for part in (node, *descendants(node, "init_declarator", "assignment_expression")):
        name = part.child_by_field_name("declarator") or part.child_by_field_name("left")
        value = part.child_by_field_name("value") or part.child_by_field_name("right")
        if name is not None and value is not None and source.node_text(name) == step:
            return squeezed(source.node_code(value))
    return ""


def _is_half(source: Source, block: Node, text: str, threads: int) -> bool:
    found = re.fullmatch(r"\(?\(?([\w.]+)\)?(?:/2[uU]?|>>1[uU]?)\)?", text)
    whole = found[1] if found else ""
    if whole:
        return whole == "blockDim.x" or number_at(source, block, whole) == threads
    half = number_at(source, block, text)
    return half is not None and half * 2 == threads


def _is_used_again(source: Source, block: Node, loop: HalvingLoop, arrays: list[str]) -> bool:
    """Whether another thread than the first uses one of the arrays behind the loop, or a loop comes back to it."""
    if any(n.type in LOOPS for n in ancestors(loop.node)):
        return True
    return any(
        use.start_byte >= loop.node.end_byte and not by_first_thread(source, use, loop.thread)
        for array in arrays
        for use in names(block, source, array)
    )
