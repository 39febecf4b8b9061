"""Calls of functions that the module does not hold: `vprintf`, `__assertfail`, `malloc` and `free`."""

from __future__ import annotations

from warpwright.emulator.inline import call_parts
from warpwright.emulator.ptx.model import Instruction, Symbol
from warpwright.emulator.translate.registry import UnsupportedError, translates
from warpwright.emulator.translate.writer import Writer

EXTERNAL = {"vprintf", "__assertfail"}


@translates("call")
def call(w: Writer, i: Instruction) -> None:
    """Parameters stand in local memory, results too, as for every device function (see `inline`)."""
    results, target, arguments, _ = call_parts(i)
    if not isinstance(target, Symbol) or target.name not in EXTERNAL:
        name = target.name
        raise UnsupportedError(f"a call of {name}, whose code the module does not hold, is not emulated")
    w.emit(f"m.call_{target.name.strip('_')}({w.step}, g, {results!r}, {arguments!r}, {w.mask})")
