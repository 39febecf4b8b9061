"""The loop of an interleaved reduction, recognised in its usual spellings.

Example: `for (s = 1; s < blockDim.x; s *= 2) { if (tid % (2 * s) == 0) a[tid] += a[tid + s]; __syncthreads(); }`
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.rewrites._code import NoMatchError, condition_of, names, squeezed
from warpwright.syntax.nodes import uncommented
from warpwright.syntax.source import Source

_BARRIERS = frozenset({"__syncthreads", "sync"})


@dataclass(frozen=True, slots=True)
class InterleavedLoop:
    """An interleaved reduction: `for (s = 1; s < bound; s *= 2) { [index = 2*s*tid;] if (...) {...} barrier; }`, or
    `for (s = 2; s <= bound; s *= 2)` over elements that are half of `s` apart.

    `index` is the declaration of the doubled index, None in the form with `%`; `element` is what indexes the array:
    that index, or the thread's own number. `distances` are the spellings of how far apart the two elements are.
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
    distances: tuple[str, ...]


def match_loop(source: Source, block: Node, node: Node) -> InterleavedLoop:
    step, initial, from_two = _start(source, node)
    condition, update = node.child_by_field_name("condition"), node.child_by_field_name("update")
    initializer = node.child_by_field_name("initializer")
    is_step_outer = initializer is not None and initializer.type != "declaration"
    if condition is None or update is None or not _doubles(squeezed(source.node_code(update)), step):
        raise NoMatchError
    left, right = condition.child_by_field_name("left"), condition.child_by_field_name("right")
    if condition.type != "binary_expression" or left is None or right is None:
        raise NoMatchError
    if source.node_text(left) != step or not has_operator(condition, source, "<=" if from_two else "<"):
        last = "at most" if from_two else "less than"
        raise NoMatchError(f"The loop over {step} does not run while {step} is {last} the size of the block.")
    statements = statements_of(node.child_by_field_name("body"))
    branches = [s for s in statements if s.type == "if_statement"]
    if len(branches) != 1:
        raise NoMatchError(f"The loop over {step} does not have exactly one `if`.")
    branch = branches[0]
    rest = [s for s in statements if s is not branch]
    index: Node | None = None
    barrier_after = False
    for statement in rest:
        if statement.type == "declaration" and index is None and statement.start_byte < branch.start_byte:
            index = statement
        elif is_barrier(statement, source):
            barrier_after |= statement.start_byte > branch.end_byte
        else:
            line = source.position(statement.start_byte)[0]
            raise NoMatchError(f"The loop over {step} does something other than the reduction at line {line}.")
    if not barrier_after:
        raise NoMatchError(f"No barrier follows the reduction step in the loop over {step}.")
    if branch.child_by_field_name("alternative") is not None:
        raise NoMatchError(f"The `if` in the loop over {step} has an `else`.")
    guard = condition_of(branch)
    if guard is None:
        raise NoMatchError
    bound = squeezed(source.node_code(right))
    if index is None:
        element = thread = _modulo_guard(source, guard, step, bound, from_two)
    elif from_two:
        raise NoMatchError(f"The loop over {step} starts at 2 and computes an index from it.")
    else:
        element, thread = _doubled_index(source, index, step)
        if squeezed(source.node_code(guard)) not in (f"{element}<{bound}", f"{element}+{step}<{bound}"):
            raise NoMatchError(
                f"The `if` in the loop over {step} does not test {element} against the size of the block."
            )
    if not is_thread_number(source, block, thread):
        raise NoMatchError(f"`{thread}` is not known to be threadIdx.x throughout the kernel.")
    halves = tuple(f"{step}{half}" for half in ("/2", "/2u", "/2U", ">>1"))
    distances = (*halves, *(f"({half})" for half in halves)) if from_two else (step,)
    return InterleavedLoop(
        node, step, is_step_outer, initial, right, condition, update, branch, guard, index, element, thread, distances
    )


