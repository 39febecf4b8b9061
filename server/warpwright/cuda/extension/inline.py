"""C++ and CUDA in strings of a Python file that `load_inline` builds, as sources with the places of that file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from warpwright.syntax.encoding import encoded
from warpwright.syntax.source import Source

_TEXTS = ("cpp_sources", "cuda_sources")
_BLANK = bytes(each if each in b"\n\r" else 32 for each in range(256))


@dataclass(frozen=True)
class Inline:
    """What one `load_inline` builds. `source` has the path and the length of the Python file, and blanks wherever no
    such string is; `functions` are those that it binds to Python."""

    source: Source
    functions: tuple[str, ...]


def inline_of(source: Source, tree: ast.Module) -> Iterator[Inline]:
    """Texts with escapes are left out, as their places are not those of the file.

    >>> text = b"from torch.utils.cpp_extension import load_inline\\nload_inline('m', cuda_sources='int x;')"
    >>> [(each.source.data[-9:], each.source.data.strip()) for each in inline_of(Source("a.py", text), ast.parse(text))]
    [(b' int x;  ', b'int x;')]
    >>> text = b"a = 'int x;'\\na = 'int y;'\\nload_inline('m', a)"
    >>> [*inline_of(Source("a.py", text), ast.parse(text))]
    []
    """
    if b"load_inline" not in source.data:
        return
    assigned: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            assigned.setdefault(node.targets[0].id, []).append(node.value)
    values = {name: given[0] for name, given in assigned.items() if len(given) == 1}
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        callee = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if callee != "load_inline":
            continue
        given: dict[str | None, ast.expr] = {k.arg: k.value for k in call.keywords}
        given.update(zip(("name", *_TEXTS), call.args, strict=False))
        texts = [each for name in _TEXTS for each in _literals(given.get(name), values)]
        places = [place for each in texts if (place := _place(source, each)) is not None]
        if places and len(places) == len(texts):
            data = bytearray(source.data.translate(_BLANK))
            for start, end in places:
                data[start:end] = source.data[start:end]
            bound = (each.value for each in _literals(given.get("functions"), values))
            yield Inline(Source(source.path, bytes(data)), tuple(each for each in bound if isinstance(each, str)))


def _literals(node: ast.AST | None, values: dict[str, ast.expr]) -> Iterator[ast.Constant]:
    """The literals that an argument is, by itself, in a list or as the keys of a dict, or by names that are assigned
    once."""
    if isinstance(node, ast.Name):
        node = values.get(node.id)
    if isinstance(node, ast.List | ast.Tuple):
        for each in node.elts:
            yield from _literals(each, values)
    elif isinstance(node, ast.Dict):
        for key in node.keys:
            yield from _literals(key, values)
    elif isinstance(node, ast.Constant):
        yield node


def _place(source: Source, literal: ast.Constant) -> tuple[int, int] | None:
    if not isinstance(literal.value, str):
        return None
    text, starts = encoded(literal.value), source.line_starts
    start = starts[literal.lineno - 1] + literal.col_offset
    end = starts[(literal.end_lineno or literal.lineno) - 1] + (literal.end_col_offset or 0)
    at = source.data.find(text, start, end)
    return (at, at + len(text)) if at >= 0 else None
