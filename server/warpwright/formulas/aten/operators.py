"""The table of operators: each is a function of a builder, the result's shape, and the operator's arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Operator = Callable[..., Any]
OPERATORS: dict[str, Operator] = {}
"""By name without "aten."; the result is a value, or a list of them for an operator with several."""


def operator(*names: str) -> Callable[[Operator], Operator]:
    """Enters a function under the names of operators."""

    def enter(function: Operator) -> Operator:
        for name in names:
            OPERATORS[name] = function
        return function

    return enter
