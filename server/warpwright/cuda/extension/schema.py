"""torch's own way to write a signature: `scale(Tensor x, float a=2.0, *, Tensor? bias=None) -> Tensor`.

Source: "aten/src/ATen/native/README.md" of PyTorch, "Custom C++ and CUDA operators" of its tutorials.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpwright.cuda.extension.model import Parameter

_HEAD = re.compile(r"\s*(?:(?P<space>\w+)::)?(?P<name>\w+)(?:\.\w+)?\s*\(")
_ARGUMENT = re.compile(
    r"(?P<type>\w+)(?P<alias>\([^()]*\)|!)?(?P<list>\[\d*\])?(?P<optional>\?)?\s+(?P<name>\w+)\s*(?:=\s*(?P<default>.+))?$",
    re.DOTALL,
)
_KINDS = {
    "Tensor": "tensor", "int": "int", "SymInt": "int", "float": "float", "Scalar": "float", "bool": "bool",
}  # fmt: skip


class SchemaError(ValueError):
    """A text that is no schema; the message is one sentence's tail."""


def read_schema(text: str) -> tuple[str, tuple[Parameter, ...] | None]:
    """The operator's name and its parameters; None for them where the text is a name alone. Raises SchemaError.

    >>> name, parameters = read_schema("ours::f(Tensor(a!) x, int[] dims, *, float eps=1e-5) -> ()")
    >>> name, [(p.name, p.kind, p.written, p.keyword_only, p.default) for p in parameters][0]
    ('f', ('x', 'tensor', True, False, None))
    >>> [(p.name, p.kind, p.keyword_only, p.default) for p in parameters][1:]
    [('dims', 'ints', False, None), ('eps', 'float', True, '1e-5')]
    >>> read_schema("f")
    ('f', None)
    >>> [p.written for p in read_schema("f(Tensor! out, Tensor x) -> ()")[1]]
    [True, False]
    """
    match = _HEAD.match(text)
    if match is None:
        if name := re.fullmatch(r"\s*(?:\w+::)?(\w+)(?:\.\w+)?\s*", text):
            return name[1], None
        raise SchemaError(f"`{text}` is not a schema such as `f(Tensor x, float a) -> Tensor`")
    depth, end = 1, match.end()
    while end < len(text) and depth:
        depth += (text[end] == "(") - (text[end] == ")")
        end += 1
    if depth:
        raise SchemaError(f"the bracket of `{text}` is not closed")
    return match["name"], tuple(_parameters(text[match.end() : end - 1]))


def _parameters(text: str) -> Iterator[Parameter]:
    keyword_only = False
    for part in _split(text):
        if part == "*":
            keyword_only = True
            continue
        match = _ARGUMENT.match(part)
        if match is None:
            raise SchemaError(f"the argument `{part}` of a schema cannot be read")
        kind = _KINDS.get(match["type"], "")
        if match["list"]:
            kind = "ints" if kind == "int" else ""
        written = "!" in (match["alias"] or "")
        optional = bool(match["optional"])
        default = match["default"].strip() if match["default"] else None
        spelled = part.partition(" ")[0]
        yield Parameter(match["name"], kind, spelled, optional, default, keyword_only, written)


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and not depth:
            parts.append(text[start:place])
            start = place + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]
