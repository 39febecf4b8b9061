"""Host loops that launch one kernel for each part of their arrays, as their text says it.

Example: in `for (int r = 0; r < rows; ++r) scale<<<grid, 256>>>(y + r * n, x + r * n, n);` the count is `rows`, and the
arguments are `y` moved by `n` elements each time, `x` moved by `n`, and `n`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.syntax.nodes import LOOPS, descendants, enclosing, launch_configuration, uncommented
from warpwright.syntax.source import Source

STEP_WORD = re.compile(r"[A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)*")
"""A variable, or a member of one, in a factor of a step."""
_ASKS = re.compile(r"[\w.>-]+(?:\.|->)(?:data|data_ptr|get|size|rows|cols)(?:<\w+>)?\(\)")
"""Calls that give the same each time: `x.data()`, and not `next()`."""
MOST_ROWS = 65535
"""Blocks that a grid may have in y and in z (CUDA C++ Programming Guide, compute capabilities)."""


@dataclass(frozen=True, slots=True)
class Moved:
    """An argument of a launch in a loop: `node` is all of it, `base` its text at the first iteration, and `step` by how
    many elements it moves from one iteration to the next, as factors; None where it stays."""

    node: Node
    base: str
    step: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class LaunchLoop:
    """`for (variable = 0; variable < count; ++variable) call;`, `type` the variable's."""

    loop: Node
    call: Node
    variable: str
    type: str
    count: Node
    update: Node
    arguments: tuple[Moved, ...]


def loop_around(call: Node) -> Node | None:
    """The innermost loop that a launch stands in; None where there is none in its function."""
    around = enclosing(call, *LOOPS, "function_definition", "lambda_expression")
    return around if around is not None and around.type in LOOPS else None


def launch_loop(source: Source, call: Node, update: str = "1") -> LaunchLoop | str:
    """The loop whose one statement is a launch, with its arguments taken apart; or the reason why it is none.

    `update` is by how much the variable goes on.
    """
    loop = loop_around(call)
    if loop is None:
        return "The launch stands in no loop."
    if loop.type != "for_statement":
        return "The loop around the launch is not a `for` that counts its iterations."
    line = source.position(loop.start_byte)[0]
    body = loop.child_by_field_name("body")
    statements = uncommented(body) if body is not None and body.type == "compound_statement" else [body]
    if [s.named_children for s in statements if s is not None] != [[call]] or call.parent in (loop, None):
        return f"The loop at line {line} does more than to launch one kernel."
    counted = _counted(source, loop, update)
    if counted is None:
        return f"The loop at line {line} does not count up from 0 to a loop-invariant bound."
    variable, kind, count, step = counted
    arguments: list[Moved] = []
    for argument in uncommented(call.child_by_field_name("arguments")):
        moved = _moved(source, argument, variable)
        if moved is None:
            return f"`{source.node_code(argument)}` does not move by the same step at each iteration."
        arguments.append(moved)
    return LaunchLoop(loop, call, variable, kind, count, step, tuple(arguments))


def is_alike(source: Source, loop: LaunchLoop) -> bool:
    """Whether each iteration launches with the same grid, block, shared memory and stream."""
    shape = launch_configuration(loop.call)
    return shape is not None and _stays(source, shape, loop.variable, calls=True)


def _counted(source: Source, loop: Node, by: str) -> tuple[str, str, Node, Node] | None:
    """The variable of `for (int i = 0; i < count; ++i)`, its type, the count and the update."""
    first, condition, update = (loop.child_by_field_name(f) for f in ("initializer", "condition", "update"))
    if first is None or condition is None or update is None or first.type != "declaration":
        return None
    kind, declarators = first.child_by_field_name("type"), first.children_by_field_name("declarator")
    if kind is None or len(declarators) != 1 or declarators[0].type != "init_declarator":
        return None
    name, value = (declarators[0].child_by_field_name(f) for f in ("declarator", "value"))
    if name is None or name.type != "identifier" or value is None or source.node_code(value) != "0":
        return None
    variable = source.node_code(name)
    left, relation, count = (condition.child_by_field_name(f) for f in ("left", "operator", "right"))
    if left is None or relation is None or count is None or relation.type != "<":
        return None
    if source.node_code(left) != variable or not _stays(source, count, variable):
        return None
    written = "".join(source.node_code(update).split())
    ways = [f"{variable}+={by}", *([f"++{variable}", f"{variable}++"] if by == "1" else [])]
    return (variable, source.node_code(kind), count, update) if written in ways else None


