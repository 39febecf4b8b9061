"""A kernel of which only the signature is written, below a comment that says what it computes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from warpwright.assist.signature import parameters
from warpwright.editor.formula_comment import lines_of
from warpwright.editor.own_types import own_types, with_types
from warpwright.formulas.extents import names_in
from warpwright.formulas.model import Formula
from warpwright.syntax.source import Source

_OPEN = re.compile(
    r"""
      (?P<comment>(?:^[ \t]*//[^\n]*\n)+|^[ \t]*/\*(?:(?!\*/).)*\*/[ \t]*\n)
      (?P<template>[ \t]*template\s*<\s*(?:typename|class)\s+(?P<type>[A-Za-z_]\w*)\s*>\s*)?
      (?P<head>[ \t]*(?:extern\s+"C"\s+)?(?:static\s+)?__global__\s+void\s+(?P<name>[A-Za-z_]\w*)
      \s*\((?P<given>[^(){};]*)\))\s*\{[ \t]*(?P<line>\r?\n[ \t]*)?\Z
    """,
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)
_TYPED = ("head", "given")
_LOOKED_AT = 6000  # characters before the cursor
_UNNAMED = re.compile(r"_size\d+$")
INDEX_TYPES = {"i32": "int", "i64": "long long"}


@dataclass(frozen=True, slots=True)
class OpenKernel:
    """`head` is the text up to the brace, `given` its parameters; both have `float` for the `template` parameter of a
    template, and for a type that the file names what it stands for. `comment` are the lines above it without their
    signs. `on_line`: the cursor stands on a line of its own, `is_closed`: behind it stands the brace that ends the
    body."""

    comment: tuple[str, ...]
    head: str
    name: str
    given: str
    on_line: bool
    is_closed: bool
    template: str = ""

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.comment).split())

    def body_text(self, lines: list[str], after: str, end: str) -> str:
        """Lines as they stand behind the cursor, before `after`."""
        text = end.join(lines).lstrip(" ") if self.on_line else end + end.join(lines)
        if not self.is_closed:
            return f"{text}{end}}}{end}"
        return text if after.startswith(("\n", "\r")) else text + end


def open_kernel(source: Source, offset: int) -> OpenKernel | None:
    """The kernel whose body begins at a cursor, a byte offset.

    >>> text = b"// relu of x\\n__global__ void f(const float* x, float* y, int n) {"
    >>> open_kernel(Source("a.cu", text), len(text)).given
    'const float* x, float* y, int n'
    """
    before = source.text(0, offset)[-_LOOKED_AT:]
    after = source.text(offset)
    found = _OPEN.search(before)
    if found is None or after.strip()[:1] not in ("", "}") or after.split("\n", 1)[0].strip() not in ("", "}"):
        return None
    comment = tuple(lines_of([found["comment"]]))
    template = found["type"] or ""
    head, given = (re.sub(rf"\b{template}\b", "float", found[each]) if template else found[each] for each in _TYPED)
    named = own_types(source.code_text())
    head, given = with_types(head, named), with_types(given, named)
    is_closed = bool(after.strip())
    return OpenKernel(comment, head.strip(), found["name"], given, bool(found["line"]), is_closed, template)


def sizes_in(formula: Formula, given: str) -> Mapping[str, str] | None:
    """The parameter that each size of a formula is, None where that is not certain: the same names, m, n and k of a
    product, the one that is left, or one for each extent of an array that has all, in order. An extent that has no name
    may have no parameter."""
    whole = [each for each in parameters(given) if each.is_size]
    names = [each.name for each in whole]
    if len({each.type for each in whole}) != 1 or whole[0].type not in INDEX_TYPES or len(names) > len(formula.sizes):
        return None
    letters = {each.lower(): each for each in names}
    if letters.keys() == {"m", "n", "k"} and formula.sizes == ("I", "K", "J"):
        return {"I": letters["m"], "J": letters["n"], "K": letters["k"]}
    if len(letters) == len(names):
        found = {each: letters[each.lower()] for each in formula.sizes if each.lower() in letters}
        open_sizes = [each for each in formula.sizes if each not in found]
        open_names = [each for each in names if each not in found.values()]
        if found and len(open_names) == len(open_sizes) <= 1:
            return {**found, **dict(zip(open_sizes, open_names, strict=True))}
        if found and not open_names and all(_UNNAMED.search(each) for each in open_sizes):
            return found
    if len(names) != len(formula.sizes):
        return None
    orders = [[name for extent in each.extents for name in names_in((extent,))] for each in formula.tensors.values()]
    if orders and orders[0] == [*formula.sizes]:
        return dict(zip(orders[0], names, strict=True))
    whole_orders = {tuple(each) for each in orders if sorted(each) == sorted(formula.sizes)}
    return dict(zip(whole_orders.pop(), names, strict=True)) if len(whole_orders) == 1 else None
