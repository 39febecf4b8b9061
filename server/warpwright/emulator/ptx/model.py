"""PTX as data: what a module declares and the instructions of its functions, in the order of the text.

Example: `@!%p1 ld.global.v2.f32 {%f1, %f2}, [%rd4+8];` is an `Instruction` with the opcode "ld", the modifiers
("global", "v2", "f32"), the guard `Guard("%p1", negated=True)` and the operands `Vector((Register("%f1"),
Register("%f2")))` and `Address(Register("%rd4"), 8)`.

Source of names and grammar: PTX ISA 9.0, chapters 4 (syntax), 5 (state spaces, types and variables) and 6 (operands).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Place:
    """A position in the source that the compiler read, from `.loc`. `line` and `column` are 1-based; `file` as written.

    `inlined_at` is the call that the compiler inlined this code into, None where it stands in the kernel itself;
    `function` is then the mangled name of the function that was inlined.
    """

    file: str
    line: int
    column: int
    inlined_at: Place | None = None
    function: str = ""


@dataclass(frozen=True, slots=True)
class Register:
    """A register, a predicate or a special register: `%r1`, `%p2`, `%tid.x`. The name `_` is a sink."""

    name: str


@dataclass(frozen=True, slots=True)
class Immediate:
    """A constant. Whole numbers are Python integers, `0f3F800000` and `0d...` are floats; `bits` is the text's pattern.

    `bits` is None for a whole number; for a float it is the 32 or 64 bits that were written, so that a NaN stays what
    it is. `width` is 32 or 64 for a float and 64 for a whole number.
    """

    value: int | float
    bits: int | None = None
    width: int = 64


@dataclass(frozen=True, slots=True)
class Symbol:
    """A variable, a parameter, a function or a label by name, with an offset in bytes.

    `is_generic` is `generic(name)` of an initialiser: its address in the generic space, not in its own.
    """

    name: str
    offset: int = 0
    is_generic: bool = False


@dataclass(frozen=True, slots=True)
class Address:
    """`[base + offset]`; the offset in bytes."""

    base: Register | Symbol | Immediate
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Vector:
    """`{a, b, c, d}`, the parenthesised lists of a call, and `[a, {x, y}]` of textures and tensor copies."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """`%r1|%p1`: two destinations, as of `shfl.sync` and `setp`."""

    first: Register
    second: Register


@dataclass(frozen=True, slots=True)
class Negated:
    """`!%p1` as an operand."""

    operand: Register


Operand = Register | Immediate | Symbol | Address | Vector | Pair | Negated


@dataclass(frozen=True, slots=True)
class Guard:
    """`@%p1` or `@!%p1` before an instruction."""

    register: str
    negated: bool


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. `modifiers` are the parts after the opcode without their dots; a `::` stays inside its part.

    `row` is its 1-based line in the PTX text. `call` operands are as written: results, name, arguments, prototype, each
    a Vector where it stands in parentheses.
    """

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Guard | None
    place: Place | None
    row: int

    @property
    def name(self) -> str:
        """As it is written: `ld.global.v2.f32`."""
        return ".".join((self.opcode, *self.modifiers))


@dataclass(frozen=True, slots=True)
class Label:
    name: str


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable, array or parameter. `space` is "global", "const", "shared", "local", "param", "tex", or "reg".

    `type` is that of an element ("b8", "f32", "texref"). `size` is its whole size in bytes, None for an unsized
    array (`extern .shared .b8 tile[]`) and 0 for an opaque texture, sampler or surface. `initial` holds its first bytes
    where the text gives them (the rest are zero); `relocations` maps a byte offset in it to the symbol whose 8-byte
    address stands there. A parameter of a device function that is a register has the space "reg".
    """

    name: str
    space: str
    type: str
    size: int | None
    align: int
    initial: bytes | None = None
    relocations: Mapping[int, Symbol] | None = None
    is_external: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """A kernel (`.entry`) or a device function (`.func`). A declaration without a body has `body` None.

    `registers` maps each declared register to its type ("pred", "b16", "f32", ...), `%r<3>` spelled out. `variables`
    are declared inside it, at any depth of braces. A name that a nested scope declares anew is made unique by the
    parser: the second `param0` is `param0#1`. `directives` are those between the parameters and the body, as
    `("maxntid", (256, 1, 1))`. `branch_targets` and `call_targets` hold the lists that `brx` and `call` name,
    `prototypes` the (results, parameters) of `.callprototype`.
    """

    name: str
    is_kernel: bool
    parameters: tuple[Variable, ...]
    results: tuple[Variable, ...]
    registers: Mapping[str, str]
    variables: tuple[Variable, ...]
    body: tuple[Instruction | Label, ...] | None
    directives: tuple[tuple[str, tuple[int, ...]], ...] = ()
    branch_targets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    call_targets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    prototypes: Mapping[str, tuple[tuple[Variable, ...], tuple[Variable, ...]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Module:
    """`version` as (9, 0), `target` as "sm_90a". `functions` by name; `aliases` map a name to the function it means."""

    version: tuple[int, int]
    target: str
    address_bits: int
    variables: Mapping[str, Variable]
    functions: Mapping[str, Function]
    aliases: Mapping[str, str]
