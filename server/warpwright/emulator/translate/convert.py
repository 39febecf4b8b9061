"""`cvt`, on `numerics.convert`."""

from __future__ import annotations

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
    if (to, source) in _WHOLE and {*modifiers} <= {"rn", "satfinite", "relu"}:
        function, kind, read = _WHOLE[to, source]
        w.result(target, kind, w.call(function, w.value(sources[0], read), repr("relu" in modifiers)))
    elif to in _PACKS:
        _pack(w, i, to, source, tuple(modifiers))
    elif to == "tf32":
        _to_tf32(w, i, tuple(modifiers))
    elif not modifiers and to in convert.INTEGERS and source in convert.INTEGERS:
        w.result(target, kind_of(to), f"{w.value(sources[0], kind_of(source))}.astype({w.dtype(kind_of(to))})")
    else:
        name = w.names.object(f"cvt_{'_'.join(i.modifiers)}", convert.conversion(to, source, tuple(modifiers)))
        w.result(target, kind_of(to), f"{name}({w.value(sources[0], kind_of(source))})")


def _pack(w: Writer, i: Instruction, to: str, source: str, modifiers: tuple[str, ...]) -> None:
    target, *sources = i.operands
    if source != "f32" or len(sources) != 2:
        raise ValueError(i.name)
    values = [w.value(operand, "f4") for operand in sources]
    if to.startswith("e"):
        if set(modifiers) - {"relu"} != {"rn", "satfinite"}:
            raise ValueError(i.name)
        w.result(target, "u2", w.call(_PACKS[to], *values, repr("relu" in modifiers)))
        return
    convert.conversion(to.removesuffix("x2"), source, modifiers)  # refuses, by name, a form that is not known
    w.result(target, "u4", w.call(_PACKS[to], *values, repr(modifiers)))


def _to_tf32(w: Writer, i: Instruction, modifiers: tuple[str, ...]) -> None:
    target, value = i.operands[0], w.value(i.operands[1], "f4")
    if modifiers == ("rna", "satfinite"):
        w.result(target, "u4", w.call(convert.to_tf32_satfinite, value))
    elif modifiers == ("rna",) or (modifiers and modifiers[0] in ("rn", "rz") and modifiers[1:] in ((), ("relu",))):
        w.result(target, "u4", w.call(convert.to_tf32, value, repr(modifiers[0]), repr("relu" in modifiers)))
    else:
        raise ValueError(i.name)
