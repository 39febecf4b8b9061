"""Add the barrier or the `__syncwarp()` that is missing between a write and the read of it by another thread.

## Before

```cuda
__global__ void swap_pairs(float *out, const float *in) {
  __shared__ float tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = in[i];
  out[i] = tile[255 - threadIdx.x];
}

void run(float *out, const float *in) {
  swap_pairs<<<64, 256>>>(out, in);
}
```

## After

```cuda
__global__ void swap_pairs(float *out, const float *in) {
  __shared__ float tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = in[i];
  __syncthreads();
  out[i] = tile[255 - threadIdx.x];
}

void run(float *out, const float *in) {
  swap_pairs<<<64, 256>>>(out, in);
}
```

In a loop, the barrier that keeps the next iteration's write from what is still read goes to the loop's end. A statement
in which lanes read what others write, as in `s[t] += s[t + 16];`, becomes a read, a wait and a write.

## Assumes

- It is certain that one thread reads or overwrites what another one of the block writes or reads: a race follows from
  the text, or the addresses of both are exact for the lanes of one warp, and no barrier stands between.
- The place is one that all threads of the block, or of the warp, reach equally often: read again with its waits, the
  text has fewer races each time and no wait that part of the threads may miss. No thread returns before a barrier.
- Where no race follows from the text and a run found one, the kernel synchronises by `__syncthreads()` alone: with
  `__syncwarp`, volatile memory, fences or cooperative groups it may rely on the order of a warp, and is refused.

## Cost

A wait. Without it the results depend on which warp or lane comes first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.facts.known_functions import KNOWN_FUNCTIONS
from warpwright.facts.model import WARP, Access, AccessKind, Basis, Kernel, Race, Space
from warpwright.rewrites._arrays import indices_of
from warpwright.rewrites._code import NoMatchError, body, functions_of, host_launches, in_macro, overlaps
from warpwright.rewrites._layout import after_statement, before_statement, line_of
from warpwright.rewrites._locals import locals_of
from warpwright.rewrites._movable import unmovable
from warpwright.rewrites._order import line_edits, ordered, races_of_blocks
from warpwright.rewrites._uniform import is_even_loop
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import declared_name, descendants, node_at
from warpwright.syntax.source import Source, Span

NAME = "add-barrier"
title = "Add the missing barrier"
goals = ("fix",)
relies_on = ()

_TIED = re.compile(
    r"\b(?:__syncwarp|volatile|__threadfence\w*|cooperative_groups|cg|cuda|this_thread_block|tiled_partition|__shfl\w*"
    r"|__ballot\w*|memcpy_async|__pipeline\w*|bar|barrier|sync)\b"
)
"""By what a kernel may order its threads besides `__syncthreads`."""
_BARRIER_MAKES = "__syncthreads() makes all of the block's threads"
_BARRIER = re.compile(r"\b__syncthreads\w*\s*\(")


@dataclass(frozen=True, slots=True)
class _Missing:
    """No barrier stands between two accesses; it goes before `place`, or behind it where `is_end`."""

    first: Access
    second: Access
    place: Node
    is_end: bool


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block, source = body(kernel), kernel.source
    if block is None:
        return Declined(NAME, f"The body of {kernel.name} is not in this file.")
    if races := races_of_blocks(kernel):
        return _by_races(kernel, races, at)
    _require_plain(kernel, block)
    missing = _missing(kernel, block)
    if at is not None and not any(overlaps(a.span, at) for m in missing for a in (m.first, m.second)):
        missing = []
    if not missing:
        return Declined(NAME, "No write and read of shared memory by different threads is known to lack a barrier.")
    said = "; ".join(
        f"`{m.first.expression}` at line {m.first.span.line} and `{m.second.expression}` at line {m.second.span.line}"
        for m in missing
    )
    return Rewrite(
        rewrite=NAME,
        title=title if len(missing) == 1 else "Add the missing barriers",
        source=source,
        edits=tuple(_edit(source, m) for m in missing),
        explanation=(
            "Different threads access the same element of shared memory, one of them writes it, and nothing orders the "
            f"accesses ({said}). __syncthreads() makes all threads of the block wait until the first is done."
        ),
    )


def _by_races(kernel: Kernel, races: list[Race], at: Span | None) -> Rewrite | Declined:
    if at is not None and not any(overlaps(span, at) for race in races for span in (race.write, race.other)):
        return Declined(NAME, "No wait of the block's threads orders this.")
    after = ordered(kernel)
    if after is None:
        return Declined(
            NAME, "No places are known where barriers would order every racing access and that every thread reaches."
        )
    edits = line_edits(kernel.source, after)
    said = "; ".join(
        dict.fromkeys(f"{race.array} at line {race.write.line} and at line {race.other.line}" for race in races)
    )
    waits = "__syncwarp() makes the lanes of its warp" if all(race.in_warp for race in races) else _BARRIER_MAKES
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=kernel.source,
        edits=edits,
        explanation=(
            f"Different threads access the same element, one of them writes it, and nothing orders the accesses ({said}"
            f"). {waits} wait until the accesses before it are done."
        ),
    )


def _edit(source: Source, missing: _Missing) -> TextEdit:
    insert = after_statement if missing.is_end else before_statement
    return insert(source, missing.place, ["__syncthreads();"])


def _require_plain(kernel: Kernel, block: Node) -> None:
    source = kernel.source
    if not kernel.shared_arrays:
        raise NoMatchError(f"{kernel.name} has no shared memory.")
    if reason := unmovable(kernel):
        raise NoMatchError(reason)
    if kernel.incomplete:
        raise NoMatchError(f"{kernel.name} could not be followed whole: {kernel.incomplete}")
    text = source.node_code(block)
    if tied := _TIED.search(text):
        raise NoMatchError(f"{kernel.name} uses `{tied.group()}`, which may order its threads.")
    if hidden := _may_wait(source, block):
        raise NoMatchError(f"{hidden} may order the threads of the block.")
    for launch in host_launches(kernel):
        if launch.threads is not None and launch.threads <= WARP:
            raise NoMatchError(f"The block at {launch.source} is one warp, which __syncwarp() is enough for.")
    for leave in descendants(block, "return_statement"):
        raise NoMatchError(f"Threads may leave at line {line_of(source, leave)}, and a barrier waits for all.")


def _may_wait(source: Source, block: Node) -> str:
    """The first function that is called and may hold a barrier, of this file or of another; empty for none."""
    functions, seen = functions_of(source), set[str]()
    waiting = [block]
    while waiting:
        for call in descendants(waiting.pop(), "call_expression"):
            name = called_name(call, source)
            if name in seen or name.startswith(("__syncthreads", "atomic")):
                continue
            seen.add(name)
            texts = [source.node_text(n) for n in functions.get(name, [])]
            alone = call.parent is not None and call.parent.type == "expression_statement"
            unknown = alone and not texts and not KNOWN_FUNCTIONS.fullmatch(name)
            named = re.search(r"sync|barrier|wait", name, re.IGNORECASE) is not None
            if unknown or named or any(_BARRIER.search(text) or _TIED.search(text) for text in texts):
                return f"{name or source.node_text(call)} at line {line_of(source, call)}"
            waiting += functions.get(name, [])
    return ""


def _missing(kernel: Kernel, block: Node) -> list[_Missing]:
    shared = [
        a
        for a in kernel.accesses
        if a.space is Space.SHARED
        and a.span.source is kernel.source
        and a.basis is Basis.EXACT
        and a.lanes is not None
        and block.start_byte <= a.span.start < block.end_byte
    ]
    found = _in_sequence(kernel, block, shared, is_loop=False)
    for loop in descendants(block, "for_statement"):
        inside = loop.child_by_field_name("body")
        if inside is not None and inside.type == "compound_statement" and _is_reached_by_all(kernel, block, loop):
            fixed = [a for a in shared if _is_fixed(kernel, loop, a)]
            found += _in_sequence(kernel, inside, fixed, is_loop=True)
    kept: list[_Missing] = []
    for each in found:
        if not any(k.place == each.place and k.is_end == each.is_end for k in kept):
            kept.append(each)
    return kept


def _is_fixed(kernel: Kernel, loop: Node, access: Access) -> bool:
    """Whether an access uses the same elements in each iteration: what goes from buffer to buffer does not.

    Its indices are made of the thread's index, constants, variables that never change, and those that loops within
    this one count by.
    """
    source, variables = kernel.source, locals_of(kernel)
    element = node_at(source.root, access.span.start, access.span.end)
    if element is None or element.type != "subscript_expression":
        return False
    inner = {name for n in descendants(loop, "for_statement") if n != loop for name in _counted(source, n)}
    waiting = [n for index in indices_of(element) for n in descendants(index, "identifier")]
    while waiting:
        name = source.node_text(waiting.pop())
        if name in inner:
            continue
        if name in variables.changed:
            return False
        if value := variables.values.get(name):
            waiting += [value] if value.type == "identifier" else descendants(value, "identifier")
    return True


def _counted(source: Source, loop: Node) -> list[str]:
    """The variables that a `for` declares."""
    initializer = loop.child_by_field_name("initializer")
    found = initializer.children_by_field_name("declarator") if initializer is not None else []
    return [declared_name(source, declarator) for declarator in found]


def _is_reached_by_all(kernel: Kernel, block: Node, loop: Node) -> bool:
    """Whether a loop, and every loop around it, is run equally often by all threads of the block."""
    node: Node | None = loop
    while node is not None and node != block:
        if node.type == "for_statement":
            if not is_even_loop(kernel, node) or any(
                True for _ in descendants(node, "break_statement", "continue_statement")
            ):
                return False
        elif node.type != "compound_statement":
            return False
        node = node.parent
    return node is not None


def _in_sequence(kernel: Kernel, braces: Node, shared: list[Access], is_loop: bool) -> list[_Missing]:
    """What lacks a barrier between the statements of one pair of braces; of a loop, between iterations, too."""
    source = kernel.source
    statements = [n for n in braces.named_children if n.type != "comment" and not in_macro(n)]
    waits = [_BARRIER.search(source.node_code(n)) is not None for n in statements]
    uses = [[a for a in shared if n.start_byte <= a.span.start < n.end_byte] for n in statements]
    found: list[_Missing] = []
    since = 0  # the first statement behind the last barrier
    for later, statement in enumerate(statements):
        if waits[later]:
            since = later + 1
            continue
        before = [a for use in uses[since:later] for a in use]
        if pair := _conflict(before, uses[later]):
            found.append(_Missing(*pair, statement, is_end=False))
            since = later
    if is_loop:
        tail = [a for use in uses[since:] for a in use]
        first = min((i for i, n in enumerate(statements) if waits[i] or any(m.place == n for m in found)), default=None)
        head = [a for use in uses[:first] for a in use]
        if pair := _conflict(tail, head):
            found.append(_Missing(*pair, statements[-1], is_end=True))
    return found


def _conflict(one: list[Access], other: list[Access]) -> tuple[Access, Access] | None:
    """Two accesses by different threads to one element, of which one writes."""
    for first in one:
        for second in other:
            writes = AccessKind.STORE in (first.kind, second.kind)
            atomic = first.kind is AccessKind.ATOMIC and second.kind is AccessKind.ATOMIC
            same = first.array == second.array and first.launch == second.launch
            if same and writes and not atomic and _meet(first, second):
                return first, second
    return None


def _meet(first: Access, second: Access) -> bool:
    """Whether two lanes of the warp that both were looked at for want one address."""
    if first.lanes is None or second.lanes is None:
        return False
    if (first.lanes.warp, first.lanes.block) != (second.lanes.warp, second.lanes.block):
        return False
    lanes = {a: lane for lane, a in enumerate(first.lanes.addresses) if a is not None}
    return any(a in lanes and lanes[a] != lane for lane, a in enumerate(second.lanes.addresses))
