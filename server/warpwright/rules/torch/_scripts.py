"""Where the Python side calls what the C++ side defines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from warpwright.cuda.extension.script import Function, Script
from warpwright.cuda.extension.unit import Unit

_TORCHS_OWN = frozenset(
    {"aten", "prims", "prim", "c10d", "c10d_functional", "_c10d_functional", "inductor", "quantized"}
)
_LOADERS = ("load", "load_inline")
_LOADED = "torch.utils.cpp_extension."
_NATIVE = re.compile(r"_C|\w+_(?:cuda|ext|cpp|C|kernels?)")
_SAYS = re.compile(r"warn|log|print|raise|error|exception|critical", re.IGNORECASE)


def module_names(unit: Unit, script: Script) -> set[str]:
    """The names by which a script knows such a module: imported, or what `load` gave."""
    built = unit.modules
    may_guess = not built and any(each.is_pybind for each in unit.registrations)
    found = set()
    for node in ast.walk(script.tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for each in node.names:
                last = each.name.rpartition(".")[2]
                relative = isinstance(node, ast.ImportFrom) and node.level > 0
                if last in built or ((relative or may_guess) and _NATIVE.fullmatch(last)):
                    found.add(each.asname or (each.name if isinstance(node, ast.Import) else last))
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            target = node.targets[0]
            if script.dotted(node.value.func).removeprefix(_LOADED) in _LOADERS and isinstance(target, ast.Name):
                found.add(target.id)
    return found


def module_calls(unit: Unit, script: Script, within: ast.AST | None = None) -> Iterator[tuple[str, ast.Attribute]]:
    """(function, where) of each use of a function of such a module."""
    names = module_names(unit, script)
    for node in ast.walk(within or script.tree):
        if isinstance(node, ast.Attribute) and not node.attr.startswith("__"):
            owner = ast.unparse(node.value) if isinstance(node.value, ast.Name | ast.Attribute) else ""
            if owner in names:
                yield node.attr, node


def native_names(unit: Unit, script: Script, within: ast.AST) -> list[str]:
    """What a part of a script calls of the extension: operators that are not torch's own, and functions of its
    module."""
    inside = {id(node) for node in ast.walk(within)}
    ops = [
        f"torch.ops.{space}.{name}" for space, name, at in script.ops if id(at) in inside and space not in _TORCHS_OWN
    ]
    return ops + [ast.unparse(at) for _, at in module_calls(unit, script, within)]


def says_so(body: list[ast.stmt]) -> bool:
    """Whether statements raise, warn, log or print."""
    for node in (inner for each in body for inner in ast.walk(each)):
        if isinstance(node, ast.Raise | ast.Assert):
            return True
        if isinstance(node, ast.Call) and _SAYS.search(ast.unparse(node.func)):
            return True
    return False


def compiled(unit: Unit) -> Iterator[tuple[Script, Function]]:
    """The functions that torch.compile is known to follow: decorated, handed to it by name, or those that these call;
    of a module that it is handed, each `forward`."""
    named: dict[str, list[tuple[Script, Function]]] = {}
    pending: list[tuple[Script, Function]] = []
    roots: set[str] = set()
    for script in unit.scripts:
        for function in script.functions:
            named.setdefault(function.name, []).append((script, function))
            if any(_is_compile(script, each) for each in function.decorator_list):
                pending.append((script, function))
        for call in script.calls():
            if _is_compile(script, call) and call.args:
                roots.add(ast.unparse(call.args[0]).partition("(")[0].rpartition(".")[2])
    if roots - named.keys():
        pending += named.get("forward", [])
    pending += [each for root in roots for each in named.get(root, [])]
    seen: set[int] = set()
    while pending:
        script, function = pending.pop()
        if id(function) in seen:
            continue
        seen.add(id(function))
        yield script, function
        for call in script.calls(function):
            last = ast.unparse(call.func).rpartition(".")[2]
            called = "forward" if last == "apply" else last
            pending += named.get(called, [])


def _is_compile(script: Script, node: ast.expr) -> bool:
    target = node.func if isinstance(node, ast.Call) else node
    return script.dotted(target) in ("torch.compile", "torch.export.export", "torch._dynamo.optimize")


def uses_compile(unit: Unit) -> bool:
    return any(b"torch.compile" in each.source.data or b"torch.export" in each.source.data for each in unit.scripts)
