"""The work of a kernel on what one variable numbers, and the test of that variable before or around it."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from warpwright.rewrites._code import NoMatchError, condition_of, names
from warpwright.rewrites._guards import comparisons, is_early_return
from warpwright.rewrites._layout import line_of
from warpwright.rewrites._locals import Locals
from warpwright.syntax.nodes import descendants, uncommented
from warpwright.syntax.source import Source


@dataclass(frozen=True, slots=True)
class GuardedWork:
    """`guard` tests the variable against `bound` before or around the work; `others` are its parts that ask for
    something else. Both are None where the work is not tested as a whole. `before` stands before the guard or work."""

    guard: Node | None
    bound: Node | None
    others: tuple[str, ...]
    before: tuple[Node, ...]
    work: tuple[Node, ...]

    @property
    def is_early(self) -> bool:
        return self.guard is not None and is_early_return(self.guard)


def guarded_work(source: Source, variables: Locals, name: str, statements: list[Node]) -> GuardedWork | None:
    """How a kernel's outermost statements, its declaration left out, test a variable of that name; None where none uses
    it. Raises NoMatchError where a condition asks more of it than whether it is less than a bound."""
    first = next((n for n, s in enumerate(statements) if uses(source, s, name)), None)
    if first is None:
        return None
    guard, before = statements[first], tuple(statements[:first])
    early = is_early_return(guard)
    last = first + 1 == len(statements)
    around = guard.type == "if_statement" and last and guard.child_by_field_name("alternative") is None
    if not early and not around:
        return GuardedWork(None, None, (), before, tuple(statements[first:]))
    test = condition_of(guard)
    bound: Node | None = None
    others: list[str] = []
    for part in _parts(test, "||" if early else "&&") if test is not None else []:
        found = comparisons(source, part, leaves=early)
        held = found[0] if found is not None and len(found) == 1 else None
        tests = held is not None and held.operator == "<" and source.node_text(held.left) == name
        if held is not None and tests and bound is None and _is_plain(source, variables, held.right):
            bound = held.right
        elif uses(source, part, name):
            raise NoMatchError(f"The condition at line {line_of(source, guard)} is more than a test of `{name}`.")
        else:
            others.append(source.node_text(part))
    if not early and bound is None:
        return GuardedWork(None, None, (), before, tuple(statements[first:]))
    inner = guard.child_by_field_name("consequence")
    inside = (
        uncommented(inner) if inner is not None and inner.type == "compound_statement" else [inner] if inner else []
    )
    work = statements[first + 1 :] if early else inside
    if bound is None or not work:
        raise NoMatchError(f"The condition at line {line_of(source, guard)} does not compare `{name}` with a bound.")
    return GuardedWork(guard, bound, tuple(others), before, tuple(work))


def uses(source: Source, node: Node, name: str) -> bool:
    return any(True for _ in names(node, source, name))


def _is_plain(source: Source, variables: Locals, bound: Node) -> bool:
    words = [source.node_text(n) for n in descendants(bound, "identifier")]
    return bound.type == "identifier" and all(variables.is_fixed(word) for word in words)


def _parts(test: Node, operator: str) -> list[Node]:
    """The operands of `a || b || c`."""
    if test.type == "binary_expression" and any(c.type == operator for c in test.children):
        sides = [test.child_by_field_name(side) for side in ("left", "right")]
        return [part for side in sides if side is not None for part in _parts(side, operator)]
    return [test]
