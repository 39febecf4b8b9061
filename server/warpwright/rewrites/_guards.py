"""What keeps the threads outside of the data away: `if (i < n) {...}`, or `if (i >= n) return;` before."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.rewrites._code import macro_texts, with_names
from warpwright.rewrites._layout import reindented, with_comment, without_text
from warpwright.rewrites._loops import only_statement, pragmas_before
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import descendants, uncommented
from warpwright.syntax.source import Source

_OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison that holds where the statement runs: of the operands `left` and `right`."""

    operator: str
    left: Node
    right: Node

    def text(self, source: Source, new: Mapping[str, str] = MappingProxyType({})) -> str:
        """As it is written, with variables under other names."""
        return f"{with_names(source, self.left, new)} {self.operator} {with_names(source, self.right, new)}"


@dataclass(frozen=True, slots=True)
class Guard:
    """`early` are the `if (...) return;` before a statement of the kernel's outermost level, `around` the `if` that it
    stands in instead, `before` what stands between the last of those and the statement."""

    early: tuple[Node, ...]
    around: Node | None
    before: tuple[Node, ...]
    conditions: tuple[Condition, ...]


def guard_of(source: Source, block: Node, statement: Node) -> Guard | str:
    """The guard of a statement of a kernel's body, or why it is no plain one: the reason for the user."""
    line = source.position(statement.start_byte)[0]
    inner = statement.parent
    around = _condition_around(inner, block) if inner is not None and inner != block else None
    if inner is None or (inner != block and around is None):
        return f"The loop at line {line} stands neither at the kernel's outermost level nor in one `if` without `else`."
    outer = around if around is not None else statement
    siblings = [n for n in block.named_children if n.end_byte <= outer.start_byte]
    early: list[Node] = []
    for sibling in siblings:
        if hidden := _may_leave(source, sibling):
            return hidden
        for leave in descendants(sibling, "return_statement"):
            if not is_early_return(sibling):
                return f"Threads may leave at line {source.position(leave.start_byte)[0]}, before the loop."
            early.append(sibling)
    if around is not None and early:
        return f"Threads may leave at line {source.position(early[0].start_byte)[0]}, before the loop."
    conditions: list[Condition] = []
    for branch in (*early, *((around,) if around is not None else ())):
        clause = branch.child_by_field_name("condition")
        test = clause.child_by_field_name("value") if clause is not None else None
        found = comparisons(source, test, leaves=around is None)
        if found is None:
            return f"The condition at line {source.position(branch.start_byte)[0]} is more than comparisons."
        conditions += found
    within = inner.named_children if around is not None else block.named_children
    start = early[-1].end_byte if early else within[0].start_byte if around is not None else statement.start_byte
    before = [n for n in within if start <= n.start_byte and n.end_byte <= statement.start_byte]
    return Guard(tuple(early), around, tuple(before), tuple(conditions))


def _may_leave(source: Source, statement: Node) -> str:
    """What in a statement may be a macro of another file that leaves the kernel: `CHECK_BOUNDS(i, n);`; else empty."""
    inner = uncommented(statement)
    if statement.type != "expression_statement" or len(inner) != 1:
        return ""
    name = source.node_text(inner[0]) if inner[0].type == "identifier" else ""
    if inner[0].type == "call_expression":
        name = called_name(inner[0], source)
    if not re.fullmatch(r"[A-Z][A-Z0-9_]*", name) or name in macro_texts(source):
        return ""
    return f"What {name} does at line {source.position(statement.start_byte)[0]} is not known: threads may leave there."


def _condition_around(inner: Node, block: Node) -> Node | None:
    """The `if` without `else` at the kernel's outermost level whose braces are `inner`."""
    branch = inner.parent
    if inner.type != "compound_statement" or branch is None or branch.type != "if_statement":
        return None
    plain = branch.parent == block and branch.child_by_field_name("alternative") is None
    return branch if plain else None


def is_early_return(node: Node) -> bool:
    """`if (...) return;`, with or without braces."""
    consequence = node.child_by_field_name("consequence") if node.type == "if_statement" else None
    if consequence is None or node.child_by_field_name("alternative") is not None:
        return False
    only = only_statement(consequence)
    return only is not None and only.type == "return_statement" and not uncommented(only)


