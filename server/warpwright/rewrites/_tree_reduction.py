"""What holds of every reduction of a shared array by the threads of a block, whatever the order of its steps."""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.facts.model import Kernel
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import NoMatchError, body, macros_naming, names, squeezed
from warpwright.rewrites._interleaved import is_thread_number
from warpwright.rewrites._locals import Locals, locals_of
from warpwright.rewrites._uniform import is_uniform
from warpwright.syntax.nodes import LOOPS, ancestors, descendants, enclosing, uncommented
from warpwright.syntax.source import Source

_NUMBER_TYPE = re.compile(
    r"(?:__)?(?:nv_)?(?:half|bfloat16)2?|nv_bfloat16|(?:(?:cuda::)?std::|thrust::)?complex.*|cu\w*[cC]omplex"
)
"""Types of the toolkit's headers whose `+` and `*` are commutative."""


_LEAVES = ("return_statement", "goto_statement", "break_statement", "continue_statement")
_BRANCHES = ("if_statement", "switch_statement", "conditional_expression")


def require_whole_block(kernel: Kernel, block: Node, loop: Node) -> None:
    """Every thread of the block comes to the loop, or none does: which of them work changes, and one that is away
    leaves other elements out.
    """
    source, variables = kernel.source, locals_of(kernel)
    inner = list(ancestors(loop))
    for around in inner[: inner.index(block)]:
        if around.type in _BRANCHES and not _is_for_all(kernel, variables, around):
            line = source.position(around.start_byte)[0]
            raise NoMatchError(f"The loop stands under the condition at line {line}, which may keep threads away.")
    for leave in descendants(block, *_LEAVES):
        leaves = leave.type in ("return_statement", "goto_statement") or any(_is_loop(n) for n in inner)
        if not leaves or leave.start_byte >= loop.start_byte:
            continue
        outer = list(ancestors(leave))
        outer = outer[: outer.index(block)]
        together = leave.type == "return_statement" and all(
            n.type == "compound_statement" or _is_for_all(kernel, variables, n) for n in outer
        )
        if not together:
            line = source.position(leave.start_byte)[0]
            raise NoMatchError(f"Threads may leave at line {line}, before the loop.")


def _is_for_all(kernel: Kernel, variables: Locals, branch: Node) -> bool:
    """Whether an `if` has a condition that all threads of a block find the same: `if (blockIdx.x >= rows)`."""
    clause = branch.child_by_field_name("condition")
    test = clause.child_by_field_name("value") if clause is not None else None
    return branch.type == "if_statement" and test is not None and is_uniform(kernel, variables, test)


def _is_loop(node: Node) -> bool:
    return node.type in LOOPS


def require_reorderable(kernel: Kernel, array: str) -> None:
    """The elements are numbers, whose operations are commutative, and every use of the array is found."""
    shared = next(a for a in kernel.shared_arrays if a.name == array)
    number = builtin_type(shared.element_type) is not None or _NUMBER_TYPE.fullmatch(shared.element_type)
    if not number:
        raise NoMatchError(f"`{array}` holds {shared.element_type}, whose operators may depend on the order.")
    if macros := macros_naming(kernel.source, re.compile(rf"\b{re.escape(array)}\b")):
        raise NoMatchError(f"The macro {macros[0]} uses `{array}`, so not every use of it can be seen.")
    block = body(kernel)
    for use in names(block, kernel.source, array) if block is not None else ():
        parent = use.parent
        whole = parent is None or parent.type != "subscript_expression" or parent.child_by_field_name("argument") != use
        if whole and parent is not None and not parent.type.endswith("array_declarator"):
            line = kernel.source.position(use.start_byte)[0]
            raise NoMatchError(f"`{array}` is used as a whole at line {line}, so not every use of it can be seen.")


