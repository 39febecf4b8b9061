"""`cvt`, on `numerics.convert`."""

from __future__ import annotations

from typing import Any

from warpwright.emulator.numerics import convert
from warpwright.emulator.ptx.model import Instruction
from warpwright.emulator.translate.registry import translates
from warpwright.emulator.translate.writer import Writer, kind_of

_PACKS = {
    "f16x2": convert.pack_f16x2,
    "bf16x2": convert.pack_bf16x2,
    "e4m3x2": convert.pack_e4m3x2,
    "e5m2x2": convert.pack_e5m2x2,
}

# A pair of halves to a pair of bytes and back: the function, the kinds of its result and of its operand.
_WHOLE = {
    ("e4m3x2", "f16x2"): (convert.pack_e4m3x2_of_f16x2, "u2", "u4"),
    ("e5m2x2", "f16x2"): (convert.pack_e5m2x2_of_f16x2, "u2", "u4"),
    ("f16x2", "e4m3x2"): (convert.unpack_e4m3x2, "u4", "u2"),
    ("f16x2", "e5m2x2"): (convert.unpack_e5m2x2, "u4", "u2"),
}


@translates("cvt")
def convert_value(w: Writer, i: Instruction) -> None:
    """One value to another type, or two floats to a packed pair."""
    target, *sources = i.operands
    *modifiers, to, source = i.modifiers
    if (to, source) in _WHOLE:
        function, kind, read = _WHOLE[to, source]
        w.result(target, kind, w.call(function, w.value(sources[0], read), repr("relu" in modifiers)))
    elif to in _PACKS:
        if source != "f32" or len(sources) != 2:
            raise ValueError(i.name)
        values = [w.value(operand, "f4") for operand in sources]
        result = "u2" if to.startswith("e") else "u4"
        options = repr("relu" in modifiers) if to.startswith("e") else repr(tuple(modifiers))
        w.result(target, result, w.call(_PACKS[to], *values, options))
    elif to == "tf32":
        rounding = next(m for m in modifiers if m in {"rna", "rn", "rz"})
        w.result(
            target, "u4", w.call(convert.to_tf32, w.value(sources[0], "f4"), repr(rounding), repr("relu" in modifiers))
        )
    elif not modifiers and to in convert.INTEGERS and source in convert.INTEGERS:
        w.result(target, kind_of(to), f"{w.value(sources[0], kind_of(source))}.astype({w.dtype(kind_of(to))})")
    else:
        function = _conversion(to, source, tuple(modifiers))
        name = w.names.object(f"cvt_{'_'.join(i.modifiers)}", function)
        w.result(target, kind_of(to), f"{name}({w.value(sources[0], kind_of(source))})")


_KNOWN: dict[tuple[str, str, tuple[str, ...]], Any] = {}


def _conversion(to: str, source: str, modifiers: tuple[str, ...]) -> Any:
    """One function for each form, so that a block names it once."""
    key = (to, source, modifiers)
    if key not in _KNOWN:
        _KNOWN[key] = convert.conversion(to, source, modifiers)
    return _KNOWN[key]
