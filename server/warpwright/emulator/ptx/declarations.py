"""Variables of PTX: state space, type, size, and the bytes that they start with.

Source: PTX ISA 9.0, chapter 5 "State Spaces, Types, and Variables", 5.4.4 "Initializers".
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from warpwright.emulator.ptx.model import Immediate, Symbol, Variable
from warpwright.emulator.ptx.tokens import Cursor, is_float, is_name, is_number, whole_number
from warpwright.emulator.ptx.types import TYPE_BYTES
from warpwright.syntax.encoding import encoded

SPACES = {".global", ".const", ".shared", ".local", ".param", ".tex"}
VECTORS = {".v2": 2, ".v4": 4, ".v8": 8}
MOST_BYTES = 2**48
MOST_INITIAL_BYTES = 2**28


@dataclass(slots=True)
class Declared:
    """What stands before the names of a declaration: `.align 4 .v2 .f32`."""

    type: str = ""
    align: int = 0
    elements: int = 1


def read_type(cursor: Cursor) -> Declared:
    """Read alignment, attributes, pointer notes and the type, in any order that compilers write."""
    declared = Declared()
    while cursor.peek().startswith("."):
        token = cursor.next()
        if token == ".align":
            declared.align = cursor.whole("an alignment", 2**31)
            if declared.align.bit_count() != 1:
                raise cursor.error(f"{declared.align} is not an alignment: it must be a power of two.")
        elif token == ".attribute":
            skip_parentheses(cursor)
        elif token == ".ptr":
            _skip_pointer(cursor)
        elif token in VECTORS:
            declared.elements = VECTORS[token]
        elif token[1:] in TYPE_BYTES:
            declared.type = token[1:]
        else:
            cursor.at -= 1
            raise cursor.unexpected("a type")
    if not declared.type:
        raise cursor.unexpected("a type")
    return declared


def _skip_pointer(cursor: Cursor) -> None:
    """`.ptr .global .align 4`, what a parameter points to; it promises nothing that running needs."""
    if cursor.peek() in SPACES:
        cursor.at += 1
    if cursor.take(".align"):
        cursor.whole("an alignment")


def skip_parentheses(cursor: Cursor) -> None:
    """Step over a balanced pair of parentheses."""
    cursor.expect("(")
    depth = 1
    while depth:
        depth += {"(": 1, ")": -1}.get(cursor.next(), 0)


def read_variables(cursor: Cursor, space: str, *, is_external: bool = False) -> Iterator[Variable]:
    """The variables of one declaration, after its space: `.align 4 .b8 a[4] = {1, 2}, b;`."""
    declared = read_type(cursor)
    while True:
        yield read_variable(cursor, space, declared, is_external=is_external)
        if not cursor.take(","):
            break
    cursor.expect(";")


def read_variable(cursor: Cursor, space: str, declared: Declared, *, is_external: bool = False) -> Variable:
    """One name with its extents and initialiser."""
    name = cursor.name("a variable's name")
    extents: list[int | None] = []
    while cursor.take("["):
        extents.append(None if cursor.peek() == "]" else cursor.whole("an array's extent"))
        cursor.expect("]")
    element = TYPE_BYTES[declared.type]
    one = element * declared.elements
    align = declared.align or max(one, 1)
    if None in extents[1:]:
        raise cursor.error(f"only the first extent of the array `{name}` may be left out.")
    known = [extent for extent in extents if extent is not None]
    size = math.prod(known) * one
    if size > MOST_BYTES:
        raise cursor.error(f"the variable `{name}` has {size:,} bytes, more than any memory.")
    whole: int | None = size
    initial = relocations = None
    if cursor.take("="):
        inner = ([declared.elements] if declared.elements > 1 else []) if extents else []
        shape = [*known[(0 if None in extents else 1) :], *inner] if extents else []
        values = _Initial(cursor, declared.type, element)
        values.read(shape, is_list=bool(extents) or declared.elements > 1)
        if None in extents:
            row = math.prod(shape) * element
            whole = -(-len(values.data) // row) * row if row else 0
        elif len(values.data) > size:
            raise cursor.error(f"`{name}` has {size:,} bytes, and its initial value has {len(values.data):,}.")
        initial, relocations = bytes(values.data), values.relocations or None
    elif None in extents:
        whole = None
    return Variable(name, space, declared.type, whole, align, initial, relocations, is_external)


@dataclass(slots=True)
class _Initial:
    """The bytes of one initialiser as they are read."""

    cursor: Cursor
    type: str
    element: int
    data: bytearray = field(default_factory=bytearray)
    relocations: dict[int, Symbol] = field(default_factory=dict)

    def read(self, shape: list[int], *, is_list: bool) -> None:
        """Read a value, a string or, where `is_list`, a list. `shape` is the extents of one element of that list."""
        cursor = self.cursor
        if cursor.peek().startswith('"'):
            self._string(cursor.next())
        elif is_list:
            self._list(shape)
        elif cursor.take("{"):
            self._value()
            cursor.expect("}")
        else:
            self._value()

    def _list(self, shape: list[int]) -> None:
        """`{a, b}` or `{{a}, {b, c}}`: an inner list that is shorter than its extent is filled with zeros."""
        cursor = self.cursor
        cursor.expect("{")
        stride = math.prod(shape) * self.element
        while not cursor.take("}"):
            if shape and cursor.peek() == "{":
                start = len(self.data)
                if start + stride > MOST_INITIAL_BYTES:
                    raise cursor.error(f"an initial value has more than {MOST_INITIAL_BYTES:,} bytes.")
                self._list(shape[1:])
                if len(self.data) > start + stride:
                    raise cursor.error("a list of initial values is longer than the array that it fills.")
                self.data.extend(bytes(start + stride - len(self.data)))
            else:
                self._value()
            if not cursor.take(",") and cursor.peek() != "}":
                raise cursor.unexpected("`,` or `}`")

    def _string(self, token: str) -> None:
        if not token.endswith('"') or len(token) < 2:
            raise self.cursor.error("a string is not closed; the text seems to be cut off.")
        self.data.extend(encoded(token[1:-1]))

    def _value(self) -> None:
        cursor = self.cursor
        if is_name(cursor.peek()):
            symbol = self._address()
            if self.element != 8:
                raise cursor.error(
                    f"the address of `{symbol.name}` has 8 bytes, and an element of .{self.type} does not."
                )
            self.relocations[len(self.data)] = symbol
            self.data.extend(bytes(8))
            return
        number = read_number(cursor)
        if cursor.take("("):
            self._masked(number)
            return
        self.data.extend(self._bytes(number))

    def _address(self) -> Symbol:
        """`symbol`, `generic(symbol)`, each with `+ offset`."""
        cursor = self.cursor
        name = cursor.name("a symbol")
        generic = name == "generic" and cursor.take("(")
        if generic:
            name = cursor.name("a symbol")
        offset = read_offset(cursor)
        if generic:
            cursor.expect(")")
            offset += read_offset(cursor)
        return Symbol(name, offset, is_generic=generic)

    def _masked(self, number: Immediate) -> None:
        """`0xFF00(symbol)`: one byte of an address. All eight stand in a row, which makes one relocation."""
        cursor = self.cursor
        symbol = self._address()
        cursor.expect(")")
        which = next((i for i in range(8) if number.value == 0xFF << 8 * i), None)
        if which is None or self.element != 1:
            raise cursor.error("a mask of an address must choose one byte, and fill a byte.")
        start = len(self.data) - which
        if which == 0:
            self.relocations[start] = symbol
        elif self.relocations.get(start) != symbol:
            raise cursor.error(f"byte {which} of the address of `{symbol.name}` stands apart from its other bytes.")
        self.data.append(0)

    def _bytes(self, number: Immediate) -> bytes:
        if self.type in ("f32", "f64") or number.bits is not None:
            if number.bits is not None and number.width // 8 == self.element:
                return number.bits.to_bytes(self.element, "little")
            if self.element in (2, 4, 8) and self.type != "bf16":
                return float_bits(float(number.value), 8 * self.element).to_bytes(self.element, "little")
            raise self.cursor.error(f"a floating-point number is not a value of the type .{self.type}.")
        return (int(number.value) & ((1 << 8 * self.element) - 1)).to_bytes(self.element, "little")


def read_offset(cursor: Cursor) -> int:
    """`+8`, `-8`, `+-8` or nothing after the base of an address, in bytes."""
    if not cursor.take("+") and not cursor.peek().startswith("-"):
        return 0
    number = read_number(cursor)
    if number.bits is not None:
        raise cursor.error("an offset must be a whole number.")
    return int(number.value)


def read_number(cursor: Cursor) -> Immediate:
    """A constant, with its sign."""
    sign = "-" if cursor.take("-") else ""
    token = sign + cursor.peek()
    if not is_number(token):
        raise cursor.unexpected("a number")
    number = immediate(token)
    if number is None:
        raise cursor.error(f"`{token[:40]}` is not a number of at most 64 bits.")
    cursor.at += 1
    return number


def immediate(token: str) -> Immediate | None:
    """The constant that a number's token writes; None for a whole number that 64 bits do not hold.

    >>> immediate("0f3F800000")
    Immediate(value=1.0, bits=1065353216, width=32)
    >>> immediate("-0d3FF0000000000000").value, immediate("-42"), immediate("0x10U").value
    (-1.0, Immediate(value=-42, bits=None, width=64), 16)
    """
    if not is_float(token):
        value = whole_number(token)
        return None if value is None else Immediate(value)
    negative, digits = token.startswith("-"), token.removeprefix("-")
    if digits[1:2].lower() in ("f", "d"):
        width = 32 if digits[1:2].lower() == "f" else 64
        bits = int(digits[2:], 16)
    else:
        width, bits = 64, float_bits(float(digits), 64)
    bits ^= negative << (width - 1)
    value_of = struct.unpack("<f" if width == 32 else "<d", bits.to_bytes(width // 8, "little"))[0]
    return Immediate(value_of, bits, width)


def float_bits(value: float, width: int) -> int:
    """The bits of `value` as a binary floating-point number of 16, 32 or 64 bits; too large a value is infinite.

    >>> hex(float_bits(1.0, 32)), hex(float_bits(1e300, 32))
    ('0x3f800000', '0x7f800000')
    """
    form = {16: "<e", 32: "<f", 64: "<d"}[width]
    try:
        packed = struct.pack(form, value)
    except OverflowError:
        packed = struct.pack(form, math.copysign(math.inf, value))
    return int.from_bytes(packed, "little")
