"""Directives: comments above a kernel that say how to run it.

    // warpwright: array in[width * height] in
    // warpwright: array index[n] in index(width)
    // warpwright: scalar alpha = 2.0
    // warpwright: launch grid((width + 31) / 32, (height + 31) / 32) block(32, 8) shared(0)
    // warpwright: shape width=4096 height=4096
    // warpwright: check width=1 height=33
    // warpwright: time width=1237 height=853
    // warpwright: profile width=131 height=67

Each is optional and overrides what the launch and the kernel's text show. `array` takes the extent in elements, the
role (in, out or in-out), and for an array of indices the bound of its values. A struct's member is named `p.data`.
`shape` is the user's own size; `check` and `time` may stand several times, once for each size; `profile` is the size
that a profile is made at.
"""

from __future__ import annotations

import re
from functools import partial

from warpwright.facts.model import Kernel
from warpwright.problems.comments import directive_pattern, read_sizes, take_directives
from warpwright.problems.expressions import ExpressionError, parse, split_arguments
from warpwright.problems.overrides import ArrayOverride, Overrides

_DIRECTIVE = directive_pattern("array|scalar|launch|shape|check|time|profile")
_ARRAY = re.compile(r"([\w.]+)\s*\[(.*)\]\s*(in-out|in|out)\b\s*(index\(.*\))?$")
_SCALAR = re.compile(r"([\w.]+)\s*=\s*(.+)$")
_PART = re.compile(r"\b(grid|block|shared)\s*\(")


def read_directives(kernel: Kernel) -> Overrides:
    """The directives above a kernel. Raises ExpressionError, with the line, for one that cannot be read."""
    overrides = Overrides(origin="directive")
    if kernel.node is not None:
        take_directives(kernel.source, kernel.node, _DIRECTIVE, partial(_read, overrides))
    return overrides


def _read(overrides: Overrides, verb: str, rest: str) -> None:
    if verb == "array":
        if not (match := _ARRAY.match(rest)):
            raise ExpressionError("expected `name[extent] in|out|in-out`")
        parse(match[2])
        overrides.arrays[match[1]] = ArrayOverride(extent=match[2].strip(), role=match[3], values=match[4] or "any")
    elif verb == "scalar":
        if not (match := _SCALAR.match(rest)):
            raise ExpressionError("expected `name = value`")
        parse(match[2])
        overrides.scalars[match[1]] = match[2]
    elif verb == "launch":
        _read_launch(overrides, rest)
    else:
        shape = read_sizes(rest)
        if verb == "shape":
            overrides.shape = shape
        elif verb == "profile":
            overrides.profile = shape
        else:
            (overrides.check if verb == "check" else overrides.time).append(shape)


def _read_launch(overrides: Overrides, rest: str) -> None:
    found = False
    for match in _PART.finditer(rest):
        depth, end = 1, match.end()
        while end < len(rest) and depth:
            depth += (rest[end] == "(") - (rest[end] == ")")
            end += 1
        if depth:
            raise ExpressionError(f"`{match[1]}(` is not closed")
        parts = split_arguments(rest[match.end() : end - 1])
        for part in parts:
            parse(part)
        found = True
        if match[1] == "grid":
            overrides.grid = three(parts)
        elif match[1] == "block":
            overrides.block = three(parts)
        else:
            overrides.dynamic_shared_bytes = parts[0]
    if not found:
        raise ExpressionError("expected `grid(x, y, z)`, `block(x, y, z)` or `shared(bytes)`")


def three(parts: list[str]) -> tuple[str, str, str]:
    """Grid or block expressions filled up with 1. Raises ExpressionError for none or more than three."""
    if not 1 <= len(parts) <= 3:
        raise ExpressionError(f"expected one to three sizes, not {len(parts)}")
    x, y, z = [*parts, "1", "1"][:3]
    return x, y, z
