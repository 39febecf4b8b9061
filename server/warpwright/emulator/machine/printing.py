"""`printf` and `assert` of device code (CUDA C++ Programming Guide, "Formatted Output" and "Assertion").

The compiler calls `vprintf(format, arguments)` and `__assertfail(message, file, line, function, character size)`; what
is passed lies in each lane's local memory.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from warpwright.emulator.machine.faults import FoundFault, KernelFaultError
from warpwright.emulator.machine.group import Array, Group
from warpwright.emulator.machine.memory import GLOBAL_WINDOW, LOCAL_WINDOW, WINDOW_BYTES
from warpwright.facts.profile import FaultKind
from warpwright.syntax.encoding import shown_bytes

if TYPE_CHECKING:
    from warpwright.emulator.machine.batch import Batch

MOST_PRINTED = 10_000
"""Calls of `printf` whose text is kept; those behind are counted only."""

_LONGEST = 4096
_DIRECTIVE = re.compile(r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+))?(hh|h|ll|l|L|q|j|z|t)?([diouxXeEfFgGaAcsp%])")


def print_text(
    batch: Batch, group: Group, arguments: Sequence[str], results: Sequence[str], mask: Array | None
) -> None:
    """`vprintf` for each lane, in lane order."""
    printed = batch.prepared.printed
    for place in _places(group, mask):
        lane = int(group.lanes[place])
        if len(printed) < MOST_PRINTED:
            text = _text(batch, lane, _passed(batch, lane, arguments[0], 8))
            words = _words(batch, lane, _passed(batch, lane, arguments[1], 8))
            printed.append(formatted(text, words, partial(_text, batch, lane)))
        if results:
            at = _at(batch, lane, results[0])
            batch.local.data[at : at + 4] = 0


def fail(batch: Batch, step: int, group: Group, arguments: Sequence[str], mask: Array | None) -> None:
    """`__assertfail`: end the run where a lane comes here."""
    for place in _places(group, mask):
        lane = int(group.lanes[place])
        text = _text(batch, lane, _passed(batch, lane, arguments[0], 8))
        raise KernelFaultError(FoundFault(FaultKind.ASSERTION, step, f"`{text}`", batch.thread(group, place)))


def formatted(text: str, words: Iterator[bytes], text_at: Callable[[int], str]) -> str:
    """C's formatting of arguments that lie in 8 bytes each; `text_at` gives the string at an address.

    >>> words = [struct.pack("<d", 2.5), *(struct.pack("<q", value) for value in (7, 255, 65, 16))]
    >>> formatted("%5.2f|%-4d|%x|%c|%s|%%", iter(words), lambda address: f"at {address}")
    ' 2.50|7   |ff|A|at 16|%'
    """

    def directive(found: re.Match[str]) -> str:
        flags, width, precision, length, kind = found.groups()
        if kind == "%":
            return "%"
        width = str(_whole(next(words), "i", "")) if width == "*" else width or ""
        precision = str(_whole(next(words), "i", "")) if precision == "*" else precision
        shape = f"%{flags}{width}" + (f".{precision}" if precision is not None else "")
        word = next(words, b"\0" * 8)
        if kind == "s":
            return (shape + "s") % text_at(int.from_bytes(word, "little"))
        if kind in "eEfFgGaA":
            number: float = struct.unpack("<d", word)[0]
            return (shape + ("e" if kind in "aA" else kind)) % number
        if kind == "c":
            return (f"%{flags}{width}s") % chr(word[0])
        if kind == "p":
            return f"0x{int.from_bytes(word, 'little'):x}"
        return (shape + ("d" if kind in "iu" else kind)) % _whole(word, kind, length or "")

    return _DIRECTIVE.sub(directive, text)


def _whole(word: bytes, kind: str, length: str) -> int:
    size = {"hh": 1, "h": 2, "l": 8, "ll": 8, "j": 8, "z": 8, "t": 8, "q": 8}.get(length, 4)
    return int.from_bytes(word[:size], "little", signed=kind in "di")


def _places(group: Group, mask: Array | None) -> Sequence[int]:
    if mask is None:
        return range(group.size)
    return [int(place) for place in np.broadcast_to(mask, group.size).nonzero()[0]]


def _at(batch: Batch, lane: int, variable: str) -> int:
    return lane * batch.local_stride + batch.prepared.symbols[variable]


def _passed(batch: Batch, lane: int, variable: str, size: int) -> int:
    """What a lane passes in a variable."""
    at = _at(batch, lane, variable)
    return int.from_bytes(batch.local.data[at : at + size].tobytes(), "little")


def _bytes(batch: Batch, lane: int, address: int, most: int) -> bytes:
    """Bytes from a generic address on, as far as the array there goes."""
    if LOCAL_WINDOW <= address < LOCAL_WINDOW + WINDOW_BYTES:
        start = lane * batch.local_stride + address - LOCAL_WINDOW
        end = min(start + most, (lane + 1) * batch.local_stride)
        return bytes(batch.local.data[start:end].tobytes())
    place = address - GLOBAL_WINDOW
    holder = batch.memory.holder(place) if place >= 0 else None
    if holder is None or place >= holder.end:
        return b""
    return bytes(batch.memory.data[place : min(place + most, holder.end)].tobytes())


def _text(batch: Batch, lane: int, address: int) -> str:
    return shown_bytes(_bytes(batch, lane, address, _LONGEST).split(b"\0")[0])


def _words(batch: Batch, lane: int, address: int) -> Iterator[bytes]:
    """The arguments of a `printf`: each in 8 bytes of its own."""
    while True:
        yield _bytes(batch, lane, address, 8).ljust(8, b"\0")
        address += 8
