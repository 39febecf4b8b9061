"""The values with which a place of host code is run: around every number that its text compares with, and with each
call that makes a graph failing once."""

from __future__ import annotations

import random
import re
import secrets
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from warpwright.verify.host_change import HostChange, Variable
from warpwright.verify.host_place import GRAPH_CALLS, MOST_VALUE

_FEW = (0, 1, 2, 3, 5, 257)
_USUAL = range(900, 1300)
_LARGE = range(20_000, 32_000)
_ADDRESSES = range(0x7F00_0000_0000, 0x7FFF_0000_0000, 1 << 21)
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
    each far beyond them; then, where all are large, each call failing. What is made up is drawn anew each time, so that
    no candidate knows it."""
    draw = random.Random(secrets.randbits(64))
    numbers = {int(each) for text in (change.before, change.after) for each in _NUMBER.findall(text)}
    numbers = {n for n in numbers if n <= MOST_VALUE}
    tried = {n + d for n in numbers for d in (-1, 0, 1)} | {2 * n + 1 for n in numbers} | set(_FEW)
    integers = [v.name for v in change.variables if v.kind in ("int", "uint")]
    usual = dict(zip(integers, draw.sample(_USUAL, len(integers)), strict=True))
    settings = [usual]
    for value in sorted(n for n in tried if n >= 0):
        settings += [{**usual, name: value} for name in integers]
        settings.append(dict.fromkeys(integers, value))
    few = dict(zip(integers, draw.choices(_FEW[1:-1], k=len(integers)), strict=True))
    settings += [{**few, name: draw.choice(_LARGE)} for name in integers]
    distinct = list({tuple(each.items()): each for each in settings}.values())
    cases = [_case(change, each, draw) for each in distinct]
    return cases + [_case(change, usual, draw, fails) for fails in _failures()]


def _failures() -> Iterator[tuple[str, int]]:
    makers = ("cudaStreamCreateWithFlags", "cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphInstantiate")
    assert set(makers) < set(GRAPH_CALLS)
    yield from ((each, 1) for each in makers)
    yield from (("cudaGraphLaunch", call) for call in (1, 2))


def _case(
    change: HostChange, integers: dict[str, int], draw: random.Random, fails: tuple[str, int] = ("", 0)
) -> RecordedCase:
    addresses = draw.sample(_ADDRESSES, len(change.variables))
    values = tuple(_bytes(each, integers, draw, at) for each, at in zip(change.variables, addresses, strict=True))
    return RecordedCase(values, integers, fails)


def _bytes(variable: Variable, integers: dict[str, int], draw: random.Random, address: int) -> bytes:
    """Made-up contents: addresses and handles that nothing looks behind, no two the same."""
    match variable.kind:
        case "int" | "uint":
            most = (1 << (8 * variable.size - (variable.kind == "int"))) - 1
            return min(integers[variable.name], most).to_bytes(variable.size, "little")
        case "bool":
            return bytes([draw.randrange(2)])
        case "float":
            return struct.pack(_FLOATS[variable.size], draw.uniform(1, 2))
        case "dim3":
            return struct.pack("<3I", draw.randrange(3, 100), 2, 1)
        case _:
            return address.to_bytes(8, "little")
