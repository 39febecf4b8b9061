"""Products and sums that the assembler makes one instruction of.

A `mul` and an `add` or `sub` that name no rounding may be contracted into an `fma` (PTX ISA, "mul", "add"). What ptxas
does, as its machine code shows: within a basic block a product goes into the sums that read it, where nothing but sums
reads it; of two products in a sum the one with fewer readers goes in, the first where they have as many; and a product
that stands beside one that went in stays a value of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from warpwright.emulator.flow import ends_block, reads_and_writes, registers_in
from warpwright.emulator.ptx.model import Immediate, Instruction, Label, Negated, Operand, Register

_TYPES = {"f32", "f64", "f16", "f16x2", "bf16", "bf16x2"}
_PLAIN = {*_TYPES, "ftz"}


@dataclass(slots=True)
class _Product:
    """A multiplication: its place in the block, its factors, and the places of the sums that read it."""

    at: int
    modifiers: tuple[str, ...]
    factors: tuple[Operand, Operand]
    readers: list[int] = field(default_factory=lambda: [])
    fused: int = 0
    is_kept: bool = False


def contracted(body: Sequence[Instruction | Label]) -> list[Instruction | Label]:
    """The body with such sums as `fma.rn`, and without the products that nothing reads any more."""
    reads: Counter[str] = Counter()
    writes: Counter[str] = Counter()
    for item in body:
        if isinstance(item, Instruction):
            written = reads_and_writes(item)[1]
            writes.update(written)
            reads.update(_read_registers(item))
    out: list[Instruction | Label] = []
    block: list[Instruction] = []
    for item in body:
        if isinstance(item, Label) or ends_block(item):
            out += _contract_block(block, reads, writes)
            out.append(item)
            block = []
        else:
            block.append(item)
    return [*out, *_contract_block(block, reads, writes)]


def _read_registers(item: Instruction) -> Iterator[str]:
    """The registers that an instruction reads, one as often as it stands there."""
    first_is_read = not reads_and_writes(item)[1]
    for operand in item.operands if first_is_read else item.operands[1:]:
        yield from registers_in(operand)
    if item.guard is not None:
        yield item.guard.register


def _contract_block(block: list[Instruction], reads: Counter[str], writes: Counter[str]) -> list[Instruction]:
    products = _products(block, reads, writes)
    if not products:
        return block
    out: list[Instruction | None] = list(block)
    for at, item in enumerate(block):
        if _is_plain(item, "add", "sub"):
            out[at] = _fused(item, products)
    for product in products.values():
        if product.fused == len(product.readers):
            out[product.at] = None
    return [item for item in out if item is not None]


def _products(block: list[Instruction], reads: Counter[str], writes: Counter[str]) -> dict[str, _Product]:
    """The products of a block that only sums of it read and that no rival with fewer readers keeps out of one."""
    found: dict[str, _Product] = {}
    for at, item in enumerate(block):
        if _is_plain(item, "mul"):
            target, a, b = item.operands
            if isinstance(target, Register) and writes[target.name] == 1:
                found[target.name] = _Product(at, item.modifiers, (a, b))
        elif _is_plain(item, "neg") and isinstance(item.operands[1], Register):
            source = found.get(item.operands[1].name)
            target = item.operands[0]
            alone = reads[item.operands[1].name] == 1
            if source is not None and alone and isinstance(target, Register) and writes[target.name] == 1:
                negated = (_negated(source.factors[0]), source.factors[1])
                found[target.name] = _Product(at, source.modifiers, negated)
        elif _is_plain(item, "add", "sub"):
            for operand in item.operands[1:]:
                if isinstance(operand, Register) and operand.name in found:
                    product = found[operand.name]
                    if product.modifiers == item.modifiers:
                        product.readers.append(at)
    eligible = {name: p for name, p in found.items() if p.readers and len(p.readers) == reads[name]}
    for product in eligible.values():
        for at in product.readers:
            rivals = [eligible.get(o.name) for o in block[at].operands[1:] if isinstance(o, Register)]
            if any(r is not None and len(r.readers) < len(product.readers) for r in rivals):
                product.is_kept = True
    return eligible


def _is_plain(item: Instruction, *opcodes: str) -> bool:
    return (
        item.opcode in opcodes and item.guard is None and item.modifiers[-1] in _TYPES and set(item.modifiers) <= _PLAIN
    )


def _fused(item: Instruction, products: dict[str, _Product]) -> Instruction:
    """A sum with a product of it gone in; the sum itself where there is none."""
    target, *terms = item.operands
    of_terms = [products.get(term.name) if isinstance(term, Register) else None for term in terms]
    able = [p for p in of_terms if p is not None and not p.is_kept]
    if not able:
        return item
    chosen = min(able, key=lambda p: len(p.readers))
    place = of_terms.index(chosen)
    chosen.fused += 1
    other, rival = terms[1 - place], of_terms[1 - place]
    if rival is not None:
        rival.is_kept = True
    first, second = chosen.factors
    if item.opcode == "sub" and place == 0:
        other = _negated(other)
    elif item.opcode == "sub":
        first = _negated(first)
    return replace(item, opcode="fma", modifiers=("rn", *item.modifiers), operands=(target, first, second, other))


def _negated(operand: Operand) -> Operand:
    """An operand whose sign is turned, which the machine does on the way."""
    if isinstance(operand, Negated):
        return operand.operand
    if isinstance(operand, Register):
        return Negated(operand)
    assert isinstance(operand, Immediate)
    bits = None if operand.bits is None else operand.bits ^ (1 << (operand.width - 1))
    return Immediate(-operand.value, bits, operand.width)
