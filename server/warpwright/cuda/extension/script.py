"""A Python file, read with `ast` and never run: what it calls of torch, by full names."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from warpwright.cuda.extension.inline import Inline, inline_of
from warpwright.syntax.source import Source, Span

Function = ast.FunctionDef | ast.AsyncFunctionDef
LIBRARY = "torch.library."
OPS = "torch.ops."
BUILDERS = ("CUDAExtension", "CppExtension", "load", "load_inline")
ANY = "*"
"""The name of an operator that a script computes."""


@dataclass(frozen=True)
class Script:
    """One Python file. Without a tree where it is no Python, or nests too deeply."""

    source: Source

    @cached_property
    def tree(self) -> ast.Module:
        return _parsed(self.source.data)

    def span(self, node: ast.expr | ast.stmt | ast.ExceptHandler, end: ast.expr | None = None) -> Span:
        """A node's place; with `end` only up to there, which of a statement leaves out its body."""
        last = end or node
        start = self.source.line_starts[node.lineno - 1] + node.col_offset
        stop = self.source.line_starts[(last.end_lineno or last.lineno) - 1] + (last.end_col_offset or 0)
        return Span(self.source, start, stop)

    @cached_property
    def aliases(self) -> dict[str, str]:
        """What the names of the file stand for that an import or one assignment of a dotted name gives."""
        found: dict[str, str] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found.update({each.asname: each.name for each in node.names if each.asname})
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.update({each.asname or each.name: f"{node.module}.{each.name}" for each in node.names})
            elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                name, path = node.targets[0].id, _path(node.value)
                if path.startswith(OPS.rstrip(".")) or path.split(".")[0] in found:
                    found[name] = path
        return found

    def dotted(self, node: ast.AST | None) -> str:
        """The full name of `a.b.c`, with the file's aliases in place of its head; "" for anything else.

        >>> script = Script(Source("a.py", b"from torch import ops\\nmine = ops.ours\\nmine.f(1)\\n"))
        >>> [script.dotted(call.func) for call in script.calls()]
        ['torch.ops.ours.f']
        """
        path = _path(node)
        for _ in range(4):
            head, _, rest = path.partition(".")
            if head not in self.aliases or self.aliases[head].partition(".")[0] == head:
                break
            path = f"{self.aliases[head]}.{rest}" if rest else self.aliases[head]
        return path

    def calls(self, within: ast.AST | None = None) -> Iterator[ast.Call]:
        return (node for node in ast.walk(within) if isinstance(node, ast.Call)) if within else iter(self._calls)

    @cached_property
    def _calls(self) -> tuple[ast.Call, ...]:
        return tuple(node for node in ast.walk(self.tree) if isinstance(node, ast.Call))

    @cached_property
    def ops(self) -> tuple[tuple[str, str, ast.Attribute], ...]:
        """Each use of `torch.ops.space.name`, in the order of the text."""
        return tuple((space, name, at) for space, name, overload, at in self._named if not overload)

    @cached_property
    def overloads(self) -> tuple[tuple[str, str, str, ast.Attribute], ...]:
        """Each use of `torch.ops.space.name.overload`, in the order of the text."""
        return tuple(each for each in self._named if each[2])

    @cached_property
    def _named(self) -> tuple[tuple[str, str, str, ast.Attribute], ...]:
        found = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Attribute):
                parts = self.dotted(node).removeprefix(OPS).split(".") if self.dotted(node).startswith(OPS) else []
                if len(parts) in (2, 3) and parts[1] != "__name__":
                    found.append((parts[0], parts[1], parts[2] if len(parts) == 3 else "", node))
        return tuple(sorted(found, key=lambda one: (one[3].lineno, one[3].col_offset)))

    @cached_property
    def built(self) -> frozenset[str]:
        """The last parts of the names of the modules that it builds."""
        found = set()
        for call in self.calls():
            if self.dotted(call.func).rpartition(".")[2] in BUILDERS:
                first = call.args[0] if call.args else None
                given = next((each.value for each in call.keywords if each.arg == "name"), first)
                found.add(string_of(given).rpartition(".")[2])
        return frozenset(found - {""})

    @cached_property
    def inline(self) -> tuple[Inline, ...]:
        """What its calls of `load_inline` build."""
        return tuple(inline_of(self.source, self.tree))

    @cached_property
    def registered(self) -> tuple[tuple[str, str, ast.Call], ...]:
        """(what, the operator as `space::name`, the call) of torch.library: `("register_fake", "ours::f", ...)`, of
        `Library("ours", "IMPL").impl("f", function, "Meta")` and `torch.library.impl(lib, "f", "Meta")` with the key:
        `("Meta", "ours::f", ...)`. A name that is computed is ANY.

        >>> script = Script(Source("a.py", b"import torch\\n@torch.library.register_fake('ours::f')\\ndef _(x): 1"))
        >>> [each[:2] for each in script.registered]
        [('register_fake', 'ours::f')]
        """
        found = []
        own: dict[str, str] = {}
        spaces = self._libraries()
        for node in ast.walk(self.tree):
            if isinstance(node, Function):
                for decorator in node.decorator_list:
                    if isinstance(decorator, ast.Call) and (what := self._library_call(decorator)):
                        own[node.name] = string_of(decorator.args[0] if decorator.args else None)
        for call in self.calls():
            first = string_of(call.args[0] if call.args else None)
            if what := self._library_call(call):
                owner = ast.unparse(call.args[0]) if call.args else ""
                if owner in spaces and len(call.args) > 1:
                    key = string_of(call.args[2]) if what == "impl" and len(call.args) > 2 else ""
                    found.append((key or what, f"{spaces[owner]}::{string_of(call.args[1]).partition('(')[0]}", call))
                elif call.args:
                    found += [(what, name.partition("(")[0], call) for name in self._values(call.args[0])]
            elif isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
                owner = call.func.value.id
                if owner in own:
                    found.append((call.func.attr, own[owner], call))
                elif owner in spaces and first:
                    key = string_of(call.args[2]) if len(call.args) > 2 else ""
                    found.append((key or call.func.attr, f"{spaces[owner]}::{first.partition('(')[0]}", call))
        for node in ast.walk(self.tree):
            if isinstance(node, Function):
                bare = (
                    d for d in node.decorator_list if isinstance(d, ast.Attribute) and isinstance(d.value, ast.Name)
                )
                found += [
                    (d.attr, own[d.value.id], ast.Call(d, [], [], lineno=d.lineno, col_offset=d.col_offset))
                    for d in bare
                    if isinstance(d.value, ast.Name) and d.value.id in own
                ]
        return tuple(found)

    def _values(self, node: ast.expr) -> tuple[str, ...]:
        """The texts that an expression is: a literal's, or of a name that one assignment or a loop over literals gives;
        ANY for what is computed.

        >>> script = Script(Source("a.py", b"for each in ('f', 'g'): h(each, i)"))
        >>> [script._values(argument) for call in script.calls() for argument in call.args]
        [('f', 'g'), ('*',)]
        """
        if isinstance(node, ast.Constant):
            return (string_of(node),)
        if isinstance(node, ast.Name):
            given = [
                each.value if isinstance(each, ast.Assign) else each.iter
                for each in ast.walk(self.tree)
                if (isinstance(each, ast.For) and _is_name(each.target, node.id))
                or (isinstance(each, ast.Assign) and any(_is_name(target, node.id) for target in each.targets))
            ]
            listed = [e for each in given for e in (each.elts if isinstance(each, ast.Tuple | ast.List) else [each])]
            if listed and all(string_of(each) for each in listed):
                return tuple(string_of(each) for each in listed)
        return (ANY,)

    def _library_call(self, call: ast.Call) -> str:
        path = self.dotted(call.func)
        return path.removeprefix(LIBRARY) if path.startswith(LIBRARY) and not path.endswith("Library") else ""

    def _libraries(self) -> dict[str, str]:
        """The namespace of each variable that holds a `torch.library.Library`."""
        found = {}
        for node in ast.walk(self.tree):
            made = node.value if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) else None
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            is_library = made is not None and self.dotted(made.func) == f"{LIBRARY}Library"
            if is_library and made is not None and made.args and isinstance(target, ast.Name):
                found[target.id] = string_of(made.args[0])
        return found

    @property
    def functions(self) -> Iterator[Function]:
        return (node for node in ast.walk(self.tree) if isinstance(node, Function))

    @property
    def autograd_functions(self) -> Iterator[ast.ClassDef]:
        """The classes that are a `torch.autograd.Function`."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ClassDef):
                bases = [self.dotted(base) for base in node.bases]
                if any(base in ("torch.autograd.Function", "torch.autograd.function.Function") for base in bases):
                    yield node


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def string_of(node: ast.AST | None) -> str:
    """The text of a literal; "" for anything else."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _path(node: ast.AST | None) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


@lru_cache(maxsize=64)
def _parsed(data: bytes) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])
