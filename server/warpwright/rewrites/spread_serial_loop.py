"""Let all threads of a block share a loop that thread 0 runs alone to set up shared memory.

## Before

```cuda
__global__ void count(int *totals, const unsigned char *data, int n) {
  __shared__ int bins[256];
  if (threadIdx.x == 0) {
    for (int k = 0; k < 256; k++)
      bins[k] = 0;
  }
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&bins[data[i]], 1);
  __syncthreads();
  atomicAdd(&totals[threadIdx.x], bins[threadIdx.x]);
}

void run(int *totals, const unsigned char *data, int n) {
  count<<<8, 256>>>(totals, data, n);
}
```

## After

```cuda
__global__ void count(int *totals, const unsigned char *data, int n) {
  __shared__ int bins[256];
  for (int k = threadIdx.x; k < 256; k += blockDim.x)
    bins[k] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&bins[data[i]], 1);
  __syncthreads();
  atomicAdd(&totals[threadIdx.x], bins[threadIdx.x]);
}

void run(int *totals, const unsigned char *data, int n) {
  count<<<8, 256>>>(totals, data, n);
}
```

## Assumes

- Each iteration sets elements of shared arrays that are its own, to values that no iteration before it changes and
  that are the same for all threads of the block.
- A barrier follows, nothing uses the arrays between the barrier before and the loop, and every thread of the block
  comes to the loop.

## Cost

None: the other threads waited at the barrier. Results stay the same bit for bit.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.cuda.numbers import number_at
from warpwright.facts.aliasing import known_overlaps
from warpwright.facts.model import Kernel, Launch
from warpwright.rewrites._code import NoMatchError, body_of, in_macro, macros_naming, names, overlaps, squeezed
from warpwright.rewrites._interleaved import is_barrier, is_thread_number, statements_of
from warpwright.rewrites._layout import line_of, reindented
from warpwright.rewrites._locals import Locals, locals_of
from warpwright.rewrites._loops import CountedLoop, counted_loop
from warpwright.rewrites._movable import unmovable
from warpwright.rewrites._tree_reduction import require_whole_block
from warpwright.rewrites._uniform import is_uniform
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import declared_name, descendants, uncommented
from warpwright.syntax.source import Source, Span

NAME = "spread-serial-loop"
title = "Spread the loop of thread 0 over the block"
goals = ("speed",)
relies_on = (Reliance.APART,)

FEWEST = 8
"""Iterations from which it pays."""
_FIRST = re.compile(r"(?P<a>[\w.]+)==0[uU]?|0[uU]?==(?P<b>[\w.]+)|!(?P<c>[\w.]+)")
_LOADS = ("subscript_expression", "pointer_expression", "call_expression", "field_expression", "lambda_expression")


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = body_of(kernel)
    reason = "No loop here is run by thread 0 alone."
    for node in descendants(block, "if_statement"):
        if at is not None and not overlaps(kernel.source.span(node), at):
            continue
        try:
            return _rewrite(kernel, block, node)
        except NoMatchError as mismatch:
            reason = str(mismatch) or reason
    return Declined(NAME, reason)


def _rewrite(kernel: Kernel, block: Node, branch: Node) -> Rewrite:
    source = kernel.source
    thread, loop = _matched(source, block, branch)
    if reason := unmovable(kernel):
        raise NoMatchError(reason)
    variables = locals_of(kernel)
    arrays = _set_by(kernel, variables, loop)
    if not all(is_uniform(kernel, variables, n) for n in (loop.start, loop.bound)):
        raise NoMatchError(f"The threads may not agree on the range of the loop at line {line_of(source, loop.node)}.")
    require_whole_block(kernel, block, branch)
    _require_waits(kernel, block, branch, arrays)
    count = number_at(source, loop.node, source.node_code(loop.bound))
    if count is not None and count < FEWEST:
        raise NoMatchError(f"Nothing to gain: the loop at line {line_of(source, loop.node)} has {count} iterations.")
    launches = [launch for launch in kernel.launches if launch.threads]
    if any(launch.block[0] == 1 for launch in launches):
        raise NoMatchError("Nothing to gain: a launch has one thread in x.")
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=source,
        edits=(_edit(source, branch, loop, thread),),
        explanation=(
            f"Thread 0 set {' and '.join(f'`{a}`' for a in sorted(arrays))} one element after the other while "
            f"{_others(launches)} waited at the barrier. Now each thread sets every blockDim.x-th element."
        ),
    )


def _others(launches: list[Launch]) -> str:
    """The threads that waited, in words."""
    sizes = {launch.threads for launch in launches}
    return f"the other {(sizes.pop() or 1) - 1}" if len(sizes) == 1 else "all others"


def _matched(source: Source, block: Node, branch: Node) -> tuple[str, CountedLoop]:
    """The thread's index as written, and the loop in `if (threadIdx.x == 0) { for (...) ... }`."""
    clause, then = branch.child_by_field_name("condition"), branch.child_by_field_name("consequence")
    tested = _FIRST.fullmatch(squeezed(source.node_code(clause))) if clause is not None else None
    statements = statements_of(then) if then is not None else []
    if tested is None or [s.type for s in statements] != ["for_statement"] or in_macro(branch):
        raise NoMatchError
    thread = next(name for name in tested.groups() if name)
    if not is_thread_number(source, block, thread):
        raise NoMatchError(f"`{thread}` is not known to be threadIdx.x throughout the kernel.")
    loop, line = counted_loop(source, statements[0]), line_of(source, statements[0])
    if loop is None or loop.step is not None:
        raise NoMatchError(f"The loop at line {line} does not count up by 1 to a bound.")
    if branch.child_by_field_name("alternative") is not None:
        raise NoMatchError(f"The `if` around the loop at line {line} has an `else`.")
    return thread, loop


