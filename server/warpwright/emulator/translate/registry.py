"""Which opcodes are known, and who translates them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING

from warpwright.emulator.ptx.model import Instruction

if TYPE_CHECKING:
    from warpwright.emulator.translate.writer import Writer

Translator = Callable[["Writer", Instruction], None]

FAMILIES = ("control", "convert", "floating", "integer", "matrix", "mbarrier", "memory", "move", "warp", "warpgroup")
_BY_OPCODE: dict[str, Translator] = {}


class UnsupportedError(Exception):
    """An instruction, or a form of one, that is not run. The message names it: `tcgen05.mma is not emulated`."""


def translates(*opcodes: str) -> Callable[[Translator], Translator]:
    """Register a function for opcodes."""

    def register(translator: Translator) -> Translator:
        for opcode in opcodes:
            _BY_OPCODE[opcode] = translator
        return translator

    return register


def translator_of(opcode: str) -> Translator | None:
    """Who translates an opcode; None for one that is not run."""
    with _LOADING:
        _load()
    return _BY_OPCODE.get(opcode)


_LOADING = Lock()
"""Held while families are imported, so that no thread asks when some of them are there."""


@cache
def _load() -> None:
    for family in FAMILIES:
        import_module(f"warpwright.emulator.translate.{family}")
