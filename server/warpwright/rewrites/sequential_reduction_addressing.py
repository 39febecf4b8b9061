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
  sum<<<1024, 256>>>(out, in);
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
  sum<<<1024, 256>>>(out, in);
}
```

The form with `int index = 2 * s * tid; if (index < blockDim.x)` becomes the same.

## Assumes

- Every launch of the kernel is in sight, with a one-dimensional block of a power of two threads, and the loop runs over
  exactly that many elements.
- The guarded statements combine `a[tid]` with `a[tid + s]` by an operation that is associative and commutative: `+`,
  `*`, `&`, `|`, `^`, `min`, `max`; a barrier follows in the same iteration, and the loop does nothing else.
- After the loop only element 0 is read: the others hold different partial results than before.

## Cost

None at run time: whole warps fall idle instead of lanes, and neighbouring lanes read neighbouring banks. The order of
the operations changes, so the rounding of a floating-point sum or product can change in the last bits; integers stay
exact.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.facts.model import Basis, Kernel
from warpwright.rewrites._code import (
    body,
    called_name,
    host_launches,
    is_power_of_two,
    names,
    overlaps,
    squeezed,
    unseen_launch,
)
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import ancestors, descendants
from warpwright.syntax.source import Source, Span

NAME = "sequential-reduction-addressing"
title = "Address the reduction sequentially"
goals = ("speed",)

_BARRIERS = frozenset({"__syncthreads", "sync"})
_COMPOUND = frozenset({"+=", "*=", "&=", "|=", "^="})
_BINARY = frozenset({"+", "*", "&", "|", "^"})
_SELECT = frozenset({"min", "max", "fminf", "fmaxf", "fmin", "fmax", "__hmin", "__hmax"})
_INTEGERS = re.compile(
    r"(?:const |volatile |unsigned |signed )*(?:bool|char|short|int|long|long long|u?int\d+_t|size_t|unsigned|uint)"
)


class _NoMatchError(Exception):
    """The loop is not the pattern; the message is the reason for the user."""


@dataclass(frozen=True, slots=True)
class _Loop:
    """An interleaved reduction: `for (s = 1; s < bound; s *= 2) { [index = 2*s*tid;] if (...) {...} barrier; }`.

    `index` is the declaration of the doubled index, None in the form with `%`; `element` is what indexes the array:
    that index, or the thread's own number.
    """

    node: Node
    step: str
    is_step_outer: bool
    initial: Node
    bound: Node
    condition: Node
    update: Node
    branch: Node
    guard: Node
    index: Node | None
    element: str
    thread: str


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = body(kernel)
    if block is None:
        return Declined(NAME, f"The body of {kernel.name} is not in this file.")
    reason = "No loop here doubles its variable from 1, as an interleaved reduction does."
    for node in descendants(block, "for_statement"):
        if at is not None and not overlaps(kernel.source.span(node), at):
            continue
        try:
            return _rewrite(kernel, block, _match(kernel.source, block, node))
        except _NoMatchError as mismatch:
            reason = str(mismatch) or reason
    return Declined(NAME, reason)


def _rewrite(kernel: Kernel, block: Node, loop: _Loop) -> Rewrite:
    source = kernel.source
    arrays = _arrays(kernel, loop)
    _require_block(kernel, loop)
    for array in arrays:
        _require_unread(kernel, loop, array)
    step, thread = loop.step, loop.thread
    if loop.is_step_outer and any(use.start_byte >= loop.node.end_byte for use in names(block, source, step)):
        raise _NoMatchError(f"`{step}` is used behind the loop, where it would have another value.")
    edits = [
        TextEdit(loop.initial.start_byte, loop.initial.end_byte, f"{_factor(source.node_text(loop.bound))} / 2"),
        TextEdit(loop.condition.start_byte, loop.condition.end_byte, f"{step} > 0"),
        TextEdit(loop.update.start_byte, loop.update.end_byte, f"{step} >>= 1"),
        TextEdit(loop.guard.start_byte, loop.guard.end_byte, f"{thread} < {step}"),
    ]
    if loop.index is not None:
        edits.append(_without_line(source, loop.index))
        consequence = loop.branch.child_by_field_name("consequence")
        uses = names(consequence, source, loop.element) if consequence is not None else iter(())
        edits += [TextEdit(use.start_byte, use.end_byte, thread) for use in uses]
    exact = all(_is_integer(kernel, array) for array in arrays)
    listed = " and ".join(arrays)
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=source,
        edits=tuple(edits),
        explanation=(
            f"The stride {step} now halves from half a block to 1, and the first {step} threads work. Whole warps fall "
            f"idle instead of lanes of all warps, and neighbouring lanes use neighbouring banks of {listed}."
            + (
                ""
                if exact
                else " The order of the operations changes, so floating-point rounding can change in the last bits."
            )
        ),
        safe=exact,
    )


def _match(source: Source, block: Node, node: Node) -> _Loop:
    step, initial = _start(source, node)
    condition, update = node.child_by_field_name("condition"), node.child_by_field_name("update")
    initializer = node.child_by_field_name("initializer")
    is_step_outer = initializer is not None and initializer.type != "declaration"
    if condition is None or update is None or not _doubles(squeezed(source.node_text(update)), step):
        raise _NoMatchError
    left, right = condition.child_by_field_name("left"), condition.child_by_field_name("right")
    if condition.type != "binary_expression" or left is None or right is None:
        raise _NoMatchError
    if source.node_text(left) != step or not _has_operator(condition, source, "<"):
        raise _NoMatchError(f"The loop over {step} does not run while {step} is less than the size of the block.")
    statements = _statements(node.child_by_field_name("body"))
    branches = [s for s in statements if s.type == "if_statement"]
    if len(branches) != 1:
        raise _NoMatchError(f"The loop over {step} has not exactly one `if`.")
    branch = branches[0]
    rest = [s for s in statements if s is not branch]
    index: Node | None = None
    barrier_after = False
    for statement in rest:
        if statement.type == "declaration" and index is None and statement.start_byte < branch.start_byte:
            index = statement
        elif _is_barrier(statement, source):
            barrier_after |= statement.start_byte > branch.end_byte
        else:
            line = source.position(statement.start_byte)[0]
            raise _NoMatchError(f"The loop over {step} does something else than the reduction at line {line}.")
    if not barrier_after:
        raise _NoMatchError(f"No barrier follows the reduction step in the loop over {step}.")
    if branch.child_by_field_name("alternative") is not None:
        raise _NoMatchError(f"The `if` in the loop over {step} has an `else`.")
    clause = branch.child_by_field_name("condition")
    guard = clause.child_by_field_name("value") if clause is not None else None
    if guard is None:
        raise _NoMatchError
    bound = squeezed(source.node_text(right))
    if index is None:
        element = thread = _modulo_guard(source, guard, step, bound)
    else:
        element, thread = _doubled_index(source, index, step)
        if squeezed(source.node_text(guard)) not in (f"{element}<{bound}", f"{element}+{step}<{bound}"):
            raise _NoMatchError(
                f"The `if` in the loop over {step} does not test {element} against the size of the block."
            )
    if not _is_thread_number(source, block, thread):
        raise _NoMatchError(f"`{thread}` is not known to be threadIdx.x throughout the kernel.")
    return _Loop(node, step, is_step_outer, initial, right, condition, update, branch, guard, index, element, thread)


def _start(source: Source, node: Node) -> tuple[str, Node]:
    """The loop variable and the node of its initial value, which has to be 1."""
    initializer = node.child_by_field_name("initializer")
    if initializer is None:
        raise _NoMatchError
    declared = [c for c in initializer.named_children if c.type == "init_declarator"]
    if initializer.type == "declaration" and len(declared) == 1:
        name, value = declared[0].child_by_field_name("declarator"), declared[0].child_by_field_name("value")
    elif initializer.type == "assignment_expression":
        name, value = initializer.child_by_field_name("left"), initializer.child_by_field_name("right")
    else:
        raise _NoMatchError
    if name is None or value is None or not re.fullmatch(r"1[uU]?", source.node_text(value)):
        raise _NoMatchError
    return source.node_text(name), value


def _doubles(update: str, step: str) -> bool:
    s = re.escape(step)
    return re.fullmatch(rf"{s}\*=2[uU]?|{s}<<=1|{s}\+={s}|{s}=(?:{s}\*2|2\*{s}|{s}<<1|{s}\+{s})", update) is not None


def _statements(node: Node | None) -> list[Node]:
    if node is None:
        raise _NoMatchError
    inner = node.named_children if node.type == "compound_statement" else [node]
    return [s for s in inner if s.type not in ("comment", "preproc_call")]


def _has_operator(node: Node, source: Source, operator: str) -> bool:
    found = node.child_by_field_name("operator")
    return found is not None and source.node_text(found) == operator


def _is_barrier(statement: Node, source: Source) -> bool:
    call = (
        statement.named_children[0] if statement.type == "expression_statement" and statement.named_children else None
    )
    return call is not None and call.type == "call_expression" and called_name(call, source) in _BARRIERS


def _modulo_guard(source: Source, guard: Node, step: str, bound: str) -> str:
    """The thread's number in `tid % (2 * s) == 0` and its other spellings."""
    text = squeezed(source.node_text(guard))
    s, b = re.escape(step), re.escape(bound)
    double = rf"\((?:2[uU]?\*{s}|{s}\*2[uU]?|{s}<<1|{s}\+{s})\)"
    tid = r"(?P<tid>[\w.]+)"
    tests = (
        rf"\(?{tid}%{double}\)?==0[uU]?",
        rf"!\({tid}%{double}\)",
        rf"\({tid}&\({double}-1\)\)==0[uU]?",
        rf"\({tid}&\((?:2\*{s}|{s}\*2)-1\)\)==0[uU]?",
    )
    for test in tests:
        match = re.fullmatch(rf"\(?{test}\)?(?:&&\(?(?P<other>[\w.]+)\+{s}<{b}\)?)?", text)
        if match and match["other"] in (None, match["tid"]):
            return match["tid"]
    raise _NoMatchError(
        f"The `if` in the loop over {step} is not the test that picks every second thread of the step before."
    )


def _doubled_index(source: Source, declaration: Node, step: str) -> tuple[str, str]:
    """The index and the thread's number in `int index = 2 * s * tid;`."""
    declared = [c for c in declaration.named_children if c.type == "init_declarator"]
    name = declared[0].child_by_field_name("declarator") if len(declared) == 1 else None
    value = declared[0].child_by_field_name("value") if len(declared) == 1 else None
    if name is not None and value is not None:
        factors = sorted(re.sub(r"[()]", "", squeezed(source.node_text(value))).split("*"))
        rest = [f for f in factors if not re.fullmatch(r"2[uU]?", f) and f != step]
        if len(factors) == 3 and len(rest) == 1 and step in factors:
            return source.node_text(name), rest[0]
    line = source.position(declaration.start_byte)[0]
    raise _NoMatchError(f"The declaration at line {line} is not the index 2 * {step} * threadIdx.x.")


def _is_thread_number(source: Source, block: Node, name: str) -> bool:
    """threadIdx.x itself, or a local that is set to it once."""
    if name == "threadIdx.x":
        return True
    definitions = 0
    for use in names(block, source, name):
        parent = use.parent
        if parent is None:
            continue
        if parent.type == "init_declarator" and parent.child_by_field_name("declarator") == use:
            value = parent.child_by_field_name("value")
            if value is None or squeezed(source.node_text(value)) != "threadIdx.x":
                return False
            definitions += 1
        elif (
            parent.type == "update_expression"
            or (parent.type == "assignment_expression" and parent.child_by_field_name("left") == use)
            or parent.type in ("pointer_expression", "declaration", "reference_declarator")
        ):
            return False
    return definitions == 1


def _arrays(kernel: Kernel, loop: _Loop) -> list[str]:
    """The arrays that the guarded statements reduce."""
    consequence = loop.branch.child_by_field_name("consequence")
    found: list[str] = []
    for statement in _statements(consequence):
        array = _reduced(kernel.source, statement, loop.element, loop.step)
        if array is None:
            line = kernel.source.position(statement.start_byte)[0]
            raise _NoMatchError(
                f"The statement at line {line} does not combine [{loop.element}] with [{loop.element} + {loop.step}] "
                "of one array by an operation that may be reordered."
            )
        if not any(shared.name == array for shared in kernel.shared_arrays):
            raise _NoMatchError(f"`{array}` is not a __shared__ array of {kernel.name}.")
        if array not in found:
            found.append(array)
    if not found:
        raise _NoMatchError
    return found


def _reduced(source: Source, statement: Node, element: str, step: str) -> str | None:
    """The array of `a[e] op= a[e + s]`, `a[e] = a[e] op a[e + s]` or `a[e] = max(a[e], a[e + s])`."""
    assignment = (
        statement.named_children[0] if statement.type == "expression_statement" and statement.named_children else None
    )
    if assignment is None or assignment.type != "assignment_expression":
        return None
    left, right = assignment.child_by_field_name("left"), assignment.child_by_field_name("right")
    if left is None or right is None or left.type != "subscript_expression":
        return None
    argument = left.child_by_field_name("argument")
    array = source.node_text(argument) if argument is not None and argument.type == "identifier" else ""
    mine = f"{array}[{element}]"
    theirs = {f"{array}[{element}+{step}]", f"{array}[{step}+{element}]"}
    if not array or squeezed(source.node_text(left)) != mine:
        return None
    operator = assignment.child_by_field_name("operator")
    spelled = source.node_text(operator) if operator is not None else ""
    if spelled in _COMPOUND:
        return array if squeezed(source.node_text(right)) in theirs else None
    if spelled != "=":
        return None
    while right.type == "parenthesized_expression" and right.named_children:
        right = right.named_children[0]
    if right.type == "binary_expression" and any(_has_operator(right, source, op) for op in _BINARY):
        operands = [right.child_by_field_name("left"), right.child_by_field_name("right")]
    elif right.type == "call_expression" and called_name(right, source) in _SELECT:
        arguments = right.child_by_field_name("arguments")
        operands = list(arguments.named_children) if arguments is not None else []
    else:
        return None
    spellings = [squeezed(source.node_text(o)) for o in operands if o is not None]
    both = len(spellings) == 2 and mine in spellings and bool(theirs.intersection(spellings))
    return array if both else None


def _require_block(kernel: Kernel, loop: _Loop) -> None:
    """The loop covers exactly the block, a power of two threads, at every launch."""
    launches = host_launches(kernel)
    if reason := unseen_launch(kernel):
        raise _NoMatchError(reason)
    if not launches:
        raise _NoMatchError(f"No launch of {kernel.name} is in sight, and its block has to be a power of two threads.")
    bound = squeezed(kernel.source.node_text(loop.bound))
    for launch in launches:
        x, y, z = launch.block
        if launch.basis is not Basis.EXACT or x is None:
            raise _NoMatchError(
                f"The block of the launch at {launch.source} is not known, and it has to be a power of two threads."
            )
        if (y, z) != (1, 1):
            raise _NoMatchError(f"The block at {launch.source} has more than one dimension.")
        if not is_power_of_two(x):
            raise _NoMatchError(f"The block at {launch.source} has {x} threads, which is not a power of two.")
        if bound != "blockDim.x" and _constant(kernel.source, bound) != x:
            raise _NoMatchError(
                f"The loop runs to {bound}, which is not known to be the {x} threads of the block at {launch.source}."
            )


def _constant(source: Source, text: str, depth: int = 0) -> int | None:
    """A literal, or a macro or constant of this file that is one."""
    if re.fullmatch(r"\d+[uU]?", text):
        return int(text.rstrip("uU"))
    if depth > 4 or not re.fullmatch(r"\w+", text):
        return None
    found: set[str] = set()
    for macro in descendants(source.root, "preproc_def"):
        name, value = macro.child_by_field_name("name"), macro.child_by_field_name("value")
        if name is not None and source.node_text(name) == text:
            found.add(squeezed(source.node_text(value)) if value is not None else "")
    for declarator in descendants(source.root, "init_declarator"):
        name, value = declarator.child_by_field_name("declarator"), declarator.child_by_field_name("value")
        if name is not None and value is not None and source.node_text(name) == text:
            qualified = declarator.parent is not None and re.search(
                r"\bconst(?:expr)?\b", source.text(declarator.parent.start_byte, declarator.start_byte)
            )
            found.add(squeezed(source.node_text(value)) if qualified else "")
    return _constant(source, found.pop(), depth + 1) if len(found) == 1 else None


def _require_unread(kernel: Kernel, loop: _Loop, array: str) -> None:
    """Nothing but element 0 is read where the loop has run."""
    block = body(kernel)
    around = [n for n in ancestors(loop.node) if n.type in ("for_statement", "while_statement", "do_statement")]
    first = around[-1].start_byte if around else loop.node.end_byte
    for use in names(block, kernel.source, array) if block is not None else ():
        inside = loop.node.start_byte <= use.start_byte < loop.node.end_byte
        if use.start_byte >= first and not inside and not _is_harmless(kernel.source, use):
            line = kernel.source.position(use.start_byte)[0]
            raise _NoMatchError(
                f"`{array}` is read at line {line}; only {array}[0] is the same after sequential addressing."
            )


def _is_harmless(source: Source, use: Node) -> bool:
    """`a[0]` read or written, or `a[...] = ...` written over."""
    element = use.parent
    if element is None or element.type != "subscript_expression" or element.child_by_field_name("argument") != use:
        return False
    indices = element.child_by_field_name("indices")
    if indices is not None and squeezed(source.node_text(indices)) == "[0]":
        return element.parent is None or element.parent.type != "pointer_expression"
    parent = element.parent
    if parent is None or parent.type != "assignment_expression" or parent.child_by_field_name("left") != element:
        return False
    operator = parent.child_by_field_name("operator")
    return operator is not None and source.node_text(operator) == "="


def _is_integer(kernel: Kernel, array: str) -> bool:
    shared = next((a for a in kernel.shared_arrays if a.name == array), None)
    return shared is not None and _INTEGERS.fullmatch(shared.element_type.strip()) is not None


def _factor(text: str) -> str:
    """Text that can be divided as it stands."""
    return text if re.fullmatch(r"[\w.]+", text) else f"({text})"


def _without_line(source: Source, node: Node) -> TextEdit:
    """Delete a statement, and its line where nothing else is on it."""
    line = source.position(node.start_byte)[0]
    start = source.line_starts[line - 1]
    end = source.line_starts[line] if line < len(source.line_starts) else len(source.data)
    alone = not source.text(start, node.start_byte).strip() and not source.text(node.end_byte, end).strip()
    return TextEdit(start, end, "") if alone else TextEdit(node.start_byte, node.end_byte, "")
