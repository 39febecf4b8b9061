"""Calls of functions that the module does not hold: `vprintf` and `__assertfail`."""

from __future__ import annotations

from warpwright.emulator.inline import call_parts
from warpwright.emulator.machine import printing
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
        raise UnsupportedError(f"a call of {name} is not emulated: the module does not contain its code")
    if target.name == "vprintf":
        w.emit(f"{w.names.object('print_text', printing.print_text)}(m, g, {arguments!r}, {results!r}, {w.mask})")
    else:
        w.emit(f"{w.names.object('fail', printing.fail)}(m, {w.step}, g, {arguments!r}, {w.mask})")
