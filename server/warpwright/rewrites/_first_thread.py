"""A loop that thread 0 of a block runs alone, in `if (threadIdx.x == 0) {...}`, and what it may read there."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from warpwright.facts.model import Kernel
from warpwright.rewrites._code import NoMatchError, squeezed
from warpwright.rewrites._interleaved import is_barrier, is_thread_number, statements_of
from warpwright.rewrites._layout import line_of
from warpwright.rewrites._row_loop import targets
from warpwright.rewrites._threads import unfit_call
from warpwright.syntax.nodes import LOOPS, ancestors, uncommented
from warpwright.syntax.source import Source


@dataclass(frozen=True, slots=True)
class Alone:
    """`if (thread == 0 && others) {... loop ...}`; `test` is the comparison."""

    loop: Node
    branch: Node
    test: Node
    others: tuple[Node, ...]
    thread: str


def loop_of_first_thread(source: Source, block: Node, loop: Node) -> Alone | None:
    """The `if` of thread 0 that a loop stands in, with nothing but braces between."""
    inner = loop
    for around in ancestors(loop):
        if around.type == "if_statement":
            clause, then = around.child_by_field_name("condition"), around.child_by_field_name("consequence")
            value = clause.child_by_field_name("value") if clause is not None else None
            leaves = conjuncts(value) if value is not None and then == inner else []
            for leaf in leaves:
                thread = _is_first(source, block, leaf)
                if thread:
                    return Alone(loop, around, leaf, tuple(other for other in leaves if other != leaf), thread)
            return None
        if around.type != "compound_statement" or around == block:
            return None
        inner = around
    return None


def stands_with_first_thread(source: Source, block: Node, node: Node) -> bool:
    """Whether a statement stands in an `if` that thread 0 of a block alone passes."""
    for around in ancestors(node):
        if around == block:
            return False
        clause, then = around.child_by_field_name("condition"), around.child_by_field_name("consequence")
        value = clause.child_by_field_name("value") if around.type == "if_statement" and clause is not None else None
        inside = then is not None and then.start_byte <= node.start_byte < then.end_byte
        if value is not None and inside and any(_is_first(source, block, leaf) for leaf in conjuncts(value)):
            return True
    return False


def conjuncts(condition: Node, operator: str = "&&") -> list[Node]:
    """`a`, `b` and `c` of `a && (b && c)`, or of what another operator joins."""
    inner = condition
    while inner.type == "parenthesized_expression" and len(uncommented(inner)) == 1:
        inner = uncommented(inner)[0]
    left, right = inner.child_by_field_name("left"), inner.child_by_field_name("right")
    joins = inner.type == "binary_expression" and any(child.type == operator for child in inner.children)
    if joins and left is not None and right is not None:
        return conjuncts(left, operator) + conjuncts(right, operator)
    return [inner]


def _is_first(source: Source, block: Node, test: Node) -> str:
    """The thread's index in `tid == 0`, `0 == tid` and `!tid`; empty for any other test."""
    text = squeezed(source.node_code(test))
    if text.startswith("!"):
        thread = text[1:]
    else:
        left, _, right = text.partition("==")
        thread = left if right in ("0", "0u", "0U") else right if left in ("0", "0u", "0U") else ""
    plain = thread == "threadIdx.x" or thread.isidentifier()
    return thread if plain and is_thread_number(source, block, thread) else ""


def is_block_barrier(source: Source, statement: Node) -> bool:
    return is_barrier(statement, source) and source.node_code(statement).startswith("__syncthreads")


def statements_before(node: Node, outer: Node) -> list[Node]:
    """The statements before a node in the braces around it, up to those of `outer`, which are not among them."""
    found: list[Node] = []
    for inner in (node, *ancestors(node)):
        if inner == outer:
            break
        earlier = inner.prev_named_sibling if inner.parent is not None and inner.parent.type != "if_statement" else None
        while earlier is not None:
            found.append(earlier)
            earlier = earlier.prev_named_sibling
    return found


def require_settled(kernel: Kernel, block: Node, alone: Alone, own: frozenset[str]) -> None:
    """All that the loop reads was stored before a barrier that stands before the `if`; `own` are the variables that it
    puts values together in, which may be set in between."""
    source = kernel.source
    for statement in statements_before(alone.loop, alone.branch):
        _require_no_store(kernel, statement, own)
    around: Node = alone.branch
    while True:
        before = around.prev_named_sibling
        while before is not None:
            if is_block_barrier(source, before):
                return
            if before.type not in LOOPS or not _ends_with_barrier(source, before):
                _require_no_store(kernel, before, own)
            before = before.prev_named_sibling
        outer = next((n for n in ancestors(around) if n.type != "compound_statement" or n == block), block)
        if outer.type != "if_statement":
            raise NoMatchError(f"No barrier stands before the `if` at line {line_of(source, alone.branch)}.")
        around = outer


def _ends_with_barrier(source: Source, loop: Node) -> bool:
    statements = statements_of(loop.child_by_field_name("body"))
    return bool(statements) and is_block_barrier(source, statements[-1])


def _require_no_store(kernel: Kernel, statement: Node, own: frozenset[str]) -> None:
    source = kernel.source
    if statement.type in ("comment", "preproc_call"):
        return
    shared = {array.name for array in kernel.shared_arrays}
    for target in targets(statement, source):
        if target.type != "identifier" or source.node_text(target) in shared - own:
            line = line_of(source, target)
            raise NoMatchError(f"What line {line} stores may be read in the loop, and no barrier stands between.")
    if reason := unfit_call(kernel, statement):
        raise NoMatchError(reason)
