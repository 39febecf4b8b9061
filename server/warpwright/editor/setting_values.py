"""What the values of settings must be: each function gives the value as it is used, or raises ValueError, TypeError."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from warpwright.facts.model import MAX_THREADS_PER_BLOCK, Dim3
from warpwright.rules.base import Severity
from warpwright.syntax.flags import read_options
from warpwright.toolchain.nvcc_options import nvcc_options

ARCH = re.compile(r"sm_[1-9][0-9]{1,2}[af]?")
OFF = "off"
ONLY_HOT = "hot"
BACKGROUND = "background"
SEVERITIES = (OFF, *(each.value for each in reversed(Severity)))


class RefusedError(ValueError):
    """What a project may not choose; the message is a sentence that says why."""


def arch(value: object) -> str:
    if not isinstance(value, str) or (value and not ARCH.fullmatch(value)):
        raise ValueError
    return value


def architectures(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(value):
        raise ValueError
    return tuple(dict.fromkeys(map(arch, value)))


def block(value: object) -> Dim3:
    if isinstance(value, int) and not isinstance(value, bool):
        value = [value]
    if not isinstance(value, list | tuple) or not 1 <= len(value) <= 3:
        raise ValueError
    dims = [_positive_int(item) for item in value]
    x, y, z = (*dims, 1, 1)[:3]
    if x * y * z > MAX_THREADS_PER_BLOCK:
        raise ValueError
    return x, y, z


def _positive_int(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError
    return value


def count(value: object) -> int:
    return value if value == 0 and type(value) is int else _positive_int(value)


def seconds(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= 86400:
        raise ValueError
    return float(value)


def boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def hints(value: object) -> bool | str:
    return ONLY_HOT if value == ONLY_HOT else boolean(value)


def text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise TypeError
    return tuple(text(item) for item in value)


def macros(value: object) -> dict[str, str]:
    """A macro's value may be written as a number: {"TILE": 32}."""
    if not isinstance(value, Mapping):
        raise TypeError
    macros: dict[str, str] = {}
    for name, body in value.items():
        if not isinstance(name, str) or not name.isidentifier() or not isinstance(body, str | int | float):
            raise ValueError
        macros[name] = str(int(body)) if isinstance(body, bool) else str(body)
        if refused := nvcc_options([("-D", f"{name}={macros[name]}")], Path()).refused:
            raise RefusedError(refused[0])
    return macros


def blocks(value: object) -> dict[str, Dim3]:
    """Block shapes by the names of kernels."""
    if not isinstance(value, Mapping):
        raise TypeError
    return {text(name): block(shape) for name, shape in value.items()}


def severities(value: object) -> dict[str, str]:
    """Severities by the names of rules or groups."""
    if not isinstance(value, Mapping):
        raise TypeError
    if not all(isinstance(name, str) and severity in SEVERITIES for name, severity in value.items()):
        raise ValueError
    return dict(value)


def flags(value: object) -> tuple[str, ...]:
    """nvcc's options, each of which is one word that means something for device code."""
    words = names(value)
    for word in words:
        read = nvcc_options(read_options([word]), Path())
        if read.refused:
            raise RefusedError(read.refused[0])
        if not read.taken:
            raise ValueError
    return words
