"""The values that the variable of a host loop takes: `for (int i = 1; i <= 32; i *= 2)`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from warpwright.algebra.integers import integer_operation
from warpwright.facts import ir
from warpwright.facts.constants import fold

MAX_ITERATIONS = 64
"""Of a host loop that are counted."""
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!="}


@dataclass(frozen=True, slots=True)
class LoopSteps:
    """While `name relation bound` holds, `name` becomes `name operation step`."""

    name: str
    relation: str
    bound: ir.Expr
    operation: str
    step: int

    def values(self, start: int, bound: int) -> Iterator[int]:
        """The values of the first MAX_ITERATIONS iterations, in their order."""
        value: int | None = start
        for _ in range(MAX_ITERATIONS):
            if value is None or not integer_operation(self.relation, value, bound):
                return
            yield value
            value = integer_operation(self.operation, value, self.step)

    def count(self, start: int, bound: int) -> int | None:
        """How many iterations there are; None for more than MAX_ITERATIONS of steps that are not added, and for a loop
        without end.

        >>> LoopSteps("i", "<", None, "+", 3).count(0, 1000), LoopSteps("i", ">=", None, "-", 7).count(1000, 0)
        (334, 143)
        >>> LoopSteps("i", "<=", None, "*", 2).count(1, 1000), LoopSteps("i", "<", None, "-", 1).count(0, 1000)
        (10, None)
        """
        found = len(list(self.values(start, bound)))
        if found < MAX_ITERATIONS:
            return found
        by = self.step if self.operation == "+" else -self.step
        if self.operation not in ("+", "-") or self.relation not in ("<", "<=", ">", ">="):
            return None
        left = bound - start + (self.relation == "<=") - (self.relation == ">=")
        count = -(-left // by)
        return count if count >= MAX_ITERATIONS else None


def loop_steps(condition: ir.Expr | None, update: ir.Expr | None) -> LoopSteps | None:
    """The steps of a loop that compares its variable with a bound and moves it by a constant; None for others."""
    match update:
        case ir.Update(op=op, target=ir.Global(name=name)):
            operation, step = op[:1], 1
        case ir.Assign(op=op, target=ir.Global(name=name), value=value):
            constant = fold(value)
            if not op or constant is None:
                return None
            operation, step = op, int(constant)
        case _:
            return None
    match condition:
        case ir.Binary(op=relation, left=ir.Global(name=left), right=bound) if left == name:
            pass
        case ir.Binary(op=mirrored, left=bound, right=ir.Global(name=right)) if right == name:
            relation = _MIRRORED.get(mirrored, "")
        case _:
            return None
    return LoopSteps(name, relation, bound, operation, step) if relation in _MIRRORED else None