def _start(source: Source, node: Node) -> tuple[str, Node, bool]:
    """The loop variable and the node of its initial value, which has to be 1 or 2; whether it is 2."""
    initializer = node.child_by_field_name("initializer")
    if initializer is None:
        raise NoMatchError
    declared = [c for c in initializer.named_children if c.type == "init_declarator"]
    if initializer.type == "declaration" and len(declared) == 1:
        name, value = declared[0].child_by_field_name("declarator"), declared[0].child_by_field_name("value")
    elif initializer.type == "assignment_expression":
        name, value = initializer.child_by_field_name("left"), initializer.child_by_field_name("right")
    else:
        raise NoMatchError
    if name is None or value is None or not re.fullmatch(r"[12][uU]?", source.node_code(value)):
        raise NoMatchError
    return source.node_text(name), value, source.node_code(value).startswith("2")


def _doubles(update: str, step: str) -> bool:
    s = re.escape(step)
    return re.fullmatch(rf"{s}\*=2[uU]?|{s}<<=1|{s}\+={s}|{s}=(?:{s}\*2|2\*{s}|{s}<<1|{s}\+{s})", update) is not None


def statements_of(node: Node | None) -> list[Node]:
    if node is None:
        raise NoMatchError
    inner = node.named_children if node.type == "compound_statement" else [node]
    return [s for s in inner if s.type not in ("comment", "preproc_call")]


def has_operator(node: Node, source: Source, operator: str) -> bool:
    found = node.child_by_field_name("operator")
    return found is not None and source.node_text(found) == operator


def is_barrier(statement: Node, source: Source) -> bool:
    call = uncommented(statement)[0] if statement.type == "expression_statement" and uncommented(statement) else None
    return call is not None and call.type == "call_expression" and called_name(call, source) in _BARRIERS


def _modulo_guard(source: Source, guard: Node, step: str, bound: str, from_two: bool) -> str:
    """The thread's index in `tid % (2 * s) == 0` and its other spellings, in `tid % s == 0` where `s` starts at 2."""
    text = squeezed(source.node_code(guard))
    s, b = re.escape(step), re.escape(bound)
    double = s if from_two else rf"\((?:2[uU]?\*{s}|{s}\*2[uU]?|{s}<<1|{s}\+{s})\)"
    without = s if from_two else rf"(?:{double}|2\*{s}|{s}\*2)"
    other = rf"{s}(?:/2[uU]?|>>1)" if from_two else s
    tid = r"(?P<tid>[\w.]+)"
    tests = (
        rf"\(?{tid}%{double}\)?==0[uU]?",
        rf"!\({tid}%{double}\)",
        rf"\({tid}&\({without}-1\)\)==0[uU]?",
    )
    for test in tests:
        match = re.fullmatch(rf"\(?{test}\)?(?:&&\(?(?P<other>[\w.]+)\+{other}<{b}\)?)?", text)
        if match and match["other"] in (None, match["tid"]):
            return match["tid"]
    raise NoMatchError(
        f"The `if` in the loop over {step} is not the test that picks every second thread of the step before."
    )


def _doubled_index(source: Source, declaration: Node, step: str) -> tuple[str, str]:
    """The index and the thread's index in `int index = 2 * s * tid;`."""
    declared = [c for c in declaration.named_children if c.type == "init_declarator"]
    name = declared[0].child_by_field_name("declarator") if len(declared) == 1 else None
    value = declared[0].child_by_field_name("value") if len(declared) == 1 else None
    if name is not None and value is not None:
        factors = sorted(re.sub(r"[()]", "", squeezed(source.node_code(value))).split("*"))
        rest = [f for f in factors if not re.fullmatch(r"2[uU]?", f) and f != step]
        if len(factors) == 3 and len(rest) == 1 and step in factors:
            return source.node_text(name), rest[0]
    line = source.position(declaration.start_byte)[0]
    raise NoMatchError(f"The declaration at line {line} is not the index 2 * {step} * threadIdx.x.")


def is_thread_number(source: Source, block: Node, name: str) -> bool:
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
            if value is None or squeezed(source.node_code(value)) != "threadIdx.x":
                return False
            definitions += 1
        elif (
            parent.type == "update_expression"
            or (parent.type == "assignment_expression" and parent.child_by_field_name("left") == use)
            or parent.type in ("pointer_expression", "declaration", "reference_declarator")
        ):
            return False
    return definitions == 1
