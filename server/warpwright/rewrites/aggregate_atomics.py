"""Add up what the threads of a block add to one address, and let one thread do the atomic.

## Before

```cuda
__global__ void sum(unsigned long long *total, const unsigned int *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    atomicAdd(total, in[i]);
}

void run(unsigned long long *total, const unsigned int *in, int n) {
  sum<<<(n + 255) / 256, 256>>>(total, in, n);
}
```

## After

```cuda
__global__ void sum(unsigned long long *total, const unsigned int *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long total_part = 0;
  if (i < n)
    total_part += in[i];
  __shared__ unsigned long long total_parts[32];
  for (int offset = 16; offset > 0; offset /= 2)
    total_part += __shfl_down_sync(0xffffffff, total_part, offset);
  if (threadIdx.x % 32 == 0)
    total_parts[threadIdx.x / 32] = total_part;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int warp = 1; warp < blockDim.x / 32; warp++)
      total_part += total_parts[warp];
    atomicAdd(total, total_part);
  }
}

void run(unsigned long long *total, const unsigned int *in, int n) {
  sum<<<(n + 255) / 256, 256>>>(total, in, n);
}
```

An early return, `if (i >= n) return;`, becomes an `if (i < n) {...}` around what follows. In a loop, each thread adds
up its own first. Where the address is in shared memory, and in blocks of one warp, each warp does an atomic of its own.
In blocks of several dimensions the threads are numbered as they lie in warps. In a function that the kernel calls once,
an atomic on the function's own shared memory is treated the same.

## Assumes

- The address is the same for all threads of a block and all the time: it is made of parameters, constants and blockIdx
  alone. What the atomic returns is not used, and the kernel uses what lies at the address nowhere near.
- The blocks of all launches, which are found, have a multiple of 32 threads.
- Every thread comes to the statement at the kernel's outermost level in which the atomic stands.

## Cost

A register, five shuffles for each warp, a barrier and the shared memory of 32 numbers. The order in which atomics add
floating-point numbers was never fixed; the sums of a block change it once more, so the last bits can change. The error
of any order of n numbers is at most about n * 2^-24 * sum(|x|) in float and n * 2^-53 * sum(|x|) in double
(N. J. Higham, Accuracy and Stability of Numerical Algorithms, section 4.2).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.facts.model import WARP, Access, AccessKind, Kernel, Space
from warpwright.facts.types import CType
from warpwright.rewrites._accumulate import shuffled_type, written_type
from warpwright.rewrites._block_sums import AtomicSum, block_lines, has_some, step, warp_lines
from warpwright.rewrites._block_tests import block_tests, is_outer
from warpwright.rewrites._called_once import as_called_once
from warpwright.rewrites._code import (
    NoMatchError,
    body,
    host_launches,
    in_macro,
    matched,
    names,
    overlaps,
    squeezed,
)
from warpwright.rewrites._early import around_rest, closing, early_returns, is_integer_text, without_overlap
from warpwright.rewrites._first_thread import stands_with_first_thread
from warpwright.rewrites._launched import block_of, found_launches
from warpwright.rewrites._layout import after_statement, before_statement, free_name, indent_unit, line_of
from warpwright.rewrites._limits import SHARED_BYTES
from warpwright.rewrites._linear_tail import ATOMIC_OPERATIONS
from warpwright.rewrites._locals import is_template_type, locals_of
from warpwright.rewrites._movable import unmovable
from warpwright.rewrites._row_loop import targets
from warpwright.rewrites._templates import is_launched_alike, written_as
from warpwright.rewrites._uniform import is_uniform
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import ancestors, descendants, node_at, uncommented
from warpwright.syntax.source import Source, Span

NAME = "aggregate-atomics"
title = "Reduce within the block before the atomic"
goals = ("speed",)
relies_on = (Reliance.BLOCK, Reliance.APART, Reliance.SHARED)

TOGETHER = 8.0
"""Lanes for each address from which it pays; up to 4 the hardware combines them at no cost."""

_ADDRESS = re.compile(r"&?(?P<root>[A-Za-z_]\w*)(?:\[(?P<index>[^\[\]()]*)\]|\+(?P<offset>[^\[\]()]*))?")
_TIED = re.compile(
    r"\b(?:__threadfence\w*|cooperative_groups|cg|this_grid|__nanosleep|__activemask|this_thread_block)\b"
)
"""What lets one block wait for, or learn of, what others add, or depends on which threads come along."""


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    if body(kernel) is None:
        return Declined(NAME, f"The body of {kernel.name} is not in this file.")
    reason = "Nothing to gain: no atomic here is known to bring a block to one address again and again."
    atomics = [a for a in kernel.accesses if a.kind is AccessKind.ATOMIC and (at is None or overlaps(a.span, at))]
    for access in sorted(atomics, key=lambda a: a.requests, reverse=True):
        if not access.requests or not access.addresses_per_request:
            continue
        place = as_called_once(kernel, access.span) or kernel
        block = body(place)
        if block is None:
            continue
        try:
            found = _matched(place, block, access)
            if place is not kernel:
                _require_own(place, block, found)
            lanes = not stands_with_first_thread(kernel.source, block, found.call)
            together = lanes and access.active_lanes >= TOGETHER * access.addresses_per_request
            if together or _comes_again(place, block, access, found):
                return _rewrite(place, block, access, found)
        except NoMatchError as mismatch:
            reason = str(mismatch)
    return Declined(NAME, reason)


def _matched(kernel: Kernel, block: Node, access: Access) -> AtomicSum:
    source, span = kernel.source, access.span
    call = node_at(source.root, span.start, span.end) if span.source is source else None
    if call is None or call.type != "call_expression" or in_macro(call) or not _is_below(call, block):
        raise NoMatchError(f"{access.expression} is not in the kernel's own text.")
    function, arguments = called_name(call, source), uncommented(call.child_by_field_name("arguments"))
    operation = ATOMIC_OPERATIONS.get(function)
    if operation is None or len(arguments) != 2:
        raise NoMatchError(f"{function} is not combined within a warp.")
    statement = call.parent
    if statement is None or statement.type != "expression_statement":
        raise NoMatchError(f"What {function} returns at line {line_of(source, call)} is used.")
    kind = shuffled_type(access.type)
    if kind is None:
        raise NoMatchError(f"{access.type or 'What'} is not a type whose {function} is combined within a warp.")
    outer = next((n for n in (statement, *ancestors(statement)) if n.parent == block), None)
    if outer is None:
        raise NoMatchError(f"{access.expression} is not in the kernel's own text.")
    match = _ADDRESS.fullmatch(squeezed(source.node_code(arguments[0])))
    if match is None:
        raise NoMatchError(f"`{source.node_text(arguments[0])}` is not a plain address of one element.")
    root = match["root"]
    typed, several = _typed(kernel, root, operation, kind)
    return AtomicSum(
        call,
        statement,
        outer,
        function,
        operation,
        arguments[0],
        arguments[1],
        root,
        access.space is Space.SHARED,
        kind,
        typed,
        several,
    )


def _typed(kernel: Kernel, root: str, operation: str, kind: CType) -> tuple[str, bool]:
    """How the type of a part is written, and whether it is a template's that can be another one at each launch: every
    type that atomicAdd takes, a shuffle does, too."""
    declared = locals_of(kernel).types.get(root, "")
    if operation == "+" and is_template_type(kernel, declared) and not is_launched_alike(kernel, declared):
        return declared, True
    return written_as(kernel, root, written_type(kind)), False


def _require_own(function: Kernel, block: Node, found: AtomicSum) -> None:
    """An atomic in a function that the kernel calls is one that all threads of a block come to, on its own memory."""
    source = function.source
    if found.statement != found.outer or early_returns(source, block):
        raise NoMatchError(f"Not every thread reaches the atomic at line {line_of(source, found.call)}.")
    if not found.shared or found.root not in locals_of(function).types or found.root in locals_of(function).parameters:
        raise NoMatchError(f"`{found.root}` is not a shared variable of the function around the atomic.")


def _comes_again(kernel: Kernel, block: Node, access: Access, found: AtomicSum) -> bool:
    """Whether several requests of a block do the atomic, and the block can put their numbers together."""
    blocks = prod(extent or 1 for extent in kernel.launches[access.launch].grid)
    return (
        _is_for_block(kernel, found)
        and access.requests >= 2 * blocks
        and not stands_with_first_thread(kernel.source, block, found.call)
    )


def _is_for_block(kernel: Kernel, found: AtomicSum) -> bool:
    """Whether there is more than a warp to put together, in shared memory that the block has for it."""
    shapes = [launch.block for launch in host_launches(kernel)]
    room = (kernel.shared_bytes or 0) + WARP * 8 <= SHARED_BYTES
    return room and not found.shared and all(prod(extent or 0 for extent in shape) > WARP for shape in shapes)


def _is_combined(source: Source, access: Access, found: AtomicSum) -> bool:
    """Whether the compiler adds up the lanes of a warp itself."""
    literal = re.fullmatch(r"\d+[uUlL]*", squeezed(source.node_code(found.value))) is not None
    small = found.kind.is_integer and not found.several and (found.kind.size == 4 or literal)
    return small and not access.in_loop and not access.by_thread


def _is_below(node: Node, block: Node) -> bool:
    return block.start_byte <= node.start_byte < block.end_byte


def _rewrite(kernel: Kernel, block: Node, access: Access, found: AtomicSum) -> Rewrite:
    source = kernel.source
    _require_blocks(kernel)
    for_block = _is_for_block(kernel, found)
    if not for_block and _is_combined(source, access, found):
        raise NoMatchError(
            f"Nothing to gain: the compiler combines the lanes' {found.function} of such integers at one address."
        )
    if reason := unmovable(kernel):
        raise NoMatchError(reason)
    if tied := _TIED.search(source.node_code(block)):
        raise NoMatchError(f"{kernel.name} uses `{tied.group()}`, so which thread adds, and when, may matter.")
    early = matched(early_returns(source, block))
    early = [e for e in early if e.start_byte < found.outer.start_byte]
    _require_one_address(kernel, block, found, early)
    last = block.named_children[-1] if early else found.outer
    while last.type == "comment" and last.prev_named_sibling is not None:
        last = last.prev_named_sibling
    first = early[0] if early else found.outer
    _require_apart(kernel, block, found, first, last)
    name = free_name(kernel.span.code, f"{found.root}_part")
    tests = block_tests(kernel, block, found.call, early, early[0] if early else found.outer)
    some = has_some(kernel, found, name) if early or found.statement != found.outer else ""
    behind = (block_lines if for_block else warp_lines)(kernel, block, found, name, tests, some)
    edits = _edits(kernel, block, found, early, last, name, behind)
    exact = found.kind.is_integer and not found.several
    one = "one thread of the block, which adds up those of its warps," if for_block else "one lane"
    rounding = (
        "" if exact else " The order of the sum, which atomics never fixed, changes, so the last bits can change."
    )
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=source,
        edits=tuple(without_overlap(edits)),
        explanation=(
            f"{access.active_lanes:g} {'lane' if access.active_lanes == 1 else 'lanes'} of a warp came to "
            f"{found.function} with {access.addresses_per_request:g} address, one after the other, and so did all "
            f"warps. Each thread now keeps its part in {name}, shuffles put the parts of a warp together, and {one} "
            f"does the atomic.{rounding}"
        ),
        safe=exact,
    )


def _require_blocks(kernel: Kernel) -> None:
    for launch in matched(found_launches(kernel)):
        threads = prod(matched(block_of(launch)))
        if threads % WARP:
            raise NoMatchError(
                f"The block at {launch.source} has {threads} threads, which is not a multiple of {WARP}."
            )


def _require_one_address(kernel: Kernel, block: Node, found: AtomicSum, early: list[Node]) -> None:
    """The address is the same for the whole block and has a meaning behind the statement, too."""
    source, variables = kernel.source, locals_of(kernel)
    text = source.node_text(found.address)
    visible = early[0].start_byte if early else found.outer.start_byte
    for name in {source.node_text(n) for n in descendants(found.address, "identifier")}:
        value = variables.values.get(name)
        if value is not None and not (is_outer(value, block) and value.end_byte < visible):
            raise NoMatchError(f"`{name}`, a part of the address `{text}`, is declared too late to be used afterwards.")
    is_parameter = any(p.name == found.root and p.is_pointer for p in kernel.parameters)
    set_again = any(source.node_text(t) == found.root for t in targets(block, source) if t.type == "identifier")
    root = [] if found.shared or (is_parameter and not set_again) else [found.root]
    inner = [found.address] if found.address.type == "binary_expression" else []
    inner += descendants(found.address, "subscript_argument_list")
    known = {found.root} - set(root)
    if root and root[0] not in variables.types and source.node_code(found.address).startswith("&"):
        known = {found.root}  # a variable of the file's, whose address is one
    if not known and not is_uniform(kernel, variables, found.address):
        raise NoMatchError(f"`{text}` is not known to be one address for the whole block.")
    if not all(is_uniform(kernel, variables, node, known) for node in inner):
        raise NoMatchError(f"`{text}` is not known to be one address for the whole block.")


def _require_apart(kernel: Kernel, block: Node, found: AtomicSum, first: Node, last: Node) -> None:
    """Nothing else in the moved stretch uses what lies at the address, and no barrier there tells when it is done."""
    source = kernel.source
    for use in names(block, source, found.root):
        if found.address.start_byte <= use.start_byte < found.address.end_byte:
            continue
        inside = first.start_byte <= use.start_byte < last.end_byte
        declares = use.parent is not None and use.parent.type.endswith(("declarator", "declaration"))
        if not declares and _leads_on(source, use):
            raise NoMatchError(
                f"What line {line_of(source, use)} does with the address of `{found.root}` is not followed."
            )
        if (inside or not found.shared) and not declares:
            raise NoMatchError(
                f"`{found.root}` is used at line {line_of(source, use)}, too, before or after the atomic."
            )
    for barrier in kernel.barriers:
        if barrier.span.source is source and first.start_byte <= barrier.span.start < last.end_byte:
            raise NoMatchError(f"The barrier at line {barrier.span.line} stands in the code that would move.")


def _leads_on(source: Source, use: Node) -> bool:
    """Whether the address of a variable, or an array as a whole, goes elsewhere than to an atomic."""
    parent = use.parent
    while parent is not None and parent.type in ("subscript_expression", "parenthesized_expression"):
        use, parent = parent, parent.parent
    if parent is None or parent.type == "argument_list":
        return use.type == "identifier" and (parent is None or not _is_atomic(source, parent))
    address = parent.type == "pointer_expression" and source.node_code(parent).startswith("&")
    arguments = parent.parent
    return address and (arguments is None or arguments.type != "argument_list" or not _is_atomic(source, arguments))


def _is_atomic(source: Source, arguments: Node) -> bool:
    return arguments.parent is not None and called_name(arguments.parent, source).startswith("atomic")


def _edits(
    kernel: Kernel, block: Node, found: AtomicSum, early: list[Node], last: Node, name: str, behind: list[str]
) -> list[TextEdit]:
    source, kind = kernel.source, found.kind
    unit, typed = indent_unit(source, block), found.typed
    value = source.node_text(found.value)
    types = locals_of(kernel).types
    plain = is_integer_text(source, found.value, types) or _is_of(source, found.value, typed, types)
    if (kind.is_integer or found.several) and not plain:
        value = f"({typed})({value})"
    if found.statement == found.outer and not early:
        edits = [TextEdit(found.statement.start_byte, found.statement.end_byte, f"{typed} {name} = {value};")]
    else:
        selects = found.operation in ("max", "min")
        taken = step(found, name, f"({typed})({value})" if selects else value)
        edits = [
            before_statement(source, early[0] if early else found.outer, [f"{typed} {name} = {found.start};"]),
            TextEdit(found.statement.start_byte, found.statement.end_byte, taken),
        ]
    for guard in early:
        edits += around_rest(kernel, block, guard, last)
    edits.append(after_statement(source, last, [*closing(unit, len(early)), *behind]))
    return edits


def _is_of(source: Source, value: Node, typed: str, types: Mapping[str, str]) -> bool:
    """Whether a value has a type by its looks: `(T)1`, or a variable that is declared so."""
    cast = value.child_by_field_name("type") if value.type == "cast_expression" else None
    written = source.node_code(cast) if cast is not None else types.get(source.node_text(value), "")
    return squeezed(written) == squeezed(typed)