def comparisons(source: Source, test: Node | None, leaves: bool) -> list[Condition] | None:
    """The comparisons that all hold where a test is true, or with `leaves`, where it is false; None for other tests."""
    while test is not None and test.type == "parenthesized_expression":
        test = next(iter(uncommented(test)), None)
    if test is None:
        return None
    operator = next((c.type for c in test.children if not c.is_named), "")
    if test.type == "unary_expression" and operator == "!":
        return comparisons(source, test.child_by_field_name("argument"), not leaves)
    left, right = test.child_by_field_name("left"), test.child_by_field_name("right")
    if test.type != "binary_expression" or left is None or right is None:
        return None
    if operator == ("||" if leaves else "&&"):
        one, other = comparisons(source, left, leaves), comparisons(source, right, leaves)
        return one + other if one is not None and other is not None else None
    if operator not in _OPPOSITE:
        return None
    return [Condition(_OPPOSITE[operator] if leaves else operator, left, right)]


def move_guard_behind(source: Source, guard: Guard, loop: Node) -> list[TextEdit]:
    """Let all threads run a loop and what stands between it and its guard, and put the guard behind the loop."""
    if guard.around is not None:
        return _opened_behind(source, guard.around, guard.before, loop)
    edits: list[TextEdit] = []
    behind = ""
    for early in guard.early:
        start, end = with_comment(source, early)
        behind += f"\n{source.line_indent(loop.start_byte)}{source.text(start, end)}"
        edits.append(without_text(source, start, end))
    return [*edits, TextEdit(loop.end_byte, loop.end_byte, behind)] if behind else []


def _opened_behind(source: Source, around: Node, before: tuple[Node, ...], loop: Node) -> list[TextEdit]:
    """`if (...) { a; loop; b; }` as `a; loop; if (...) { b; }`, but for the loop's own text."""
    braces, clause = around.child_by_field_name("consequence"), around.child_by_field_name("condition")
    if braces is None or clause is None:
        return []
    first = braces.named_children[0]
    old, new = source.line_indent(first.start_byte), source.line_indent(around.start_byte)
    start_of_loop = next((p.start_byte for p in pragmas_before(source, loop)), loop.start_byte)
    head = source.text(around.start_byte, braces.start_byte + 1)
    moved = reindented(source.text(first.start_byte, start_of_loop), old, new)
    if before and moved.endswith(old):
        moved = moved[: len(moved) - len(old)] + new
    return [
        TextEdit(around.start_byte, start_of_loop, moved),
        TextEdit(loop.end_byte, loop.end_byte, f"\n{new}{head}"),
    ]


def leading(source: Source, statements: list[Node]) -> list[Node]:
    """The declarations of numbers and the guards that a kernel starts with."""
    found: list[Node] = []
    for statement in statements:
        plain = statement.type == "declaration" and loads_nothing(source, statement)
        if not plain and not is_early_return(statement):
            break
        found.append(statement)
    return found


def loads_nothing(source: Source, statement: Node) -> bool:
    """Whether a statement between a guard and a loop can run without the guard: it declares or sets variables, and
    neither touches memory nor calls anything."""
    if statement.type == "comment":
        return True
    if statement.type not in ("declaration", "expression_statement"):
        return False
    touching = ("subscript_expression", "pointer_expression", "call_expression", "field_expression")
    if "__shared__" in source.node_code(statement):
        return False
    return all(_is_built_in(source, node) for node in descendants(statement, *touching)) and not _divides(statement)


def _is_built_in(source: Source, node: Node) -> bool:
    """`threadIdx.x`, or an initial value of an array."""
    argument = node.child_by_field_name("argument")
    names = ("threadIdx", "blockIdx", "blockDim", "gridDim")
    return node.type == "field_expression" and argument is not None and source.node_text(argument) in names


def _divides(statement: Node) -> bool:
    operators: Iterator[Node] = (
        c for n in descendants(statement, "binary_expression", "assignment_expression") for c in n.children
    )
    return any(c.type in ("/", "%", "/=", "%=") for c in operators)