def _stays(source: Source, node: Node, variable: str, *, calls: bool = False) -> bool:
    """Whether an expression gives the same at each iteration: it names nothing that changes, and calls nothing unless
    `calls` are taken to give the same."""
    changing = ["assignment_expression", "update_expression", "lambda_expression"]
    changing += [] if calls else ["call_expression"]
    if node.type in changing or any(True for _ in descendants(node, *changing)):
        return False
    return all(source.node_code(n) != variable for n in descendants(node, "identifier"))


def _moved(source: Source, argument: Node, variable: str) -> Moved | None:
    if _stays(source, argument, variable):
        return Moved(argument, source.node_code(argument), None)
    if any(True for _ in descendants(argument, "update_expression", "assignment_expression", "lambda_expression")):
        return None
    if not any(source.node_code(n) == variable for n in descendants(argument, "identifier")):
        asks = all(_ASKS.fullmatch(source.node_code(n)) for n in descendants(argument, "call_expression"))
        return Moved(argument, source.node_code(argument), None) if asks else None
    if argument.type == "pointer_expression":
        return _element(source, argument, variable)
    terms = _parts(argument, "+")
    moving = [t for t in terms if not _stays(source, t, variable)]
    if len(terms) < 2 or len(moving) != 1 or moving[0] == terms[0]:
        return None
    step = _step(source, moving[0], variable)
    base = " + ".join(source.node_code(t) for t in terms if t != moving[0])
    return Moved(argument, base, step) if step is not None else None


def _element(source: Source, argument: Node, variable: str) -> Moved | None:
    """`&x[i * n]` is `x` moved by `n`."""
    element = argument.child_by_field_name("argument")
    if argument.children[0].type != "&" or element is None or element.type != "subscript_expression":
        return None
    array, listed = element.child_by_field_name("argument"), element.child_by_field_name("indices")
    index = uncommented(listed)
    if array is None or array.type != "identifier" or len(index) != 1:
        return None
    step = _step(source, index[0], variable)
    return Moved(argument, source.node_code(array), step) if step is not None else None


def _step(source: Source, term: Node, variable: str) -> tuple[str, ...] | None:
    """What a product multiplies the variable with: `n` and `m` of `i * n * m`, nothing of `i`."""
    factors = _parts(term, "*")
    own = [f for f in factors if not _stays(source, f, variable)]
    if len(own) != 1:
        return None
    inner = own[0]
    while inner.type in ("cast_expression", "parenthesized_expression"):
        value = inner.child_by_field_name("value") if inner.type == "cast_expression" else uncommented(inner)[0]
        if value is None:
            return None
        inner = value
    if inner.type != "identifier":
        return None
    return tuple(source.node_code(f) for f in factors if f != own[0])


def _parts(node: Node, operator: str) -> list[Node]:
    """The operands of a sum or a product, in their order; one of another kind keeps its parentheses."""
    inner = node
    while inner.type == "parenthesized_expression" and len(uncommented(inner)) == 1:
        inner = uncommented(inner)[0]
    written = inner.child_by_field_name("operator") if inner.type == "binary_expression" else None
    left, right = inner.child_by_field_name("left"), inner.child_by_field_name("right")
    if written is None or written.type != operator or left is None or right is None:
        return [node]
    return [*_parts(left, operator), *_parts(right, operator)]