def require_unread(kernel: Kernel, loop: Node, array: str) -> None:
    """Nothing but element 0 is read where the loop has run, until the threads have filled the array again."""
    block = body(kernel)
    around = [n for n in ancestors(loop) if n.type in LOOPS]
    first = around[-1].start_byte if around else loop.end_byte
    filled = _filled_before(kernel, loop, array)
    again = _filled_behind(kernel, loop, array)
    for use in names(block, kernel.source, array) if block is not None else ():
        fresh = filled <= use.start_byte < loop.start_byte or use.start_byte >= again
        inside = loop.start_byte <= use.start_byte < loop.end_byte
        if use.start_byte >= first and not inside and not fresh and not _is_harmless(kernel.source, use):
            line = kernel.source.position(use.start_byte)[0]
            raise NoMatchError(f"`{array}` is read at line {line}; only {array}[0] would be the same afterwards.")


def _filled_before(kernel: Kernel, loop: Node, array: str) -> int:
    """Where the last statement before the loop in the same braces starts in which each thread sets its element."""
    earlier = loop.prev_named_sibling
    while earlier is not None and not _fills(kernel, earlier, array):
        earlier = earlier.prev_named_sibling
    return earlier.start_byte if earlier is not None else loop.start_byte


def _filled_behind(kernel: Kernel, loop: Node, array: str) -> int:
    """Where the first statement behind the loop in the same braces starts in which each thread sets its element."""
    later = loop.next_named_sibling
    while later is not None and not _fills(kernel, later, array):
        leaves = any(True for _ in descendants(later, *_LEAVES))
        later = later.next_named_sibling if not leaves else None
    return later.start_byte if later is not None else len(kernel.source.data)


def _fills(kernel: Kernel, statement: Node, array: str) -> bool:
    """Whether it is `a[tid] = value;` with a value that is not read from the array."""
    source, block = kernel.source, body(kernel)
    assignment = uncommented(statement)[0] if statement.type == "expression_statement" else None
    if block is None or assignment is None or assignment.type != "assignment_expression":
        return False
    left, value = assignment.child_by_field_name("left"), assignment.child_by_field_name("right")
    operator = assignment.child_by_field_name("operator")
    if left is None or value is None or operator is None or source.node_text(operator) != "=":
        return False
    element = re.fullmatch(rf"{re.escape(array)}\[([\w.]+)\]", squeezed(source.node_code(left)))
    return element is not None and is_thread_number(source, block, element[1]) and not any(names(value, source, array))


def _is_harmless(source: Source, use: Node) -> bool:
    """`a[0]` read or written, or `a[...] = ...` written over."""
    element = use.parent
    if element is None or element.type != "subscript_expression" or element.child_by_field_name("argument") != use:
        return False
    indices = element.child_by_field_name("indices")
    if indices is not None and squeezed(source.node_code(indices)) == "[0]":
        return element.parent is None or element.parent.type != "pointer_expression"
    parent = element.parent
    if parent is None or parent.type != "assignment_expression" or parent.child_by_field_name("left") != element:
        return False
    operator = parent.child_by_field_name("operator")
    return operator is not None and source.node_text(operator) == "="


def is_integer(kernel: Kernel, array: str) -> bool:
    shared = next((a for a in kernel.shared_arrays if a.name == array), None)
    kind = builtin_type(shared.element_type) if shared is not None else None
    return kind is not None and kind.is_integer


def by_first_thread(source: Source, use: Node, thread: str) -> bool:
    """Whether it stands in `if (tid == 0) ...`, not in its condition or its `else`."""
    branch = enclosing(use, "if_statement")
    while branch is not None:
        clause, then = branch.child_by_field_name("condition"), branch.child_by_field_name("consequence")
        tests = {f"{t}==0" for t in (thread, "threadIdx.x")} | {f"0=={t}" for t in (thread, "threadIdx.x")}
        tests |= {f"!{t}" for t in (thread, "threadIdx.x")}
        inside = then is not None and then.start_byte <= use.start_byte < then.end_byte
        if clause is not None and inside and squeezed(source.node_code(clause)) in tests:
            return True
        branch = enclosing(branch, "if_statement")
    return False
