"""Writes the Python function of one basic block.

Inside it `m` is the running batch, `g` the group of lanes, `R` the registers. A register's value is held in one local
for each way in which its bits are read: `v7` as it was computed, `v7_f4` where it is viewed as float. What another
block reads goes back to `R` at the end, as raw bits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from warpwright.emulator.flow import Block, reads_and_writes
from warpwright.emulator.kinds import DTYPES
from warpwright.emulator.machine.special import OF_CLUSTERS, SPECIAL_REGISTERS
from warpwright.emulator.ptx.model import Address, Immediate, Instruction, Negated, Operand, Register, Symbol
from warpwright.emulator.ptx.types import space_of
from warpwright.emulator.selects import with_selects
from warpwright.emulator.translate.forms import unknown_modifier
from warpwright.emulator.translate.registry import UnsupportedError, translator_of

_KINDS = {
    "pred": "b1", "f16": "f2", "bf16": "u2", "f32": "f4", "f64": "f8", "f16x2": "u4", "bf16x2": "u4", "tf32": "u4",
    "u16x2": "u4", "s16x2": "u4",
}  # fmt: skip


def kind_of(type_name: str) -> str:
    """The kind that a PTX type is computed in: `kind_of("s32")` is "s4", `kind_of("b64")` is "u8"."""
    if type_name in _KINDS:
        return _KINDS[type_name]
    letter, width = type_name[:1], type_name[1:]
    if letter in "busf" and width in {"8", "16", "32", "64"}:
        return f"{'u' if letter == 'b' else letter}{int(width) // 8}"
    raise UnsupportedError(f"the type .{type_name} is not emulated")


def raw(kind: str) -> str:
    """The kind of the same width that registers hold: `raw("f4")` is "u4"."""
    return kind if kind == "b1" else f"u{kind[1:]}"


def width(kind: str) -> int:
    """Bytes of a kind."""
    return int(kind[1:])


@dataclass(slots=True)
class Names:
    """What all blocks of a kernel share: register numbers and kinds, and the objects that the code refers to."""

    numbers: Mapping[str, int]
    kinds: Mapping[str, str]
    parameters: Collection[str]
    in_clusters: bool
    objects: dict[str, Any] = field(default_factory=lambda: {})
    _constants: dict[tuple[str, int], str] = field(default_factory=lambda: {})

    def constant(self, kind: str, bits: int) -> str:
        """A name for a constant of a kind, given by its bits."""
        key = (kind, bits)
        if key not in self._constants:
            name = f"c{len(self._constants)}"
            self._constants[key] = name
            mask = (1 << 8 * width(kind)) - 1
            value = np.bool_(bits) if kind == "b1" else DTYPES[raw(kind)](bits & mask).view(DTYPES[kind])
            self.objects[name] = value
        return self._constants[key]

    def object(self, stem: str, value: Any) -> str:
        """A name for any object, such as a function of the numerics."""
        if self.objects.setdefault(stem, value) is value:
            return stem
        return self.object(f"{stem}_", value)


class Writer:
    """The text of one block's function, written instruction by instruction."""

    def __init__(self, block: Block, names: Names, steps: Mapping[int, int]) -> None:
        self.block = block
        self.names = names
        self.steps = steps
        self.lines: list[str] = []
        self._locals = 0
        self._held: dict[str, dict[str, str]] = {}
        self._shared: set[str] = set()  # locals that may be an array that another register owns too
        self._written = frozenset[str]().union(*(reads_and_writes(i)[1] for i in block.body))
        self.mask: str | None = None
        self.step = 0
        self._carry: str | None = None
        self._body, self._when = with_selects(block)

    # What translators use

    def value(self, operand: Operand, kind: str) -> str:
        """An expression for an operand read as `kind`; of a wider register the low bytes are read."""
        match operand:
            case Register(name) if name in self.names.kinds:
                return self._register(name, kind)
            case Register(name) if name.startswith("%"):
                return self._special(name, kind)
            case Immediate(value, bits, bit_width):
                return self._immediate(value, bits, bit_width, kind)
            case Negated(Register(name)) if kind == "b1":
                return f"(~{self._register(name, 'b1')})"
            case Negated(Register(name)):  # of a product that was contracted: the sign of each part turns
                signs = {"u4": 0x80008000, "u2": 0x8000}.get(kind)
                turned = self._register(name, kind)
                return self.local(f"-{turned}" if signs is None else f"{turned} ^ {self.constant(kind, signs)}")
            case Symbol(name, offset):
                address = self.local(f"m.symbol({name!r}, {offset})")
                return f"{address}.astype({self.dtype(kind)})"
        raise UnsupportedError(f"an operand {operand} is not emulated here")

    def address(self, operand: Operand) -> str:
        """The address that `[base + offset]` names."""
        assert isinstance(operand, Address), operand
        match operand.base:
            case Register(name):
                kind = self.names.kinds[name]
                base = self.value(operand.base, kind)
                return self.local(f"{base} + {self.constant(kind, operand.offset)}") if operand.offset else base
            case Symbol(name, offset):
                return self.local(f"m.symbol({name!r}, {offset + operand.offset})")
            case Immediate(value):
                return self.constant("u8", int(value) + operand.offset)

    def result(self, operand: Operand, kind: str, expression: str) -> None:
        """Write `expression`, which is of `kind`, to a register; a guarded one for its lanes only."""
        assert isinstance(operand, Register), operand
        if operand.name == "_":
            self.lines.append(expression)
            return
        target = self.names.kinds[operand.name]
        name = self.local(expression)
        if kind != "b1" and width(kind) != width(target):
            wide = f"{kind[0]}{width(target)}" if kind[0] in "us" else f"u{width(target)}"
            source = name if kind[0] in "us" else f"{name}.view({self.dtype(raw(kind))})"
            name, kind = self.local(f"{source}.astype({self.dtype(wide)})"), wide
        if self.mask is not None:
            old = self._register(operand.name, kind)
            name = self.local(f"where({self.mask}, {name}, {old})")
        self._held[operand.name] = {kind: name}

    def alias(self, operand: Operand, kind: str, expression: str) -> None:
        """Like `result`, for a value that is another register's array or a part of the batch's own."""
        self.result(operand, kind, expression)
        assert isinstance(operand, Register)
        if self.mask is None and operand.name in self._held:
            self._shared.update(self._held[operand.name].values())

    def local(self, expression: str) -> str:
        """A local variable that holds an expression's value."""
        if expression.isidentifier():
            return expression
        self._locals += 1
        name = f"v{self._locals}"
        self.lines.append(f"{name} = {expression}")
        return name

    def call(self, function: Any, *arguments: str) -> str:
        """The text of a call of a Python function."""
        return f"{self.names.object(function.__name__, function)}({', '.join(arguments)})"

    def carry(self) -> str:
        """The carry that the last `.cc` instruction of this block left."""
        if self._carry is None:
            raise UnsupportedError("a carry from another basic block is not emulated")
        return self._carry

    def set_carry(self, local: str) -> None:
        self._carry = local

    def taken(self, load: Instruction) -> str | None:
        """Where a select takes what is loaded (see `emulator.selects`); None where all lanes' values count."""
        when = self._when.get(id(load))
        return None if when is None else self.value(when, "b1")

    def need_cluster(self) -> None:
        """Raises UnsupportedError where the kernel does not say how many blocks its clusters have."""
        if not self.names.in_clusters:
            raise UnsupportedError("a cluster whose size only the launch gives is not emulated")

    def is_parameter(self, symbol: str) -> bool:
        """Whether a symbol names one of the kernel's own parameters."""
        return symbol in self.names.parameters

    def emit(self, statement: str) -> None:
        self.lines.append(statement)

    def dtype(self, kind: str) -> str:
        return self.names.object(kind.upper(), DTYPES[kind])

    def constant(self, kind: str, bits: int) -> str:
        return self.names.constant(kind, bits)

    # Operands

    def _register(self, name: str, kind: str) -> str:
        own = self.names.kinds[name]
        held = self._held.get(name)
        if held is None:
            local = self.local(f"pick(R[{self.names.numbers[name]}])")
            self._shared.add(local)
            held = self._held[name] = {own: local}
        if kind not in held:
            source_kind, source = next(iter(held.items()))
            expression = f"{source}.view({self.dtype(kind)})"
            if width(kind) != width(source_kind):
                low = f"{source}.view({self.dtype(raw(source_kind))}).astype({self.dtype(raw(kind))})"
                expression = low if kind == raw(kind) else f"{low}.view({self.dtype(kind)})"
            held[kind] = self.local(expression)
            if source in self._shared:
                self._shared.add(held[kind])
        return held[kind]

    def _special(self, name: str, kind: str) -> str:
        if name in OF_CLUSTERS:
            self.need_cluster()
        elif name not in SPECIAL_REGISTERS:
            raise UnsupportedError(f"the special register {name} is not emulated")
        return (
            f"m.special({name!r}, g).astype({self.dtype(kind)})"
            if kind not in {"u4", "s4"}
            else (f"m.special({name!r}, g)" if kind == "u4" else f"m.special({name!r}, g).view({self.dtype('s4')})")
        )

    def _immediate(self, value: float, bits: int | None, bit_width: int, kind: str) -> str:
        if bits is None:
            if kind[0] == "f":
                return self.constant(kind, int(DTYPES[kind](value).view(DTYPES[raw(kind)])))
            return self.constant(kind, int(value))
        if bit_width == 8 * width(kind):
            return self.constant(kind, bits)
        return self.constant(kind, int(DTYPES[kind](value).view(DTYPES[raw(kind)])))

    # The whole block

    def write(self) -> str:
        """The function's text."""
        for instruction in self._body:
            self.instruction(instruction)
        outcome = self._last()
        body = [*self.lines, *self._write_back(), f"return {outcome}"]
        text = "\n    ".join(["pick = g.pick", *body])
        return f"def block_{self.block.index}(m, g, R):\n    {text}\n"

    def refusals(self) -> Iterator[tuple[Instruction, UnsupportedError]]:
        """Every instruction of the block that is not run, and why; `write` stops at the first."""
        for instruction in self.block.body:
            try:
                self.instruction(instruction)
            except UnsupportedError as error:
                yield instruction, error
        try:
            self._last()
        except UnsupportedError as error:
            assert self.block.last is not None
            yield self.block.last, error

    def instruction(self, instruction: Instruction) -> None:
        """Translate one instruction of the body. Raises UnsupportedError."""
        translator = translator_of(instruction.opcode)
        if translator is None:
            raise UnsupportedError(f"{instruction.name} is not emulated")
        if modifier := unknown_modifier(instruction):
            raise UnsupportedError(f"{instruction.name} is not emulated (.{modifier})")
        self.step = self.steps[id(instruction)]
        self.mask = self._mask(instruction)
        if self.mask is not None:
            self.emit(f"m.count_guarded({self.step}, {self.mask})")
        try:
            translator(self, instruction)
        except (KeyError, IndexError, AttributeError, ValueError, AssertionError) as error:
            raise UnsupportedError(f"{instruction.name} is not emulated in this form") from error
        self.mask = None

    def _mask(self, instruction: Instruction) -> str | None:
        guard = instruction.guard
        if guard is None:
            return None
        register = self._register(guard.register, "b1")
        return self.local(f"~{register}") if guard.negated else register

    def _last(self) -> str:
        """The expression that tells the machine where lanes go; None where all go the one way there is."""
        last = self.block.last
        if last is None:
            return "None"
        self.step = self.steps[id(last)]
        mask = self._mask(last)
        match last.opcode:
            case "brx":
                return f"({mask}, {self.value(last.operands[0], 'u4')})"
            case "mbarrier":
                place, asked = last.operands[1:3]
                phase = self.value(asked, "u4" if "parity" in last.modifiers else "u8")
                return f"({mask}, {space_of(last)!r}, {self.address(place)}, {phase})"
            case "barrier" if "cluster" in last.modifiers:
                self.need_cluster()
            case "bar" | "barrier":
                numbers = [self.value(operand, "u4") for operand in self._barrier_operands(last)]
                vote = self.value(last.operands[-1], "b1") if "red" in last.modifiers else None
                return f"({mask}, ({', '.join(numbers)},), {vote})"
        return f"{mask}"

    def _barrier_operands(self, last: Instruction) -> tuple[Operand, ...]:
        return last.operands[1:-1] if "red" in last.modifiers else last.operands

    def _write_back(self) -> list[str]:
        """Statements that put what later blocks read into `R`. An array goes to one register only."""
        whole: list[str] = []
        part: list[str] = []
        owned: set[str] = set()
        for name in sorted(self._held, key=lambda n: self.names.numbers[n]):
            held = self._held[name]
            number, own = self.names.numbers[name], self.names.kinds[name]
            first = next(iter(held.values()))
            if name not in self.block.live_out or name not in self._written:
                continue
            value = held.get(own) or f"{first}.view({self.dtype(own)})"
            copied = first in self._shared or first in owned
            owned.add(first)
            whole.append(f"R[{number}] = {f'own({value})' if copied else value}")
            part.append(f"R[{number}] = g.put(R[{number}], {value})")
        if not whole:
            return []
        return ["if g.at is None:", *(f"    {w}" for w in whole), "else:", *(f"    {p}" for p in part)]
