"""Let the first warp run a loop that thread 0 runs alone, as the sum of what the threads of a block left.

## Before

```cuda
__global__ void dot(float *partial, const float *a, const float *b) {
  __shared__ float products[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  products[threadIdx.x] = a[i] * b[i];
  __syncthreads();
  if (threadIdx.x == 0) {
    float sum = 0.0f;
    for (int k = 0; k < 256; k++)
      sum += products[k];
    partial[blockIdx.x] = sum;
  }
}

void run(float *partial, const float *a, const float *b) {
  dot<<<64, 256>>>(partial, a, b);
}
```

## After

```cuda
__global__ void dot(float *partial, const float *a, const float *b) {
  __shared__ float products[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  products[threadIdx.x] = a[i] * b[i];
  __syncthreads();
  float sum_part = 0.0f;
  if (threadIdx.x < 32) {
    for (int k = threadIdx.x; k < 256; k += 32)
      sum_part += products[k];
    for (int offset = 16; offset > 0; offset /= 2)
      sum_part += __shfl_down_sync(0xffffffff, sum_part, offset);
  }
  if (threadIdx.x == 0) {
    float sum = 0.0f;
    sum += sum_part;
    partial[blockIdx.x] = sum;
  }
}

void run(float *partial, const float *a, const float *b) {
  dot<<<64, 256>>>(partial, a, b);
}
```

## Assumes

- Every launch of the kernel is found, with a one-dimensional block of at least 32 threads, and all threads of a
  block, or none, come to the `if`.
- The loop counts up by 1 and does nothing from one iteration to the next but combine values by `+`, `*`, `&`, `|`, `^`,
  min or max, into variables or into one element of the array, such as `sums[0] += sums[k]` from k = 1 on.
- It reads shared arrays, arrays that the kernel never writes, and what is the same for the whole block. A barrier
  stands before the `if`, and nothing is stored between that and the loop.

## Cost

A register for each variable. The order of a sum or product changes: of floating-point numbers the last bits can change.
For a sum of n numbers the error of any order is at most about n * 2^-24 * sum(|x|) in float and n * 2^-53 * sum(|x|) in
double (N. J. Higham, Accuracy and Stability of Numerical Algorithms, section 4.2); 32 partial sums and 5 steps usually
come closer than one long chain.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.facts.aliasing import known_overlaps
from warpwright.facts.model import WARP, Basis, Kernel
from warpwright.rewrites._code import (
    NoMatchError,
    body_of,
    macros_naming,
    matched,
    overlaps,
    squeezed,
)
from warpwright.rewrites._first_thread import (
    Alone,
    is_block_barrier,
    loop_of_first_thread,
    require_settled,
    statements_before,
)
from warpwright.rewrites._indent import braced_lines
from warpwright.rewrites._interleaved import statements_of
from warpwright.rewrites._launched import flat_block_of, found_launches, in_header
from warpwright.rewrites._layout import before_statement, free_name, indent_unit, line_of, reindented, without_text
from warpwright.rewrites._locals import Locals, declared_names, locals_of
from warpwright.rewrites._loops import pragmas_before
from warpwright.rewrites._movable import block_by_directive, unmovable
from warpwright.rewrites._parts import Part, parts_of
from warpwright.rewrites._row_loop import RowLoop, root_name
from warpwright.rewrites._threads import unfit_call
from warpwright.rewrites._tree_reduction import require_whole_block
from warpwright.rewrites._uniform import is_even_loop, is_uniform
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.encoding import encoded
from warpwright.syntax.nodes import LOOPS, ancestors, declared_name, descendants
from warpwright.syntax.source import Source, Span

NAME = "share-first-thread-loop"
title = "Run the loop of thread 0 with the first warp"
goals = ("speed",)
relies_on = (Reliance.BLOCK, Reliance.APART)


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = body_of(kernel)
    reason = "No loop here is run by thread 0 alone."
    for node in descendants(block, "for_statement"):
        alone = loop_of_first_thread(kernel.source, block, node)
        if alone is None or (at is not None and not overlaps(kernel.source.span(alone.branch), at)):
            continue
        try:
            return _rewrite(kernel, block, alone)
        except NoMatchError as mismatch:
            reason = str(mismatch)
    return Declined(NAME, reason)


def _rewrite(kernel: Kernel, block: Node, alone: Alone) -> Rewrite:
    source, line = kernel.source, line_of(kernel.source, alone.loop)
    if reason := unmovable(kernel):
        raise NoMatchError(reason)
    _require_first_warp(kernel)
    if alone.branch.parent is None or alone.branch.parent.type != "compound_statement":
        raise NoMatchError(f"The `if` around the loop at line {line} is the body of another statement without braces.")
    require_whole_block(kernel, block, alone.branch)
    known = _of_even_loops(kernel, block, alone.branch)
    inside = [a for a in kernel.accesses if a.span.source is source and _is_within(a.span, alone.loop)]
    if inside and all(a.basis is Basis.EXACT and a.iterations < WARP for a in inside):
        raise NoMatchError(f"Nothing to gain: the loop at line {line} has fewer than {WARP} iterations.")
    loop, parts = parts_of(kernel, alone.loop)
    if not parts:
        raise NoMatchError(f"The loop at line {line} reduces nothing.")
    variables = locals_of(kernel)
    _require_same_for_lanes(kernel, variables, alone, loop, parts, known)
    require_settled(kernel, block, alone, frozenset(part.root for part in parts if part.target == part.root))
    edits = _edits(kernel, block, alone, loop, parts)
    exact = all(part.is_exact for part in parts)
    listed = ", ".join(part.target for part in parts)
    rounding = "" if exact else " The order of the sum or product changes, so the last bits of the result can change."
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=source,
        edits=tuple(edits),
        explanation=(
            f"Thread 0 ran the loop at line {line} alone, one dependent operation on {listed} after the other, while "
            f"all other threads of the block had nothing to do. Now the {WARP} lanes of the first warp take every "
            f"{WARP}nd iteration each and put their parts together by five shuffles.{rounding}"
        ),
        safe=exact,
    )


def _is_within(span: Span, node: Node) -> bool:
    return node.start_byte <= span.start and span.end <= node.end_byte


def _require_first_warp(kernel: Kernel) -> None:
    """Every launch has a whole first warp, whose lanes differ in threadIdx.x alone."""
    launches = matched(found_launches(kernel))
    if reason := block_by_directive(kernel) or in_header(kernel):
        raise NoMatchError(reason)
    for launch in launches:
        threads = matched(flat_block_of(launch))
        if threads < WARP:
            raise NoMatchError(f"The block at {launch.source} has {threads} threads, fewer than a warp.")


def _of_even_loops(kernel: Kernel, block: Node, branch: Node) -> frozenset[str]:
    """The variables of the loops around that all threads run equally often; refuses a loop that they may not."""
    source, known = kernel.source, set[str]()
    for around in ancestors(branch):
        if around == block:
            break
        if around.type not in LOOPS:
            continue
        if around.type == "for_statement" and is_even_loop(kernel, around):
            initializer = around.child_by_field_name("initializer")
            declarators = initializer.children_by_field_name("declarator") if initializer is not None else []
            known |= {declared_name(source, d) for d in declarators}
        elif not any(is_block_barrier(source, s) for s in statements_of(around.child_by_field_name("body"))):
            line = line_of(source, around)
            raise NoMatchError(f"The lanes of the first warp may run the loop at line {line} unequally often.")
    return frozenset(known)


def _require_same_for_lanes(
    kernel: Kernel, variables: Locals, alone: Alone, loop: RowLoop, parts: tuple[Part, ...], known: frozenset[str]
) -> None:
    """What the loop and the condition read has, in every lane and before the `if`, the value that thread 0 sees."""
    source = kernel.source
    if reason := unfit_call(kernel, alone.loop):
        raise NoMatchError(reason)
    for other in alone.others:
        if not is_uniform(kernel, variables, other, known):
            raise NoMatchError(f"`{source.node_text(other)}` is not known to be the same for all threads of the block.")
    declared = declared_names(source, kernel.node) if kernel.node is not None else set()
    of_threads = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(declared)))})\b")
    for macro in macros_naming(source, of_threads):
        if re.search(rf"\b{re.escape(macro)}\b", source.node_code(alone.loop)):
            raise NoMatchError(f"The macro {macro} in the loop uses a variable of the kernel.")
    own = {loop.step, *(part.target for part in parts)}
    own |= declared_names(source, alone.loop)
    shared = {array.name for array in kernel.shared_arrays}
    read_only = _never_written(kernel)
    for use in descendants(alone.loop, "identifier"):
        name = source.node_text(use)
        function = use.parent is not None and use.parent.child_by_field_name("function") == use
        if name in own or name in shared or name in read_only or function:
            continue
        if not is_uniform(kernel, variables, use, known) or name in {p.name for p in kernel.parameters if p.is_pointer}:
            raise NoMatchError(
                f"`{name}` at line {line_of(source, use)} is not known to be the same for all threads of the block."
            )
        if any(_declares(source, node, name) for node in statements_before(alone.loop, alone.branch)):
            raise NoMatchError(f"`{name}` is declared in the `if` of thread 0, where the other lanes do not come.")
    for part in parts:
        if part.is_shared and any(_is_address_of(source, node, part.target) for node in _pointers(kernel)):
            raise NoMatchError(f"The address of `{part.target}` is taken, so not every use of it can be seen.")


def _pointers(kernel: Kernel) -> list[Node]:
    return list(descendants(kernel.node, "pointer_expression")) if kernel.node is not None else []


def _is_address_of(source: Source, node: Node, name: str) -> bool:
    return source.node_code(node).startswith("&") and root_name(source, node) == name


def _never_written(kernel: Kernel) -> set[str]:
    """Pointers to const that no launch hands an array that another pointer may write."""
    constant = {p.name for p in kernel.parameters if p.is_pointer and p.is_const}
    for found in known_overlaps(kernel):
        constant -= {found.one, found.other}
    return constant


def _declares(source: Source, statement: Node, name: str) -> bool:
    declared = statement.children_by_field_name("declarator") if statement.type == "declaration" else []
    return any(declared_name(source, d) == name for d in declared)


def _edits(kernel: Kernel, block: Node, alone: Alone, loop: RowLoop, parts: tuple[Part, ...]) -> list[TextEdit]:
    source, unit = kernel.source, indent_unit(kernel.source, block)
    names: dict[str, str] = {}
    for part in parts:
        wanted = f"{part.root}_part"
        text = kernel.span.code + " ".join(names.values())
        names[part.target] = free_name(text, wanted)
    offset = free_name(kernel.span.code, "offset")
    moved = reindented(
        _strided(source, alone, loop, parts, names), source.line_indent(alone.loop.start_byte), unit
    ).split("\n")
    steps = [
        part.combined(names[part.target], f"__shfl_down_sync(0xffffffff, {names[part.target]}, {offset})")
        for part in parts
    ]
    clause = alone.branch.child_by_field_name("condition") or alone.branch
    head = source.text(clause.start_byte, alone.test.start_byte) + f"{alone.thread} < {WARP}"
    head += source.text(alone.test.end_byte, clause.end_byte)
    lines = [
        *(f"{part.type} {names[part.target]} = {part.neutral};" for part in parts),
        f"if {head} {{",
        unit + moved[0],
        *moved[1:],
        *(
            unit + line
            for line in braced_lines(f"for (int {offset} = {WARP // 2}; {offset} > 0; {offset} /= 2)", steps, unit)
        ),
        "}",
    ]
    ends = [part.taken(names[part.target]) for part in parts]
    indent = source.line_indent(alone.loop.start_byte)
    in_braces = alone.loop.parent is not None and alone.loop.parent.type == "compound_statement"
    text = f"\n{indent}".join(ends) if in_braces or len(ends) == 1 else "{ " + " ".join(ends) + " }"
    pragmas = pragmas_before(source, alone.loop)
    return [
        before_statement(source, alone.branch, lines),
        *(
            without_text(source, p.start_byte, p.start_byte + len(encoded(source.node_text(p).rstrip())))
            for p in pragmas
        ),
        TextEdit(alone.loop.start_byte, alone.loop.end_byte, text),
    ]


def _strided(source: Source, alone: Alone, loop: RowLoop, parts: tuple[Part, ...], names: dict[str, str]) -> str:
    """The loop's text for a lane: every 32nd iteration, into the lane's part."""
    first = source.node_text(loop.initial)
    plain = first if re.fullmatch(r"[\w.\s*+]+", first) else f"({first})"
    start = alone.thread if squeezed(first) in ("0", "0u", "0U") else f"{plain} + {alone.thread}"
    new = [
        (loop.initial.start_byte, loop.initial.end_byte, start),
        (loop.update.start_byte, loop.update.end_byte, f"{loop.step} += {WARP}"),
    ]
    new += [(use.start_byte, use.end_byte, names[part.target]) for part in parts for use in part.uses]
    out, at = "", alone.loop.start_byte
    for begin, end, text in sorted(new):
        out += source.text(at, begin) + text
        at = end
    return out + source.text(at, alone.loop.end_byte)
