"""Turn an interleaved reduction into one with sequential addressing.

## Before

```cuda
__global__ void sum(int *out, const int *in) {
  __shared__ int partial[256];
  unsigned int tid = threadIdx.x;
  partial[tid] = in[blockIdx.x * blockDim.x + tid];
  __syncthreads();
  for (unsigned int s = 1; s < blockDim.x; s *= 2) {
    if (tid % (2 * s) == 0)
      partial[tid] += partial[tid + s];
    __syncthreads();
  }
  if (tid == 0)
    out[blockIdx.x] = partial[0];
}

void run(int *out, const int *in) {
  sum<<<64, 256>>>(out, in);
}
```

## After

```cuda
__global__ void sum(int *out, const int *in) {
  __shared__ int partial[256];
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

void run(int *out, const int *in) {
  sum<<<64, 256>>>(out, in);
}
```

The form with `int index = 2 * s * tid; if (index < blockDim.x)` becomes the same, and so does the one whose stride
starts at 2: `for (s = 2; s <= blockDim.x; s *= 2) if (tid % s == 0) partial[tid] += partial[tid + s / 2];`

## Assumes

- Every launch of the kernel is found, with a one-dimensional block of a power of two threads, and the loop runs over
  exactly that many elements.
- The guarded statements combine `a[tid]` with `a[tid + s]` by an operation that is associative and commutative: `+`,
  `*`, `&`, `|`, `^`, `min`, `max`; a barrier follows in the same iteration, and the loop does nothing else.
- Every thread of the block comes to the loop, or none: a condition around it and a `return` before it hold for the
  whole block, as `if (blockIdx.x >= rows) return;`.
- After the loop only element 0 is read, until each thread has set its element again: the others hold different partial
  results than before.

## Cost

None at run time: whole warps fall idle instead of lanes, and consecutive lanes read neighbouring banks. The order of
the operations changes, so the rounding of a floating-point sum or product can change in the last bits; integers stay
exact.
"""

from __future__ import annotations

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.cuda.numbers import number_at
from warpwright.facts.model import Kernel
from warpwright.rewrites._code import (
    NoMatchError,
    as_factor,
    body_of,
    is_power_of_two,
    matched,
    names,
    overlaps,
    squeezed,
)
from warpwright.rewrites._interleaved import InterleavedLoop, has_operator, match_loop, statements_of
from warpwright.rewrites._launched import flat_block_of, found_launches
from warpwright.rewrites._layout import without_lines
from warpwright.rewrites._tree_reduction import is_integer, require_reorderable, require_unread, require_whole_block
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import descendants, uncommented
from warpwright.syntax.source import Source, Span

NAME = "sequential-reduction-addressing"
title = "Address the reduction sequentially"
goals = ("speed",)
relies_on = (Reliance.BLOCK,)

_COMPOUND = frozenset({"+=", "*=", "&=", "|=", "^="})
_BINARY = frozenset({"+", "*", "&", "|", "^"})
_SELECT = frozenset({"min", "max", "fminf", "fmaxf", "fmin", "fmax", "__hmin", "__hmax"})


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = body_of(kernel)
    reason = "No loop here doubles its variable from 1 or 2, as an interleaved reduction does."
    for node in descendants(block, "for_statement"):
        if at is not None and not overlaps(kernel.source.span(node), at):
            continue
        try:
            return _rewrite(kernel, block, match_loop(kernel.source, block, node))
        except NoMatchError as mismatch:
            reason = str(mismatch) or reason
    return Declined(NAME, reason)


def _rewrite(kernel: Kernel, block: Node, loop: InterleavedLoop) -> Rewrite:
    source = kernel.source
    arrays = _arrays(kernel, loop)
    _require_block(kernel, loop)
    require_whole_block(kernel, block, loop.node)
    for array in arrays:
        require_reorderable(kernel, array)
        require_unread(kernel, loop.node, array)
    step, thread = loop.step, loop.thread
    if loop.is_step_outer and any(use.start_byte >= loop.node.end_byte for use in names(block, source, step)):
        raise NoMatchError(f"`{step}` is used after the loop, where it would have another value.")
    edits = [
        TextEdit(loop.initial.start_byte, loop.initial.end_byte, f"{as_factor(source.node_text(loop.bound))} / 2"),
        TextEdit(loop.condition.start_byte, loop.condition.end_byte, f"{step} > 0"),
        TextEdit(loop.update.start_byte, loop.update.end_byte, f"{step} >>= 1"),
        TextEdit(loop.guard.start_byte, loop.guard.end_byte, f"{thread} < {step}"),
    ]
    if loop.index is not None:
        edits.append(without_lines(source, loop.index))
        consequence = loop.branch.child_by_field_name("consequence")
        uses = names(consequence, source, loop.element) if consequence is not None else iter(())
        edits += [TextEdit(use.start_byte, use.end_byte, thread) for use in uses]
    edits += _whole_steps(source, loop)
    exact = all(is_integer(kernel, array) for array in arrays)
    listed = " and ".join(arrays)
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=source,
        edits=tuple(edits),
        explanation=(
            f"The stride {step} now halves from half a block to 1, and the first {step} threads work. Whole warps fall "
            f"idle instead of lanes of all warps, and consecutive lanes use neighbouring banks of {listed}."
            + (
                ""
                if exact
                else " The order of the operations changes, so floating-point rounding can change in the last bits."
            )
        ),
        safe=exact,
    )


