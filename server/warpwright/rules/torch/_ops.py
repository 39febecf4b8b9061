"""The operators that an extension defines, and what is registered for each."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from warpwright.cuda.extension.entries import Registration
from warpwright.cuda.extension.unit import Bound, Function, Unit

COMPOSITE = {"CompositeImplicitAutograd", "CatchAll"}
_LIKE = re.compile(r"\b(\w+)\s*=\s*(?:torch|at)::(?:empty|zeros)_like\(\s*(\w+)\s*\)\s*;")
_OF_INTEGERS = re.compile(r"(?:\bk|ScalarType::)(?:Long|Short|Char|Byte|Bool|U?Int\d*)\b")
OF_BACKWARD = re.compile(r"backward|bwd|_grad|grad_", re.IGNORECASE)


def defined(unit: Unit) -> Iterator[Registration]:
    """The operators that the judged file defines for torch.ops: a schema in a TORCH_LIBRARY."""
    for each in unit.registrations:
        if each.method == "def" and not each.is_pybind and each.source is unit.source:
            yield each


def is_asked_for_by_another_name(unit: Unit, operator: Registration) -> bool:
    """Whether the package's Python asks for an operator that nobody registers, by a name that is nearest to this one.
    That it is not called, and what else its uses would show, is then known."""
    names = [each.name for each in unit.registrations if each.space == operator.space and each.method == "def"]
    asked = {n for script in unit.scripts for s, n, _ in script.ops if s == operator.space} - {*names}
    return any(difflib.get_close_matches(each, names, n=1) == [operator.name] for each in asked)


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


def gives_integers(unit: Unit, operator: Registration) -> bool:
    """Whether all results of an implementation are made of whole numbers: such a result has no gradient."""
    for function in (each.function for each in implementations(unit, operator)):
        given = re.findall(r"\breturn\s+([^;]*?)\s*;", function.code)
        if given and all(_is_of_integers(function.code, each) for each in given):
            return True
    return False


def _is_of_integers(code: str, value: str, depth: int = 3) -> bool:
    """Whether a tensor is made with a type of integers, by itself or by the options that it is made with.

    >>> code = "auto o = x.options().dtype(at::kLong); auto y = at::empty({n}, o); y.zero_(); return y;"
    >>> _is_of_integers(code, "y"), _is_of_integers("auto y = at::empty_like(x);", "y")
    (True, False)
    """
    if _OF_INTEGERS.search(value):
        return True
    name = re.search(r"(?:^|,\s*)(\w+)\s*\)?$", value) if depth else None
    made = re.findall(rf"\b{name[1]}\s*=\s*([^;=][^;]*);", code) if name is not None else []
    return bool(made) and all(_is_of_integers(code, each.strip(), depth - 1) for each in made)


def tensors_in(operator: Registration) -> bool:
    """Whether the schema takes a tensor; a name alone, whose schema torch infers, is taken to."""
    return "(" not in operator.text or re.search(r"\bTensor\b", operator.text.partition("->")[0]) is not None


def gives_tensor(operator: Registration) -> bool:
    return operator.returns is None or "Tensor" in operator.returns
