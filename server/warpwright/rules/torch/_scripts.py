"""Where the Python side calls what the C++ side defines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from warpwright.cuda.extension.script import Function, Script
from warpwright.cuda.extension.unit import MOST_SOURCES, Unit

_TORCHS_OWN = frozenset(
    {"aten", "prims", "prim", "c10d", "c10d_functional", "_c10d_functional", "inductor", "quantized"}
)
_LOADERS = ("load", "load_inline")
_LOADED = "torch.utils.cpp_extension."
_NATIVE = re.compile(r"_C|\w+_(?:cuda|ext|cpp|C|kernels?)")
_SAYS = re.compile(
    r"warn|print|raise|error|exception|critical|^_?log(?:_\w+)?$|^self\._?log(?:_\w+)?$|\blog(?:ger|ging)?\.|_log(?:ger)?\.",
    re.IGNORECASE,
)


def module_names(unit: Unit, script: Script) -> frozenset[str]:
    """The names by which a script knows such a module: imported, or what `load` gave. A function that gives one is
    named with its call, `extension()`."""
    return _module_names(script, unit.modules, any(each.is_pybind for each in unit.registrations))


@lru_cache(maxsize=MOST_SOURCES)
def _module_names(script: Script, built: frozenset[str], is_pybind: bool) -> frozenset[str]:
    may_guess = not built and is_pybind
    found = set()
    for node in ast.walk(script.tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for each in node.names:
                last = each.name.rpartition(".")[2]
                relative = isinstance(node, ast.ImportFrom) and node.level > 0
                if last in built or ((relative or may_guess) and _NATIVE.fullmatch(last)):
                    found.add(each.asname or (each.name if isinstance(node, ast.Import) else last))
        elif isinstance(node, ast.Assign) and _is_loaded(script, node.value):
            found |= set_in([node])
        elif isinstance(node, Function) and _is_loaded(script, _result(node)):
            found.add(f"{node.name}()")
    return frozenset(found)


def _is_loaded(script: Script, value: ast.expr | None) -> bool:
    return isinstance(value, ast.Call) and script.dotted(value.func).removeprefix(_LOADED) in _LOADERS


def module_calls(unit: Unit, script: Script, within: ast.AST | None = None) -> Iterator[tuple[str, ast.Attribute]]:
    """(function, where) of each use of a function of such a module."""
    names = module_names(unit, script)
    for node in ast.walk(within or script.tree):
        if isinstance(node, ast.Attribute) and not node.attr.startswith("__"):
            is_path = isinstance(node.value, ast.Name | ast.Attribute | ast.Call)
            if is_path and ast.unparse(node.value) in names:
                yield node.attr, node


def native_names(unit: Unit, script: Script, within: ast.AST) -> list[str]:
    """What a part of a script calls of the extension: operators that are not torch's own, functions of its module,
    and autograd functions that call these."""
    found = _native_names(unit, script, within)
    for owner in script.autograd_functions:
        if any(node is owner for node in ast.walk(within)):
            continue
        applied = f"{owner.name}.apply"
        names = {applied} | {name for name, path in script.aliases.items() if path == applied}
        used = [
            ast.unparse(node)
            for node in ast.walk(within)
            if isinstance(node, ast.Attribute | ast.Name) and ast.unparse(node) in names
        ]
        if used and _native_names(unit, script, owner):
            found += used
    return found


def _native_names(unit: Unit, script: Script, within: ast.AST) -> list[str]:
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


def is_refused(unit: Unit, names: set[str]) -> bool:
    """Whether the package tests what a failed import leaves behind, and each such test raises, warns or logs.

    `names` are the module and the flags that are set beside the import; what is computed of them is followed."""
    tests = 0
    for script in unit.scripts:
        known = set(names)
        for node in [*script.tree.body, *script.functions]:
            made = node.value if isinstance(node, ast.Assign) else _result(node) if isinstance(node, Function) else None
            if made is not None and known & _names(made):
                known |= {node.name} if isinstance(node, Function) else set_in([node])
        for around, test in _branches(script.tree):
            if not known & _names(test.test):
                continue
            missing = isinstance(test.test, ast.UnaryOp) or re.search(r"\bis None$|== None$", ast.unparse(test.test))
            behind = around[around.index(test) + 1 :][:1] if isinstance(test, ast.If) else []
            refused = isinstance(test, ast.Assert) or says_so(test.body if missing else test.orelse or behind)
            if not refused:
                return False
            tests += 1
        if any(known & _names(node.test) for node in ast.walk(script.tree) if isinstance(node, ast.IfExp)):
            return False
    return tests > 0


def _branches(tree: ast.Module) -> Iterator[tuple[list[ast.stmt], ast.If | ast.Assert]]:
    """Each `if` and `assert`, with the statements of the block that it stands in."""
    for node in ast.walk(tree):
        for block in (getattr(node, field, None) for field in ("body", "orelse", "finalbody")):
            if isinstance(block, list):
                yield from ((block, each) for each in block if isinstance(each, ast.If | ast.Assert))


def _names(node: ast.AST) -> set[str]:
    """The names in an expression, of `package.flag` the last one too."""
    walked = list(ast.walk(node))
    return {n.id for n in walked if isinstance(n, ast.Name)} | {n.attr for n in walked if isinstance(n, ast.Attribute)}


def set_in(body: Iterable[ast.stmt]) -> set[str]:
    """The names that statements assign to."""
    listed = [target for each in body if isinstance(each, ast.Assign) for target in each.targets]
    return {each.id for each in listed if isinstance(each, ast.Name)}


def _result(function: Function) -> ast.expr | None:
    """What a function of one statement gives, `def is_built(): return module is not None`."""
    last = function.body[-1]
    return last.value if isinstance(last, ast.Return) and len(function.body) <= 2 else None


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
