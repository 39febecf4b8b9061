"""The body of a PTX function: scopes, labels, registers and instructions.

Source: PTX ISA 9.0, chapters 4 "Syntax", 6 "Instruction Operands" and 9.7 for the forms of operands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from warpwright.emulator.ptx.declarations import (
    SPACES,
    read_number,
    read_offset,
    read_type,
    read_variable,
    read_variables,
)
from warpwright.emulator.ptx.model import (
    Address,
    Guard,
    Immediate,
    Instruction,
    Label,
    Negated,
    Operand,
    Pair,
    Place,
    Register,
    Symbol,
    Variable,
    Vector,
)
from warpwright.emulator.ptx.places import Places
from warpwright.emulator.ptx.tokens import Cursor, is_name, is_number

MOST_REGISTERS = 1 << 20
_MOST_NESTING = 8  # of braces in an operand; a vector in an address in a vector is the deepest that PTX has
_OPCODE = re.compile(r"[a-z][a-z0-9_]*(?:\.[\w:]+)*", re.ASCII)
_SPECIAL = re.compile(
    r"""%(?:
        (?:tid|ntid|ctaid|nctaid|clusterid|nclusterid|cluster_ctaid|cluster_nctaid)(?:\.[xyzw])?
      | laneid | warpid | nwarpid | smid | nsmid | gridid | is_explicit_cluster | cluster_ctarank | cluster_nctarank
      | lanemask_(?:eq|le|lt|ge|gt) | clock | clock_hi | clock64 | globaltimer | globaltimer_lo | globaltimer_hi
      | pm[0-7] | pm[0-7]_64 | envreg(?:[12]?[0-9]|3[01]) | total_smem_size | aggr_smem_size | dynamic_smem_size
      | reserved_smem_offset_(?:begin|end|cap|[01]) | current_graph_exec
    )""",
    re.VERBOSE | re.ASCII,
)
_PARTS = {"x": 0, "r": 0, "y": 1, "g": 1, "z": 2, "b": 2, "w": 3, "a": 3}
_VIDEO_PART = re.compile(r"[bh][0-3]+")


@dataclass(slots=True)
class _Scope:
    """One pair of braces: where it begins in the body, what it hides of the scopes around it, and its labels."""

    start: int = 0
    hidden: list[tuple[str, Operand | None]] = field(default_factory=list)
    declared: set[str] = field(default_factory=set)
    labels: dict[str, str] = field(default_factory=dict)
    targets: list[str] = field(default_factory=list)


class Body:
    """Reads one body. What it found is in its public fields; they are as `model.Function` describes them."""

    def __init__(self, cursor: Cursor, places: Places, function: str, parameters: Iterable[Variable]) -> None:
        self.registers: dict[str, str] = {}
        self.variables: list[Variable] = []
        self.items: list[Instruction | Label] = []
        self.branch_targets: dict[str, tuple[str, ...]] = {}
        self.call_targets: dict[str, tuple[str, ...]] = {}
        self._cursor = cursor
        self._places = places
        self._place: Place | None = None
        self._function = function
        # What a token means where the cursor is: registers and variables in scope, and constants met before.
        self._names: dict[str, Operand] = {"_": Register("_"), "WARP_SZ": Immediate(32)}
        self._opcodes: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._scopes = [_Scope()]
        self._taken: set[str] = set()
        self._copies = 0
        self.prototypes: dict[str, tuple[tuple[Variable, ...], tuple[Variable, ...]]] = {}
        for variable in parameters:
            if variable.space == "reg":
                self._declare_register(variable.name, variable.type)
            else:
                self._declare(variable.name, Symbol)

    def read(self) -> None:
        """Read from after the `{` to behind its `}`."""
        cursor, tokens, scopes = self._cursor, self._cursor.tokens, self._scopes
        self._places.start_function()
        while scopes:
            token = tokens[cursor.at]
            if not token:
                raise cursor.error(f"the text ends inside the function `{self._function}`; it is cut off.")
            first = token[0]
            if token == ".loc":
                cursor.at += 1
                self._place = self._places.read(cursor)
            elif first == ".":
                self._directive()
            elif first == "{":
                cursor.at += 1
                scopes.append(_Scope(start=len(self.items)))
            elif first == "}":
                cursor.at += 1
                self._close(scopes.pop())
            elif tokens[cursor.at + 1] == ":" and first != "@":
                self._label()
            else:
                self._instruction()

    # Declarations

    def _directive(self) -> None:
        cursor = self._cursor
        token = cursor.next()
        external = token == ".extern"
        if external:
            token = cursor.next()
        if token == ".reg":
            self._register_declaration()
        elif token in SPACES:
            for variable in read_variables(cursor, token[1:], is_external=external):
                self.variables.append(replace(variable, name=self._declare(variable.name, Symbol)))
        elif token == ".pragma":
            while cursor.next() != ";":
                continue
        else:
            cursor.at -= 1
            raise cursor.unexpected("an instruction or a declaration")

    def _register_declaration(self) -> None:
        """`.reg .b32 %r<37>;`, `.reg .pred p, q;`, `.reg .v4 .f32 v;`, which are four registers `v.x` to `v.w`."""
        cursor = self._cursor
        declared = read_type(cursor)
        if declared.elements > 4:
            raise cursor.error("a vector has at most four registers.")
        while True:
            name = cursor.name("a register's name")
            names = [name]
            if cursor.take("<"):
                count = cursor.whole("a number of registers", MOST_REGISTERS)
                cursor.expect(">")
                names = [f"{name}{i}" for i in range(count)]
            if len(self.registers) + len(names) * declared.elements > MOST_REGISTERS:
                raise cursor.error(f"`{self._function}` has more than {MOST_REGISTERS:,} registers.")
            for each in names:
                self._declare_register(each, declared.type, declared.elements)
            if not cursor.take(","):
                break
        cursor.expect(";")

    def _declare_register(self, name: str, kind: str, elements: int = 1) -> None:
        unique = self._declare(name, Register)
        if elements == 1:
            self.registers[unique] = kind
            return
        parts = [Register(f"{unique}.{part}") for part in "xyzw"[:elements]]
        self.registers.update((part.name, kind) for part in parts)
        self._names[name] = Vector(tuple(parts))

    def _declare(self, name: str, make: type[Register] | type[Symbol]) -> str:
        """Bring a name into the innermost scope; returns it, or a copy that no other scope of the function uses."""
        scope = self._scopes[-1]
        if name in scope.declared:
            raise self._cursor.error(f"`{name}` is declared twice.")
        unique = name
        if name in self._taken:
            self._copies += 1
            unique = f"{name}#{self._copies}"
        self._taken.add(name)
        scope.declared.add(name)
        scope.hidden.append((name, self._names.get(name)))
        self._names[name] = make(unique)
        return unique

    def _close(self, scope: _Scope) -> None:
        """Leave a scope: its names mean again what they meant before, and its labels become unique."""
        for name, before in reversed(scope.hidden):
            if before is None:
                self._names.pop(name, None)
            else:
                self._names[name] = before
        if self._scopes and scope.labels:
            self.items[scope.start :] = [_renamed(item, scope.labels) for item in self.items[scope.start :]]
            for name in scope.targets:
                targets = self.branch_targets.pop(name)
                self.branch_targets[scope.labels[name]] = tuple(scope.labels.get(label, label) for label in targets)

    def _label(self) -> None:
        """`L:`, or a list of targets or a prototype that a label names."""
        cursor = self._cursor
        name = cursor.name("a label")
        cursor.expect(":")
        scope = self._scopes[-1]
        if name in scope.labels:
            raise cursor.error(f"the label `{name}` stands twice.")
        self._copies += len(self._scopes) > 1
        scope.labels[name] = name if len(self._scopes) == 1 else f"{name}#{self._copies}"
        directive = cursor.peek()
        if directive == ".branchtargets":
            self.branch_targets[name] = self._name_list()
            scope.targets.append(name)
        elif directive == ".calltargets":
            self.call_targets[scope.labels[name]] = self._name_list()
        elif directive == ".callprototype":
            cursor.at += 1
            self.prototypes[scope.labels[name]] = read_prototype(cursor)
        else:
            self.items.append(Label(name))

    def _name_list(self) -> tuple[str, ...]:
        """The names after `.branchtargets` or `.calltargets`."""
        cursor = self._cursor
        cursor.at += 1
        names = [cursor.name("a target")]
        while cursor.take(","):
            names.append(cursor.name("a target"))
        cursor.expect(";")
        return tuple(names)

    # Instructions

    def _instruction(self) -> None:
        cursor, tokens, names = self._cursor, self._cursor.tokens, self._names
        row = cursor.rows[cursor.at]
        guard = self._guard() if tokens[cursor.at] == "@" else None
        token = tokens[cursor.at]
        opcode = self._opcodes.get(token)
        if opcode is None:
            if not _OPCODE.fullmatch(token):
                raise cursor.unexpected("an instruction")
            head, *modifiers = token.split(".")
            opcode = self._opcodes[token] = head, tuple(modifiers)
        at = cursor.at + 1
        while tokens[at].startswith("."):
            opcode = opcode[0], (*opcode[1], tokens[at][1:])
            at += 1
        operands: list[Operand] = []
        while (token := tokens[at]) != ";":
            operand = names.get(token)
            if operand is not None and tokens[at + 1] in (",", ";"):
                at += 1
            else:
                cursor.at = at
                operand = self._operand(0)
                at = cursor.at
            operands.append(operand)
            if tokens[at] == ",":
                at += 1
                if tokens[at] == ";":
                    cursor.at = at
                    raise cursor.unexpected("an operand")
            elif tokens[at] != ";":
                cursor.at = at
                raise cursor.unexpected("`,` or `;`")
        cursor.at = at + 1
        self.items.append(Instruction(opcode[0], opcode[1], tuple(operands), guard, self._place, row))

    def _guard(self) -> Guard:
        cursor = self._cursor
        cursor.expect("@")
        negated = cursor.take("!")
        operand = self._named(cursor.name("a predicate"))
        if not isinstance(operand, Register):
            cursor.at -= 1
            raise cursor.unexpected("a predicate")
        return Guard(operand.name, negated)

    def _operand(self, depth: int) -> Operand:
        cursor = self._cursor
        token = cursor.peek()
        if depth > _MOST_NESTING:
            raise cursor.error("an operand nests braces deeper than PTX allows.")
        if is_name(token):
            cursor.at += 1
            return self._after_name(self._named(token))
        if token in ("{", "("):
            cursor.at += 1
            return self._list("}" if token == "{" else ")", depth)
        if token == "[":
            cursor.at += 1
            return self._address(depth)
        if token == "!":
            cursor.at += 1
            operand = self._operand(_MOST_NESTING)
            if not isinstance(operand, Register):
                cursor.at -= 1
                raise cursor.unexpected("a predicate after `!`")
            return Negated(operand)
        return self._number()

    def _after_name(self, operand: Operand) -> Operand:
        """What may follow a name: the second destination of `%p1|%p2`, the offset of `symbol+8`."""
        cursor = self._cursor
        if isinstance(operand, Register) and cursor.take("|"):
            second = self._named(cursor.name("a register"))
            if not isinstance(second, Register):
                cursor.at -= 1
                raise cursor.unexpected("a register")
            return Pair(operand, second)
        if isinstance(operand, Symbol) and (offset := read_offset(cursor)):
            return Symbol(operand.name, operand.offset + offset)
        return operand

    def _list(self, end: str, depth: int) -> Vector:
        cursor = self._cursor
        items: list[Operand] = []
        if cursor.take(end):
            return Vector(())
        while True:
            items.append(self._operand(depth + 1))
            if cursor.take(end):
                return Vector(tuple(items))
            cursor.expect(",")

    def _address(self, depth: int) -> Operand:
        """`[%rd1+8]`, `[symbol]`, `[0x40]`; `[a, {x, y}]` is a Vector of the address and the coordinates."""
        cursor = self._cursor
        token = cursor.peek()
        base = self._named(cursor.next()) if is_name(token) else self._number()
        if isinstance(base, Immediate):
            if base.bits is not None:
                raise cursor.error("an address must be a whole number.")
        elif not isinstance(base, Register | Symbol):
            cursor.at -= 1
            raise cursor.unexpected("an address")
        address = Address(base, read_offset(cursor))
        if cursor.take("]"):
            return address
        items: list[Operand] = [address]
        while cursor.take(","):
            items.append(self._operand(depth + 1))
        cursor.expect("]")
        if len(items) == 1:
            raise cursor.unexpected("`]`")
        return Vector(tuple(items))

    def _number(self) -> Immediate:
        """A constant, kept for the next time that it stands so."""
        cursor = self._cursor
        token = cursor.peek()
        if token != "-" and not is_number(token):
            raise cursor.unexpected("an operand")
        number = read_number(cursor)
        if token != "-":
            self._names[token] = number
        return number

    def _named(self, name: str) -> Operand:
        """What a name means here. One that starts with `%` is a register, and must have been declared or be special."""
        operand = self._names.get(name)
        if operand is not None:
            return operand
        base, _, part = name.rpartition(".")
        whole = self._names.get(base)
        if isinstance(whole, Vector) and _PARTS.get(part, 4) < len(whole.items):
            return whole.items[_PARTS[part]]
        if isinstance(whole, Register) and _VIDEO_PART.fullmatch(part):
            return Register(f"{whole.name}.{part}")
        if _SPECIAL.fullmatch(name):
            operand = Register(name)
        elif name.startswith("%"):
            self._cursor.at -= 1
            raise self._cursor.error(f"the register `{name}` is not declared.")
        else:
            operand = Symbol(name)
        self._names[name] = operand
        return operand


def read_prototype(cursor: Cursor) -> tuple[tuple[Variable, ...], tuple[Variable, ...]]:
    """The rest of `.callprototype (.param .b32 _) _ (.param .b64 _) .noreturn;`: results and parameters."""
    results = read_parameters(cursor)
    cursor.expect("_")
    parameters = read_parameters(cursor)
    while not cursor.take(";"):
        cursor.next()
    return results, parameters


def read_parameters(cursor: Cursor) -> tuple[Variable, ...]:
    """`(.param .u64 a, .param .align 8 .b8 b[24])`, or nothing. In a device function a parameter may be a register."""
    found: list[Variable] = []
    if not cursor.take("(") or cursor.take(")"):
        return ()
    while True:
        space = cursor.next()
        if space not in (".param", ".reg"):
            cursor.at -= 1
            raise cursor.unexpected("`.param`")
        found.append(read_variable(cursor, space[1:], read_type(cursor)))
        if cursor.take(")"):
            return tuple(found)
        cursor.expect(",")


def _renamed(item: Instruction | Label, names: dict[str, str]) -> Instruction | Label:
    """An item of a scope that is left, with the labels of that scope made unique."""
    if isinstance(item, Label):
        return Label(names[item.name]) if item.name in names else item
    if not any(isinstance(operand, Symbol) and operand.name in names for operand in item.operands):
        return item
    operands = (
        replace(operand, name=names.get(operand.name, operand.name)) if isinstance(operand, Symbol) else operand
        for operand in item.operands
    )
    return replace(item, operands=tuple(operands))
