"""A Python wrapper takes torch's path in place of the kernel, and tells nobody.

## Why is this bad?

"I wrote a kernel and training got no faster": an `except` swallows the error of the kernel's first call, or a test of
device, type or shape sends every real input to torch's own operators. The results are right, the kernel never runs.

## Example

```python
import torch
import torch.nn.functional as F


def normalize(x):
    try:
        return torch.ops.ours.normalize(x)
    except Exception:
        return F.normalize(x)
```

## Use instead

```python
import torch
import torch.nn.functional as F


def normalize(x):
    return torch.ops.ours.normalize(x)
```

## Limits

- An `except` of everything or of RuntimeError, or a `contextlib.suppress` of it, around a call of the extension is a
  warning. A test that returns without it, a table of paths whose default is torch's, and an import that fails without
  a word, are information: they may be meant. A wrapper that warns, logs
  or raises in that branch, or asks for empty tensors, is left alone, as is a failed import where each test of what it
  leaves behind does so. The fix warns there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from warpwright.cuda.extension.script import Function, Script
from warpwright.cuda.extension.unit import Unit
from warpwright.rules.base import Cure, Finding, Severity
from warpwright.rules.cures import cure
from warpwright.rules.torch._scripts import is_refused, module_names, native_names, says_so, set_in
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.source import Span

severity = Severity.WARNING

_BROAD = ("Exception", "BaseException", "RuntimeError", "AttributeError", "NotImplementedError", "TypeError")
_PROPERTY = re.compile(
    r"\.(is_cuda|device|dtype|shape|ndim|dim|size|is_contiguous|stride|requires_grad|numel|is_floating_point)\b|"
    r"is_available\(\)|\b_?(?:has|have|use)_\w+|\w+_available\b",
    re.IGNORECASE,
)
_EMPTY = re.compile(r"\b(?:numel\(\)|shape\[-?\d\]|size\(-?\d\)) (?:==|<=|<) [01]\b|\blen\(\w+\) == 0\b")
_TORCH = re.compile(r"\btorch\.|\bF\.|\bnn\.|@|\.(?:sum|mean|softmax|relu|matmul|mul|add|norm|sigmoid|exp|view|to)\(")


def check_unit(unit: Unit) -> Iterator[Finding]:
    script = unit.script
    if script is None:
        return
    for node in ast.walk(script.tree):
        if isinstance(node, ast.Try):
            yield from _handlers(unit, script, node)
        elif isinstance(node, ast.With):
            yield from _suppressed(unit, script, node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            yield from _looked_up(unit, script, node, node.func.value)
    for function in script.functions:
        if any(native_names(unit, script, each) for each in function.body):
            yield from _tests(unit, script, function)


def _handlers(unit: Unit, script: Script, node: ast.Try) -> Iterator[Finding]:
    within = ast.Module(node.body, [])
    called = native_names(unit, script, within)
    imported = sorted(
        (each.asname or each.name).rpartition(".")[2]
        for inner in node.body
        if isinstance(inner, ast.Import | ast.ImportFrom)
        for each in inner.names
        if (each.asname or each.name) in module_names(unit, script)
    )
    for handler in node.handlers:
        kinds = _kinds(handler)
        if says_so(handler.body) or not (called or imported):
            continue
        span = _head(script, handler)
        if called and (not kinds or kinds & set(_BROAD)):
            what = f"`{called[0]}` falls back silently: `except {' '.join(sorted(kinds))}` swallows its errors".replace(
                "except `", "except`"
            )
            said = _warned(script, handler, called[0])
            yield _finding(span, what, "Let the error out, or warn in the handler.", called[0], made=said)
        elif imported and (not kinds or kinds & {"ImportError", "ModuleNotFoundError", "Exception"}):
            if is_refused(unit, {*imported, *set_in((*node.body, *node.orelse, *handler.body))}):
                continue
            what = f"`{imported[0]}` falls back silently: a failed import is swallowed"
            advice = "Warn in the handler that the slow path is taken."
            said = _warned(script, handler, imported[0])
            yield _finding(span, what, advice, imported[0], Severity.INFORMATION, said)


def _suppressed(unit: Unit, script: Script, node: ast.With) -> Iterator[Finding]:
    called = native_names(unit, script, ast.Module(node.body, []))
    for item in node.items if called else ():
        by = item.context_expr
        if isinstance(by, ast.Call) and script.dotted(by.func) == "contextlib.suppress":
            kinds = {ast.unparse(each).rpartition(".")[2] for each in by.args}
            behind = next((_behind(each, node) for each in script.functions if _behind(each, node)), [])
            if kinds & set(_BROAD) and not says_so(behind[:1]):
                returns = isinstance(node.body[-1], ast.Return) and behind
                what = f"`{called[0]}` falls back silently: `suppress({', '.join(sorted(kinds))})` swallows its errors"
                said = _warned_in(script, behind, node.lineno, called[0]) if returns else None
                yield _finding(script.span(by), what, "Let the error out, or warn behind it.", called[0], made=said)


def _looked_up(unit: Unit, script: Script, call: ast.Call, table: ast.expr) -> Iterator[Finding]:
    """A table of paths, `PATHS.get(x.dtype, F.gelu)`, whose default is torch's."""
    default = call.args[1] if len(call.args) == 2 else None
    if default is None or not script.dotted(default).startswith("torch.") or native_names(unit, script, default):
        return
    for node in script.tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            called = native_names(unit, script, node.value)
            if called and any(ast.unparse(each) == ast.unparse(table) for each in targets):
                yield _tested(script, call, called[0])