def _set_by(kernel: Kernel, variables: Locals, loop: CountedLoop) -> set[str]:
    """The shared arrays whose elements the loop sets; refuses everything else that it could do."""
    source = kernel.source
    shared = {array.name for array in kernel.shared_arrays}
    arrays: set[str] = set()
    inner = {loop.name, *(name for name in _inner_names(source, loop.body))}
    for statement in _assignments(kernel, variables, loop.body, inner):
        target, value = statement.child_by_field_name("left"), statement.child_by_field_name("right")
        operator = statement.child_by_field_name("operator")
        line = line_of(source, statement)
        if target is None or value is None or operator is None or source.node_text(operator) != "=":
            raise NoMatchError(f"Line {line} does more than set an element.")
        array, subscripts = _element(source, target)
        if array not in shared:
            raise NoMatchError(f"What line {line} sets is not an element of a shared array.")
        if loop.name not in [squeezed(source.node_code(s)) for s in subscripts]:
            raise NoMatchError(f"Line {line} is not known to set another element in each iteration.")
        for part in (*subscripts, value):
            _require_same_for_all(kernel, variables, part, inner, line)
        arrays.add(array)
    if macros := [m for a in arrays for m in macros_naming(source, re.compile(rf"\b{re.escape(a)}\b"))]:
        raise NoMatchError(f"The macro {macros[0]} uses what the loop sets, so not every use of it can be seen.")
    return arrays


def _assignments(kernel: Kernel, variables: Locals, inside: Node, own: set[str]) -> list[Node]:
    """What a loop's body assigns, with that of counted loops in it; refuses any other statement."""
    source, found = kernel.source, list[Node]()
    for statement in statements_of(inside):
        inner = uncommented(statement)
        counted = counted_loop(source, statement) if statement.type == "for_statement" else None
        if counted is not None:
            for part in (counted.start, counted.bound, *([counted.step] if counted.step is not None else [])):
                _require_same_for_all(kernel, variables, part, own, line_of(source, statement))
            found += _assignments(kernel, variables, counted.body, own)
        elif statement.type == "expression_statement" and [n.type for n in inner] == ["assignment_expression"]:
            found.append(inner[0])
        else:
            raise NoMatchError(f"Line {line_of(source, statement)} does more than set an element.")
    return found


def _inner_names(source: Source, inside: Node) -> list[str]:
    """The variables of loops within the loop."""
    loops = (counted_loop(source, node) for node in descendants(inside, "for_statement"))
    return [loop.name for loop in loops if loop is not None]


