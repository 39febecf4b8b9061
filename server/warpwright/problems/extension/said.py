"""What a user says about a call of an extension: in sample.toml, or in comments above the C++ function.

    [extension.forward]
    reference = "reference.py"
    shape = { n = 4096, m = 1024 }

    [extension.forward.arguments]
    x = { type = "float", shape = "n, m" }
    index = { type = "int64", shape = "n", values = "index(m)" }
    eps = 1e-5
    dims = "1, 0"
    bias = "none"

    // warpwright: tensor x[n, m] float
    // warpwright: tensor index[n] int64 index(m)
    // warpwright: scalar eps = 1e-5
    // warpwright: shape n=4096 m=1024
    // warpwright: check n=1 m=33
    // warpwright: time n=1237 m=853

The file is the same that describes kernels. What it says goes before the comments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tree_sitter import Node

from warpwright.problems.comments import directive_pattern, read_sizes, take_directives
from warpwright.problems.document import read_table, sizes_of
from warpwright.problems.expressions import ExpressionError, parse, split_arguments
from warpwright.problems.extension.model import scalar_of
from warpwright.problems.shapes import Shape
from warpwright.syntax.nodes import enclosing
from warpwright.syntax.source import Source

NONE = "none"
_DIRECTIVE = directive_pattern("tensor|scalar|shape|check|time")
_TENSOR = re.compile(r"(\w+)\s*\[(.*)\]\s*([\w:.]+)?\s*(index\(.*\))?$")
_SCALAR = re.compile(r"(\w+)\s*=\s*(.+)$")
_KEYS = ("reference", "shape", "check", "time", "arguments")


@dataclass(frozen=True, slots=True)
class SaidTensor:
    shape: tuple[str, ...]
    scalar: str = "float32"
    values: str = "any"


@dataclass(slots=True)
class Said:
    """Everything said in one place. `plain` holds expressions; a list has several, `none` stands for None."""

    tensors: dict[str, SaidTensor] = field(default_factory=lambda: {})
    plain: dict[str, tuple[str, ...]] = field(default_factory=lambda: {})
    shape: Shape | None = None
    check: list[Shape] = field(default_factory=lambda: [])
    time: list[Shape] = field(default_factory=lambda: [])
    reference: str | None = None


def read_document(path: Path, entry: str) -> Said:
    """What a sample.toml says of one function; nothing where there is no such file.

    Raises ExpressionError with one sentence that names the file and the key.
    """
    said = Said()
    table = read_table(path, "extension", entry)
    if table is None:
        return said
    try:
        _read_table(said, table)
    except ExpressionError as error:
        raise ExpressionError(f"{path}: [extension.{entry}] {error}") from None
    return said


def _read_table(said: Said, table: dict[str, Any]) -> None:
    if unknown := sorted(table.keys() - set(_KEYS)):
        raise ExpressionError(f"has the unknown key `{unknown[0]}`; known are {', '.join(_KEYS)}")
    reference = table.get("reference")
    if reference is not None and not isinstance(reference, str):
        raise ExpressionError("`reference` is not a text")
    said.reference = reference
    said.shape = sizes_of(table["shape"], "shape") if "shape" in table else None
    for key, shapes in (("check", said.check), ("time", said.time)):
        given = table.get(key, [])
        if not isinstance(given, list):
            raise ExpressionError(f"`{key}` is not a list of sizes")
        shapes.extend(sizes_of(one, key) for one in given)
    arguments = table.get("arguments", {})
    if not isinstance(arguments, dict):
        raise ExpressionError("`arguments` is not a table")
    for name, value in arguments.items():
        if isinstance(value, dict):
            if unknown := sorted(value.keys() - {"type", "shape", "values"}):
                raise ExpressionError(f"`{name}` has the unknown key `{unknown[0]}`; known are type, shape, values")
            shape = value.get("shape", "")
            texts = [str(part) for part in shape] if isinstance(shape, list) else split_arguments(str(shape))
            said.tensors[name] = _tensor(name, texts, str(value.get("type", "float")), str(value.get("values", "any")))
        else:
            listed = isinstance(value, list)
            said.plain[name] = _plain(", ".join(map(_toml_text, value)) if listed else _toml_text(value))


def _toml_text(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _tensor(name: str, texts: list[str], kind: str, values: str) -> SaidTensor:
    scalar = scalar_of(kind)
    if scalar is None:
        raise ExpressionError(f"`{name}` has the type `{kind}`, which no tensor holds")
    for text in texts:
        parse(text)
    if values != "any":
        if not (match := re.fullmatch(r"index\((.+)\)", values)):
            raise ExpressionError(f"the values of `{name}` are `{values}`, which is not any or index(E)")
        parse(match[1])
    return SaidTensor(tuple(text.strip() for text in texts), scalar, values)


def _plain(text: str) -> tuple[str, ...]:
    """Expressions; `true` and `false` are 1 and 0."""
    plain = text.strip().strip("[]{}").strip()
    if plain.lower() in (NONE, "nullopt"):
        return (NONE,)
    parts = [{"true": "1", "false": "0"}.get(part.strip().lower(), part.strip()) for part in split_arguments(plain)]
    for part in parts:
        parse(part)
    return tuple(parts)


def read_directives(source: Source, function: Node | None) -> Said:
    """What the comments directly above the function say. Raises ExpressionError, with the line."""
    said = Said()
    node = function
    if node is not None and node.type == "lambda_expression":
        node = enclosing(node, "expression_statement")
    if node is not None:
        take_directives(source, node, _DIRECTIVE, partial(_read_directive, said))
    return said


def _read_directive(said: Said, verb: str, rest: str) -> None:
    if verb == "tensor":
        if not (match := _TENSOR.match(rest)):
            raise ExpressionError("expected `name[size, ...] type`")
        said.tensors[match[1]] = _tensor(match[1], split_arguments(match[2]), match[3] or "float", match[4] or "any")
    elif verb == "scalar":
        if not (match := _SCALAR.match(rest)):
            raise ExpressionError("expected `name = value`")
        said.plain[match[1]] = _plain(match[2])
    else:
        shape = read_sizes(rest)
        if verb == "shape":
            said.shape = shape
        else:
            (said.check if verb == "check" else said.time).append(shape)
