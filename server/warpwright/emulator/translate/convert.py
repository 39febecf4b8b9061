"""`cvt`."""

from __future__ import annotations

from warpwright.emulator.ptx.model import Instruction
from warpwright.emulator.translate.registry import translates
from warpwright.emulator.translate.writer import Writer, kind_of


@translates("cvt")
def convert(w: Writer, i: Instruction) -> None:
    """Between integers the value is cut or extended; `numerics.convert` has the rest."""
    to, source = i.modifiers[-2], i.modifiers[-1]
    if to[0] == "f" or source[0] == "f" or "sat" in i.modifiers:
        raise ValueError(i.name)
    kind = kind_of(to)
    w.result(i.operands[0], kind, f"{w.value(i.operands[1], kind_of(source))}.astype({w.dtype(kind)})")