def _whole_steps(source: Source, loop: InterleavedLoop) -> list[TextEdit]:
    """`s / 2`, the distance where the stride starts at 2, as `s`."""
    consequence = loop.branch.child_by_field_name("consequence")
    if consequence is None or loop.distances == (loop.step,):
        return []
    halves = [
        n for n in descendants(consequence, "binary_expression") if squeezed(source.node_code(n)) in loop.distances
    ]
    whole = [h.parent if h.parent is not None and h.parent.type == "parenthesized_expression" else h for h in halves]
    return [TextEdit(half.start_byte, half.end_byte, loop.step) for half in whole]


def _arrays(kernel: Kernel, loop: InterleavedLoop) -> list[str]:
    """The arrays that the guarded statements reduce."""
    consequence = loop.branch.child_by_field_name("consequence")
    found: list[str] = []
    for statement in statements_of(consequence):
        array = _reduced(kernel.source, statement, loop.element, loop.distances)
        if array is None:
            line = kernel.source.position(statement.start_byte)[0]
            raise NoMatchError(
                f"The statement at line {line} does not combine [{loop.element}] with [{loop.element} + {loop.step}] "
                "of one array by an operation that may be reordered."
            )
        if not any(shared.name == array for shared in kernel.shared_arrays):
            raise NoMatchError(f"`{array}` is not a __shared__ array of {kernel.name}.")
        if array not in found:
            found.append(array)
    if not found:
        raise NoMatchError
    return found


def _reduced(source: Source, statement: Node, element: str, distances: tuple[str, ...]) -> str | None:
    """The array of `a[e] op= a[e + s]`, `a[e] = a[e] op a[e + s]` or `a[e] = max(a[e], a[e + s])`."""
    assignment = (
        uncommented(statement)[0] if statement.type == "expression_statement" and uncommented(statement) else None
    )
    if assignment is None or assignment.type != "assignment_expression":
        return None
    left, right = assignment.child_by_field_name("left"), assignment.child_by_field_name("right")
    if left is None or right is None or left.type != "subscript_expression":
        return None
    argument = left.child_by_field_name("argument")
    array = source.node_text(argument) if argument is not None and argument.type == "identifier" else ""
    mine = f"{array}[{element}]"
    theirs = {f"{array}[{one}+{two}]" for d in distances for one, two in ((element, d), (d, element))}
    if not array or squeezed(source.node_code(left)) != mine:
        return None
    operator = assignment.child_by_field_name("operator")
    spelled = source.node_text(operator) if operator is not None else ""
    if spelled in _COMPOUND:
        return array if squeezed(source.node_code(right)) in theirs else None
    if spelled != "=":
        return None
    while right.type == "parenthesized_expression" and right.named_children:
        right = uncommented(right)[0]
    if right.type == "binary_expression" and any(has_operator(right, source, op) for op in _BINARY):
        operands = [right.child_by_field_name("left"), right.child_by_field_name("right")]
    elif right.type == "call_expression" and called_name(right, source) in _SELECT:
        arguments = right.child_by_field_name("arguments")
        operands = list(arguments.named_children) if arguments is not None else []
    else:
        return None
    spellings = [squeezed(source.node_code(o)) for o in operands if o is not None]
    both = len(spellings) == 2 and mine in spellings and bool(theirs.intersection(spellings))
    return array if both else None


def _require_block(kernel: Kernel, loop: InterleavedLoop) -> None:
    """The loop covers exactly the block, a power of two threads, at every launch."""
    bound = squeezed(kernel.source.node_code(loop.bound))
    for launch in matched(found_launches(kernel)):
        x = matched(flat_block_of(launch))
        if not is_power_of_two(x):
            raise NoMatchError(f"The block at {launch.source} has {x} threads, which is not a power of two.")
        if bound != "blockDim.x" and number_at(kernel.source, loop.bound, bound) != x:
            raise NoMatchError(
                f"The loop runs to {bound}, which is not known to be the {x} threads of the block at {launch.source}."
            )