def _element(source: Source, target: Node) -> tuple[str, list[Node]]:
    """The array and the subscripts of `a[i][j]`; an empty name for anything else."""
    subscripts: list[Node] = []
    while target.type == "subscript_expression":
        indices, argument = target.child_by_field_name("indices"), target.child_by_field_name("argument")
        subscripts += uncommented(indices)
        if argument is None:
            return "", []
        target = argument
    return (source.node_text(target) if target.type == "identifier" else ""), subscripts


def _require_same_for_all(kernel: Kernel, variables: Locals, node: Node, own: set[str], line: int) -> None:
    """A value that every thread finds the same: of the loop's variables, constants, parameters and what is read of
    `const` parameters."""
    source = kernel.source
    twice = {name for found in known_overlaps(kernel) for name in (found.one, found.other)}
    pointers = (p for p in kernel.parameters if p.is_pointer and p.is_const and p.name not in twice)
    constant = {p.name for p in pointers if variables.is_fixed(p.name)}
    for part in descendants(node, *_LOADS):
        argument = part.child_by_field_name("argument")
        loads = part.type == "subscript_expression" and argument is not None and source.node_text(argument) in constant
        built_in = part.type == "field_expression" and re.fullmatch(
            r"(?:blockIdx|blockDim|gridDim)\.[xyz]", source.node_code(part)
        )
        if not loads and not built_in:
            raise NoMatchError(f"What `{source.node_text(part)}` at line {line} is may depend on the thread or change.")
    for name in descendants(node, "identifier"):
        text = source.node_text(name)
        if text not in own | constant and not is_uniform(kernel, variables, name):
            raise NoMatchError(f"`{text}` at line {line} may have another value in other threads.")
    if any(True for _ in descendants(node, "assignment_expression", "update_expression")):
        raise NoMatchError(f"Line {line} changes more than an element.")


def _require_waits(kernel: Kernel, block: Node, branch: Node, arrays: set[str]) -> None:
    """A barrier comes right behind the loop, and nothing before it in the same braces uses the arrays since the last
    barrier, or since their declaration."""
    source = kernel.source
    line = line_of(source, branch)
    siblings = [n for n in uncommented(branch.parent) if n.type != "preproc_call"]
    place = siblings.index(branch) if branch in siblings else -1
    if place < 0 or place + 1 >= len(siblings) or not is_barrier(siblings[place + 1], source):
        raise NoMatchError(f"No barrier follows what thread 0 does at line {line}.")
    for before in reversed(siblings[:place]):
        if is_barrier(before, source):
            return
        declared = {declared_name(source, d) for d in before.children_by_field_name("declarator")}
        used = {a for a in arrays if any(names(before, source, a))}
        if used and not (before.type == "declaration" and used <= declared):
            raise NoMatchError(
                f"`{min(used)}` is used at line {line_of(source, before)}, with no barrier before line {line}."
            )
    if branch.parent != block:
        raise NoMatchError(f"No barrier stands before line {line} in the same braces.")


def _edit(source: Source, branch: Node, loop: CountedLoop, thread: str) -> TextEdit:
    """The `if` replaced by what stands in it, with another start and step."""
    written, then = source.node_text(loop.start), branch.child_by_field_name("consequence")
    plain = written if re.fullmatch(r"[\w.\s*+]+", written) else f"({written})"
    first = thread if re.fullmatch(r"0[uUlL]*", written) else f"{plain} + {thread}"
    update = loop.node.child_by_field_name("update") or loop.node
    inside = then.named_children if then is not None and then.type == "compound_statement" else [loop.node]
    text = source.text(inside[0].start_byte, loop.start.start_byte) + first
    text += source.text(loop.start.end_byte, update.start_byte) + f"{loop.name} += blockDim.x"
    text += source.text(update.end_byte, inside[-1].end_byte)
    old, new = source.line_indent(loop.node.start_byte), source.line_indent(branch.start_byte)
    return TextEdit(branch.start_byte, branch.end_byte, reindented(text, old, new))
