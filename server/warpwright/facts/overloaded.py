"""Operators that a struct's functions define: `a + b` as the call of `operator+`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpwright.facts import ir
from warpwright.facts.places import Frame, Location, SlotPlace
from warpwright.facts.values import AnyValue, StructValue, Value
from warpwright.syntax.source import Span

if TYPE_CHECKING:
    from warpwright.facts.evaluate import Evaluator


class OperatorCall:
    """The two calls that one operator in the text may mean: of a member of its left operand, and of a function. Its
    operands are evaluated before, and only once."""

    def __init__(self, span: Span, op: str, operands: int) -> None:
        self.name, self._span, self._operands = f"operator{op}", span, operands
        self._values: list[AnyValue] = []
        self._place: Location = None
        self._calls: tuple[ir.Call, ir.Call] | None = None

    def __call__(self, run: Evaluator, values: list[AnyValue], mask: int, place: Location = None) -> AnyValue | None:
        """What the operator makes of these operands, the first of which stands at `place`; None where none is defined
        for them."""
        if not any(map(is_object, values)):
            return None
        if self.name not in run.unit.methods and self.name not in run.unit.functions:
            return None
        self._values, self._place = values, place
        of_member, of_function = self._calls = self._calls or self._made()
        target = of_member.target
        if (
            is_object(values[0])
            and target is not None
            and self.name in run.unit.methods
            and run.method(of_member, target, mask) is not None
        ):
            return run.call(of_member, mask)
        if run.user_function(of_function, mask) is not None:
            return run.call(of_function, mask)
        return None

    def _made(self) -> tuple[ir.Call, ir.Call]:
        held = [self._operand(index) for index in range(self._operands)]
        of_member = ir.Call(self._span, self.name, held[1:], target=held[0])
        return of_member, ir.Call(self._span, self.name, list(held))

    def _operand(self, index: int) -> ir.Expr:
        def place(_run: Evaluator, _mask: int) -> Location:
            known = self._place if index == 0 else None
            return known if known is not None else SlotPlace(Frame([self._values[index]]), 0)

        node = ir.Opaque(self._span, [])
        node.value_code = lambda _run, _mask: self._values[index]
        node.place_code = place
        return node


def is_object(value: AnyValue) -> bool:
    """Whether a value is of a struct."""
    return isinstance(value, StructValue) or (isinstance(value, Value) and value.type.kind == "struct")
