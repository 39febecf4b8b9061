"""What the Python side of an extension makes sure of before it calls a function of the C++ side."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from warpwright.cuda.extension.entries import Registration
from warpwright.cuda.extension.script import Function, Script
from warpwright.cuda.extension.unit import Unit
from warpwright.syntax.encoding import encoded

_ALL = frozenset({"device", "contiguity", "dtype", "size"})
_MADE = re.compile(r"(?:torch\.(?:empty|zeros|ones|full|rand|randn|arange|tensor)(?:_like)?|\w+\.new_\w+)\(")
_MADE_SO = {
    "contiguity": re.compile(r"\.contiguous\(\)(?:\.(?:view|reshape|flatten|float|half|int|long)\([^()]*\))*$"),
    "device": re.compile(r"\.cuda\(\w*\)|\.to\([^()]*(?:device|cuda)"),
}
_OTHERS_OWN = ("torch", "F", "self", "np", "math")
_ASKED = {
    "device": r"\b{0}\.(?:is_cuda|device)\b",
    "contiguity": r"\b{0}\.(?:is_contiguous|stride)\(",
    "dtype": r"\b{0}\.dtype\b",
    "size": r"\b{0}\.(?:shape|size|numel|ndim|dim)\b",
}


def seen_to(unit: Unit, bound: Registration, place: int) -> frozenset[str]:
    """Which properties of an argument every call in the package's Python has seen to: it made the tensor, packed it, or
    refuses others. Empty where nothing calls the function."""
    found = [
        _of_call(script, call, place)
        for script in unit.scripts
        if encoded(bound.name) in script.source.data and "test" not in script.source.path.rpartition("/")[2]
        for call in _calls(script, bound)
    ]
    return frozenset.intersection(*found) if found else frozenset()


def _calls(script: Script, bound: Registration) -> Iterator[ast.Call]:
    for call in script.calls():
        if not isinstance(call.func, ast.Attribute) or call.func.attr != bound.name:
            continue
        path = script.dotted(call.func)
        if bound.is_pybind:
            if path.partition(".")[0] not in _OTHERS_OWN:
                yield call
        elif path == f"torch.ops.{bound.space}.{bound.name}":
            yield call


def _of_call(script: Script, call: ast.Call, place: int) -> frozenset[str]:
    if place >= len(call.args) or any(isinstance(each, ast.Starred) for each in call.args):
        return frozenset()
    functions = [each for each in script.functions if any(node is call for node in ast.walk(each))]
    return _of_value(script, functions[-1] if functions else None, call.args[place])


def _of_value(script: Script, function: Function | None, value: ast.expr, depth: int = 3) -> frozenset[str]:
    text = ast.unparse(value)
    found = frozenset(aspect for aspect, pattern in _MADE_SO.items() if pattern.search(text))
    if _MADE.match(text):
        return _ALL
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and isinstance(value.func.value, ast.Name):
        found |= _of_value(script, function, value.func.value, depth - 1) - {"dtype", "size"} if depth else frozenset()
    if not isinstance(value, ast.Name) or function is None or not depth:
        return found
    if _is_gradient(script, function, value.id):
        found |= {"device", "dtype", "size"}
    asked = frozenset(
        aspect
        for node in ast.walk(function)
        if isinstance(node, ast.Assert) or (isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise))
        for aspect, pattern in _ASKED.items()
        if re.search(pattern.format(re.escape(value.id)), ast.unparse(node.test))
    )
    given = []
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id == value.id:
                    given.append(_of_value(script, function, node.value, depth - 1))
                elif isinstance(target, ast.Tuple) and value.id in (names := [ast.unparse(e) for e in target.elts]):
                    given.append(_saved(script, function, node.value, names.index(value.id), depth))
    return found | asked | frozenset[str]().union(*given)


def _is_gradient(script: Script, function: Function, name: str) -> bool:
    """Whether a name is what autograd hands to a backward: it has checked that it is like the result."""
    is_one = function.name == "backward" and name in [each.arg for each in function.args.args[1:]]
    return is_one and any(node is function for owner in script.autograd_functions for node in ast.walk(owner))


def _saved(script: Script, function: Function, value: ast.expr, at: int, depth: int) -> frozenset[str]:
    """Of what `ctx.saved_tensors` gives: what the forward made sure of before it saved it."""
    if not ast.unparse(value).endswith(".saved_tensors"):
        return frozenset()
    for owner in script.autograd_functions:
        if any(node is function for node in ast.walk(owner)):
            for forward in (
                e for e in owner.body if isinstance(e, Function) and e.name in ("forward", "setup_context")
            ):
                for call in script.calls(forward):
                    saves = isinstance(call.func, ast.Attribute) and call.func.attr == "save_for_backward"
                    if saves and at < len(call.args):
                        return _of_value(script, forward, call.args[at], depth - 1)
    return frozenset()
