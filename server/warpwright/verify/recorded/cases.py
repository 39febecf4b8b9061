"""The values with which a place of host code is run: around every number that its text compares with, and with each
call that makes a graph failing once."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from warpwright.verify.host_change import GRAPH_CALLS, HostChange, Variable

_FEW = (0, 1, 2, 3, 5, 257)
_OTHER = 1000
MOST_VALUE = 4096
"""Of a number in the text that is tried: more iterations show nothing else."""
_NUMBER = re.compile(r"(?<![\w.])(\d+)(?![\w.]*\w)")
_FLOATS = {4: "<f", 8: "<d"}


@dataclass(frozen=True, slots=True)
class RecordedCase:
    """`values` are the variables' bytes, `shown` the integers among them, `fails` a function and which call of it."""

    values: tuple[bytes, ...]
    shown: dict[str, int]
    fails: tuple[str, int] = ("", 0)


def recorded_cases(change: HostChange) -> list[RecordedCase]:
    """Every number around those in the text for each integer, the others being larger and apart, and for all at once;
    then, where all are large, each call failing."""
    numbers = {int(each) for text in (change.before, change.after) for each in _NUMBER.findall(text)}
    numbers = {n for n in numbers if n <= MOST_VALUE}
    tried = {n + d for n in numbers for d in (-1, 0, 1)} | {2 * n + 1 for n in numbers} | set(_FEW)
    integers = [v.name for v in change.variables if v.kind in ("int", "uint")]
    usual = {name: _OTHER + 37 * i for i, name in enumerate(integers)}
    settings = [usual]
    for value in sorted(n for n in tried if n >= 0):
        settings += [{**usual, name: value} for name in integers]
        settings.append(dict.fromkeys(integers, value))
    distinct = list({tuple(each.items()): each for each in settings}.values())
    cases = [_case(change, each) for each in distinct]
    return cases + [_case(change, usual, fails) for fails in _failures()]


def _failures() -> Iterator[tuple[str, int]]:
    makers = ("cudaStreamCreateWithFlags", "cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphInstantiate")
    assert set(makers) < set(GRAPH_CALLS)
    yield from ((each, 1) for each in makers)
    yield from (("cudaGraphLaunch", call) for call in (1, 2))


def _case(change: HostChange, integers: dict[str, int], fails: tuple[str, int] = ("", 0)) -> RecordedCase:
    values = tuple(_bytes(variable, number, integers) for number, variable in enumerate(change.variables))
    return RecordedCase(values, integers, fails)


def _bytes(variable: Variable, number: int, integers: dict[str, int]) -> bytes:
    """Made-up contents, no two variables the same: addresses and handles that nothing looks behind."""
    match variable.kind:
        case "int" | "uint":
            most = (1 << (8 * variable.size - (variable.kind == "int"))) - 1
            return min(integers[variable.name], most).to_bytes(variable.size, "little")
        case "bool":
            return bytes([number % 2])
        case "float":
            return struct.pack(_FLOATS[variable.size], 1.5 + number)
        case "dim3":
            return struct.pack("<3I", 3 + number, 2, 1)
        case "cudaStream_t":
            return (0x1000 + 0x10 * number).to_bytes(8, "little")
        case _:
            return (0x7F00_0000_0000 + 0x1000_0000 * number).to_bytes(8, "little")
