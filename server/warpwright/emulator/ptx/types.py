"""The fundamental types of PTX by their bytes (PTX ISA, "Fundamental Types", "Packed Data Types")."""

from __future__ import annotations

from warpwright.emulator.ptx.model import Instruction

TYPE_BYTES = {
    "b8": 1, "s8": 1, "u8": 1, "b16": 2, "s16": 2, "u16": 2, "f16": 2, "bf16": 2, "b32": 4, "s32": 4, "u32": 4,
    "f32": 4, "f16x2": 4, "bf16x2": 4, "tf32": 4, "e4m3x2": 2, "e5m2x2": 2, "b64": 8, "s64": 8, "u64": 8, "f64": 8,
    "b128": 16, "pred": 1, "texref": 0, "samplerref": 0, "surfref": 0,
}  # fmt: skip


def vector_length(instruction: Instruction) -> int:
    """The elements that each lane moves: 4 for `ld.v4.f32`, 1 for `ld.f32`."""
    return next((int(m[1:]) for m in instruction.modifiers if m in {"v2", "v4", "v8"}), 1)


def bytes_per_lane(instruction: Instruction) -> int:
    """The bytes that each lane moves; 0 where the type, which stands last, has none.

    >>> bytes_per_lane(Instruction("ld", ("global", "v4", "f32"), (), None, None, 1))
    16
    """
    return vector_length(instruction) * TYPE_BYTES.get(instruction.modifiers[-1], 0)


_SPACES = {"global", "shared", "local", "const", "param"}


def space_of(i: Instruction) -> str:
    """The state space that an instruction names; "generic" for none."""
    named = next((m.split("::")[0] for m in i.modifiers if m.split("::")[0] in _SPACES), "generic")
    return "const" if named == "param" else named