def _kinds(handler: ast.ExceptHandler) -> set[str]:
    if handler.type is None:
        return set()
    listed = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return {ast.unparse(each).rpartition(".")[2] for each in listed}


def _head(script: Script, handler: ast.ExceptHandler) -> Span:
    start = script.source.line_starts[handler.lineno - 1] + handler.col_offset
    length = len("except")
    return (
        script.span(handler, handler.type) if handler.type is not None else Span(script.source, start, start + length)
    )


def _tests(unit: Unit, script: Script, function: Function) -> Iterator[Finding]:
    for node in ast.walk(function):
        if isinstance(node, ast.IfExp):
            sides = [native_names(unit, script, each) for each in (node.body, node.orelse)]
            other = node.orelse if sides[0] else node.body
            if bool(sides[0]) != bool(sides[1]) and _is_torch(other, function) and _is_property(node.test, function):
                yield _tested(script, node.test, (sides[0] or sides[1])[0])
        elif (
            isinstance(node, ast.If) and _is_property(node.test, function) and not _EMPTY.search(ast.unparse(node.test))
        ):
            native = native_names(unit, script, ast.Module(node.body, []))
            rest = native_names(unit, script, ast.Module(node.orelse, []))
            behind = _behind(function, node)
            if native and not rest:
                fallback = node.orelse or behind
            elif not native and (rest or native_names(unit, script, ast.Module(behind, []))):
                fallback = node.body
            else:
                continue
            is_native = native_names(unit, script, ast.Module(fallback, []))
            if _returns_torch(fallback, function) and not is_native and not says_so(fallback):
                everywhere = native_names(unit, script, function)
                name = (native or rest or everywhere)[0]
                said = _warned_in(script, fallback, node.lineno, name) if fallback is not behind else None
                yield _tested(script, node.test, name, said)


def _behind(function: Function, node: ast.stmt) -> list[ast.stmt]:
    """The statements behind one in the list that holds it."""
    for around in ast.walk(function):
        for body in (getattr(around, "body", None), getattr(around, "orelse", None)):
            if isinstance(body, list) and node in body:
                return body[body.index(node) + 1 :]
    return []


def _is_property(test: ast.expr, function: Function) -> bool:
    """Whether a test asks for a property of a tensor, or a name that one was put into."""
    names = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    values = [
        node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in names
    ]
    return any(_PROPERTY.search(ast.unparse(each)) for each in (test, *values))


def _returns_torch(body: list[ast.stmt], function: Function) -> bool:
    last = body[-1] if body else None
    value = last.value if isinstance(last, ast.Return | ast.Assign) else None
    return value is not None and _is_torch(value, function)


def _is_torch(value: ast.expr, function: Function) -> bool:
    """Whether an expression calls torch, or computes with an argument."""
    given = {each.arg for each in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    computes = any(
        isinstance(node, ast.BinOp) and any(isinstance(e, ast.Name) and e.id in given for e in (node.left, node.right))
        for node in ast.walk(value)
    )
    return computes or _TORCH.search(ast.unparse(value)) is not None


def _tested(script: Script, test: ast.expr, name: str, made: Cure | None = None) -> Finding:
    what = f"`{name}` is left out silently where `{ast.unparse(test)}` decides so"
    return _finding(
        script.span(test), what, "Warn once in the other branch, or raise there.", name, Severity.INFORMATION, made
    )


def _warned(script: Script, handler: ast.ExceptHandler, name: str) -> Cure | None:
    return _warned_in(script, handler.body, handler.lineno, name)


def _warned_in(script: Script, body: list[ast.stmt], head: int, name: str) -> Cure | None:
    """A warning before the first statement of a branch; none where that stands on the line that begins it."""
    first, source = body[0], script.source
    imports = [each for each in script.tree.body if isinstance(each, ast.Import | ast.ImportFrom)]
    places = [each for each in imports if not (isinstance(each, ast.ImportFrom) and each.module == "__future__")]
    at = source.line_starts[first.lineno - 1]
    indent = source.line_indent(at + first.col_offset)
    if first.lineno == head or not places or source.data[at : at + first.col_offset].strip():
        return None
    edits = [
        TextEdit(at, at, f'{indent}warnings.warn("{name} does not run: torch computes in its place", stacklevel=2)\n')
    ]
    if not any(isinstance(each, ast.Import) and any(e.name == "warnings" for e in each.names) for each in imports):
        start = source.line_starts[places[0].lineno - 1]
        edits.insert(0, TextEdit(start, start, "import warnings\n"))
    return cure("Warn that torch computes in its place", *edits)


def _finding(
    span: Span, what: str, advice: str, name: str, grave: Severity | None = None, made: Cure | None = None
) -> Finding:
    return Finding(
        span=span,
        message=f"{what}\n{advice}",
        evidence={"call": name},
        severity=grave,
        kernel=name.rpartition(".")[2],
        cure=made,
    )
