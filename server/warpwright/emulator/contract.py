"""Products and sums that the assembler makes one instruction of.

A `mul` and an `add` or `sub` that name no rounding may be contracted into an `fma` (PTX ISA, "mul", "add": the
optimiser may fuse them), and ptxas does so where nothing else reads the product. Of two products it takes the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from warpwright.emulator.flow import ends_block, reads_and_writes
from warpwright.emulator.ptx.model import Immediate, Instruction, Label, Negated, Operand, Register

_TYPES = {"f32", "f64"}
_PLAIN = {"f32", "f64", "ftz"}


def contracted(body: Sequence[Instruction | Label]) -> list[Instruction | Label]:
    """The body with such pairs as `fma.rn`, which stands where the sum stood."""
    uses: Counter[str] = Counter()
    writes: Counter[str] = Counter()
    for item in body:
        if isinstance(item, Instruction):
            read, written = reads_and_writes(item)
            uses.update(read)
            writes.update(written)
            for operand in item.operands[1:]:
                if isinstance(operand, Register) and item.operands.count(operand) > 1:
                    uses[operand.name] += 1
    out: list[Instruction | Label | None] = []
    products: dict[str, int] = {}  # register -> place in `out` of the multiplication in this block
    for item in body:
        if isinstance(item, Label) or ends_block(item):
            products.clear()
            out.append(item)
            continue
        fused = _fused(item, out, products)
        out.append(fused or item)
        if _is_plain(item, "mul"):
            target = item.operands[0]
            if isinstance(target, Register) and uses[target.name] == 1 == writes[target.name]:
                products[target.name] = len(out) - 1
    return [item for item in out if item is not None]


def _is_plain(item: Instruction, *opcodes: str) -> bool:
    return (
        item.opcode in opcodes and item.guard is None and item.modifiers[-1] in _TYPES and set(item.modifiers) <= _PLAIN
    )


def _fused(item: Instruction, out: list[Instruction | Label | None], products: dict[str, int]) -> Instruction | None:
    if not _is_plain(item, "add", "sub"):
        return None
    target, left, right = item.operands
    for place, operand in enumerate((left, right)):
        if not isinstance(operand, Register) or operand.name not in products:
            continue
        at = products[operand.name]
        product = out[at]
        assert isinstance(product, Instruction)
        if product.modifiers != item.modifiers:
            continue
        out[at] = None
        del products[operand.name]
        a, b = product.operands[1:3]
        other = right if place == 0 else left
        if item.opcode == "sub" and place == 0:
            other = _negated(other)
        elif item.opcode == "sub":
            a = _negated(a)
        modifiers = ("rn", *item.modifiers)
        return replace(item, opcode="fma", modifiers=modifiers, operands=(target, a, b, other))
    return None


def _negated(operand: Operand) -> Operand:
    """An operand whose sign is turned, which the machine does on the way."""
    if isinstance(operand, Register):
        return Negated(operand)
    assert isinstance(operand, Immediate)
    bits = None if operand.bits is None else operand.bits ^ (1 << (operand.width - 1))
    return Immediate(-operand.value, bits, operand.width)
