"""The operators that an extension defines, and what is registered for each."""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpwright.cuda.extension.entries import Registration
from warpwright.cuda.extension.unit import Bound, Function, Unit

COMPOSITE = {"CompositeImplicitAutograd", "CatchAll"}
_LIKE = re.compile(r"\b(\w+)\s*=\s*(?:torch|at)::(?:empty|zeros)_like\(\s*(\w+)\s*\)\s*;")
OF_BACKWARD = re.compile(r"backward|bwd|_grad|grad_", re.IGNORECASE)


def defined(unit: Unit) -> Iterator[Registration]:
    """The operators that the judged file defines for torch.ops: a schema in a TORCH_LIBRARY."""
    for each in unit.registrations:
        if each.method == "def" and not each.is_pybind and each.source is unit.source:
            yield each


def implementations(unit: Unit, operator: Registration) -> list[Bound]:
    return [b for b in unit.bound if (b.registration.space, b.registration.name) == (operator.space, operator.name)]


def called(operator: Registration) -> str:
    return f"{operator.space}::{operator.name}" if operator.space else operator.name


def gives_like(function: Function) -> str:
    """The parameter that the function's only result is like, by `empty_like` or `zeros_like`; "" for none."""
    made = dict(_LIKE.findall(function.code))
    given = {made.get(each, "") for each in re.findall(r"\breturn\s+([^;]*?)\s*;", function.code)}
    (like,) = given if len(given) == 1 else ("",)
    return like if like in dict(function.parameters) else ""


def tensors_in(operator: Registration) -> bool:
    """Whether the schema takes a tensor; a name alone, whose schema torch infers, is taken to."""
    return "(" not in operator.text or re.search(r"\bTensor\b", operator.text.partition("->")[0]) is not None


def gives_tensor(operator: Registration) -> bool:
    return operator.returns is None or "Tensor" in operator.returns
