"""A problem as TOML that a user can edit, and back.

    [kernels.transpose]
    reference = "reference.py"
    grid = ["(width + 31) / 32", "(height + 31) / 32", "1"]
    block = ["32", "8", "1"]
    dynamic_shared_bytes = "0"
    shape = { width = 4096, height = 4096 }
    check = [{ width = 1, height = 33 }]
    time = [{ width = 4096, height = 4096 }]
    profile = { width = 131, height = 67 }

    [kernels.transpose.arguments]
    in = { type = "float", extent = "width * height", role = "in", values = "any" }
    width = "width"

The file is called sample.toml and lies beside the kernel's. Every key is optional: what it leaves out is read from the
launch and from the kernel's text. Grid and block are best left out where the host code launches the kernel, because a
rewrite that changes the launch is then run with its own.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from warpwright.files import read_file
from warpwright.problems.directives import three
from warpwright.problems.expressions import ExpressionError, parse
from warpwright.problems.model import ROLES, Array, Problem, Scalar
from warpwright.problems.overrides import ArrayOverride, Overrides
from warpwright.problems.shapes import Shape
from warpwright.syntax.encoding import decoded

FILE_NAME = "sample.toml"
_MOST_BYTES = 1 << 20


def read_document(path: Path, kernel: str) -> Overrides:
    """What a sample.toml says about one kernel; nothing where there is no such file.

    Raises ExpressionError with one sentence that names the file and the key.
    """
    overrides = Overrides(origin=FILE_NAME)
    table = read_table(path, "kernels", kernel)
    if table is None:
        return overrides
    try:
        _read(overrides, table)
    except ExpressionError as error:
        raise ExpressionError(f"{path}: [kernels.{kernel}] {error}") from None
    return overrides


def read_table(path: Path, section: str, name: str) -> dict[str, Any] | None:
    """The table [section.name] of a TOML file, empty where it has none; None where there is no such file.

    Raises ExpressionError.
    """
    try:
        text = decoded(read_file(path, _MOST_BYTES))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ExpressionError(f"{path} cannot be read ({error})") from None
    try:
        table = tomllib.loads(text).get(section, {}).get(name, {})
        if not isinstance(table, dict):
            raise AttributeError(f"{name} is not a table")
    except (ValueError, RecursionError, AttributeError) as error:
        raise ExpressionError(f"{path} is not a TOML file with a table [{section}.{name}] ({error})") from None
    return table


def _read(overrides: Overrides, table: dict[str, Any]) -> None:
    known = {"reference", "grid", "block", "dynamic_shared_bytes", "shape", "check", "time", "profile", "arguments"}
    if unknown := sorted(table.keys() - known):
        raise ExpressionError(f"has the unknown key `{unknown[0]}`; known are {', '.join(sorted(known))}")
    overrides.reference = _text(table, "reference")
    overrides.dynamic_shared_bytes = _expression(table, "dynamic_shared_bytes")
    for key in ("grid", "block"):
        if key in table:
            value = table[key]
            if not isinstance(value, list):
                raise ExpressionError(f"`{key}` is not a list of one to three expressions")
            parts = [str(part) for part in value]
            for part in parts:
                parse(part)
            setattr(overrides, key, three(parts))
    overrides.shape = sizes_of(table["shape"], "shape") if "shape" in table else None
    overrides.check = [sizes_of(s, "check") for s in table.get("check", [])]
    overrides.profile = sizes_of(table["profile"], "profile") if "profile" in table else None
    overrides.time = [sizes_of(s, "time") for s in table.get("time", [])]
    arguments = table.get("arguments", {})
    if not isinstance(arguments, dict):
        raise ExpressionError("`arguments` is not a table")
    for name, value in arguments.items():
        if isinstance(value, dict):
            array = ArrayOverride(
                _expression(value, "extent"), _text(value, "role"), _text(value, "type"), _text(value, "values")
            )
            if array.role is not None and array.role not in ROLES:
                raise ExpressionError(f"`{name}` has the role `{array.role}`, which is not in, out or in-out")
            overrides.arrays[name] = array
        else:
            parse(str(value))
            overrides.scalars[name] = str(value)


def _text(table: dict[str, Any], key: str) -> str | None:
    value = table.get(key)
    if value is not None and not isinstance(value, str):
        raise ExpressionError(f"`{key}` is not a text")
    return value


def _expression(table: dict[str, Any], key: str) -> str | None:
    if key not in table:
        return None
    text = str(table[key])
    parse(text)
    return text


def sizes_of(value: object, key: str) -> Shape:
    """A table of symbols and their sizes. Raises ExpressionError where it is none."""
    if not isinstance(value, dict) or not all(isinstance(v, int) and v > 0 for v in value.values()):
        raise ExpressionError(f"`{key}` does not give each symbol a whole number")
    return {str(name): int(size) for name, size in value.items()}


def write_problem(problem: Problem) -> str:
    """The problem as the text of a sample.toml; a comment says where each part was read.

    What the launch gives is written as a comment, so that a rewrite of the launch stays free to change it.
    """
    hint = "" if problem.launch_origin in (FILE_NAME, "directive") else "# "
    lines = [f"# assumed: {note}" for note in problem.notes]
    lines.append(f"[kernels.{problem.kernel}]")
    if problem.reference is not None:
        lines.append(f"reference = {json.dumps(problem.reference.name)}")
    lines += [
        f"{hint}grid = {json.dumps(list(problem.grid))}  # {problem.launch_origin}",
        f"{hint}block = {json.dumps(list(problem.block))}",
        f"{hint}dynamic_shared_bytes = {json.dumps(problem.dynamic_shared_bytes)}",
    ]
    if problem.own_shape:
        lines.append(f"shape = {_inline(problem.own_shape)}")
    if problem.symbols:
        lines += ["check = [", *(f"    {_inline(s)}," for s in problem.check), "]"]
        lines += ["time = [", *(f"    {_inline(s)}," for s in problem.time), "]"]
    if problem.profile:
        lines.append(f"profile = {_inline(problem.profile)}")
    lines += ["", f"[kernels.{problem.kernel}.arguments]"]
    for argument in (*problem.parts, *problem.globals):
        match argument:
            case Array(name, kind, extent, role, origin, values):
                parts = {"type": kind, "extent": extent, "role": role, "values": values}
                value = "{ " + ", ".join(f"{key} = {json.dumps(text)}" for key, text in parts.items()) + " }"
            case Scalar(name, _, text, origin):
                value = json.dumps(text)
        key = name if re.fullmatch(r"\w+", name) else json.dumps(name)
        lines.append(f"{key} = {value}  # {origin}")
    return "\n".join(lines) + "\n"


def _inline(shape: Shape) -> str:
    return "{ " + ", ".join(f"{name} = {size}" for name, size in shape.items()) + " }"
