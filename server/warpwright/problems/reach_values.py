"""The values of a kernel's variables as ranges, and what each access of an array reaches with them.

The kernel is read once, all threads together: a value is every value that any thread gives it. Names in a bound are
the kernel's scalar parameters (`n`, `p.n`), gridDim, blockDim, and `#idx`, the end of what the array idx holds.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from warpwright.facts import ir
from warpwright.facts.lower import Lowerer
from warpwright.facts.types import UNKNOWN_TYPE, CType
from warpwright.facts.unit import FunctionText, Unit
from warpwright.problems import ranges
from warpwright.problems.expressions import Call, Expression, Name, Number
from warpwright.problems.ranges import ONE, UNBOUNDED, ZERO, Range, point

MOST_NODES = 150_000
"""Expressions and statements that are read of one kernel, in every pass and call of it."""
MAX_CALL_DEPTH = 10


class TooLongError(Exception):
    """The kernel has more to read than is worth it."""


@dataclass(slots=True)
class Memory:
    """An array: what is done with it, how far, and what the kernel itself puts in. `element` is one that is counted."""

    name: str
    element: CType
    high: Expression | None = None
    unbounded: bool = False
    loaded: bool = False
    stored: bool = False
    changed: bool = False  # by an atomic
    counted: bool = False  # by an atomic whose result is used
    escapes: bool = False  # its pointer goes where it is not followed
    limited: bool = False  # its values are used as whole numbers
    count: int | None = None  # elements of an array that the kernel declares
    contents: Range | None = None  # what the kernel stores in it

    def reach(self, high: Expression | None) -> None:
        if high is None:
            self.unbounded = True
        elif self.high is None:
            self.high = high
        else:
            self.high = ranges.largest(self.high, high)
            self.unbounded = self.unbounded or self.high is None


@dataclass(frozen=True, slots=True)
class Pointer:
    """Into `memory`, `offset` of its elements from its start, at objects of the type `to`."""

    memory: str
    offset: Range
    to: CType


@dataclass(frozen=True, slots=True)
class Pointers:
    targets: tuple[Pointer, ...]


Key = tuple[int, int, str]
"""A variable: the call that it is of, its slot, and the member of it, such as ".x"."""


@dataclass(frozen=True, slots=True)
class Local:
    """The address of a variable of the thread."""

    key: Key


@dataclass(frozen=True, slots=True)
class Struct:
    """A value with members."""

    members: tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class Group:
    """A cooperative group; `size` is None for a whole block or grid."""

    grid: bool
    size: int | None = None


Value = Range | Pointers | Local | Struct | Group
Environment = dict[Key | str, Value]
"""Variables, and by their text expressions that a condition bounds."""


@dataclass(slots=True)
class Coverage:
    """What the conditions of a kernel say about the size of its grid: by axis, the threads or blocks with work."""

    threads: dict[str, Expression] = field(default_factory=lambda: {})
    blocks: dict[str, Expression] = field(default_factory=lambda: {})


@dataclass(frozen=True, slots=True)
class Target:
    """An object in memory that an expression names."""

    pointers: tuple[Pointer, ...]
    kind: CType


class ValueReader(ABC):
    """Expressions. `bindings` are the kernel's parameters by name, whole numbers and arrays."""

    def __init__(self, unit: Unit, parameters: Mapping[str, Expression]) -> None:
        self.unit = unit
        self.parameters = parameters
        self.memories: dict[str, Memory] = {}
        self.globals: dict[str, CType] = {}
        self.environment: Environment | None = {}
        self.aliases: dict[Key, Value] = {}
        self.kinds: dict[Key, CType] = {}  # structs that the kernel is passed
        self.recording = True
        self.widening = False  # what the kernel stores still grows: as `count[i] += 1` does, without an end
        self.frame = 0
        self.frames = 0
        self.depth = 0
        self.nodes = 0
        self.coverage = Coverage()
        self.lowered: dict[tuple[int, str], ir.Function] = {}
        self.calling: list[int] = []
        self.written: set[tuple[int, int]] = set()  # variables that are assigned to

    # Places ---------------------------------------------------------------------------------------------------------

    def place(self, node: ir.Expr) -> Key | Target | None:
        """What an expression names: a variable of the thread or an object in memory."""
        match node:
            case ir.Var(slot=slot):
                key = (self.frame, slot, "")
                known = self.aliases.get(key)
                return known.key if isinstance(known, Local) else self.target_of(known) or key
            case ir.Member(base=base, field=name, arrow=arrow):
                return self._member(self._deref(base) if arrow else self.place(base), name)
            case ir.Deref(pointer=inner):
                return self._deref(inner)
            case ir.Index(base=base, index=index):
                if (view := self.place(base)) in self.kinds:  # by its `operator[]`
                    return self._named_by(
                        self.call(ir.Call(node.span, "operator[]", [index], target=base), address=True)
                    )
                return self._indexed(self.value(base), self.value(index), view)
            case ir.Cast(operand=operand):
                return self.place(operand)
            case ir.Global(name=name):
                return self._global(name)
            case ir.Call():  # `at(i, j) = 1`, by a reference that it returns
                return self._named_by(self.call(node, address=True))
            case ir.Conditional():
                return self._named_by(self.value(ir.AddressOf(node.span, node)))
        return None

    def _named_by(self, address: Value) -> Key | Target | None:
        return address.key if isinstance(address, Local) else self.target_of(address)

    def _member(self, place: Key | Target | None, name: str) -> Key | Target | None:
        if isinstance(place, Target):
            found = place.kind.member(name)
            return Target(place.pointers, found[1] if found else UNKNOWN_TYPE)
        return (place[0], place[1], f"{place[2]}.{name}") if place is not None else None

    def _deref(self, node: ir.Expr) -> Key | Target | None:
        return self._named_by(self.value(node))

    @staticmethod
    def target_of(value: Value | None) -> Target | None:
        return Target(value.targets, value.targets[0].to) if isinstance(value, Pointers) and value.targets else None

    def _indexed(self, base: Value, index: Value, place: Key | Target | None) -> Key | Target | None:
        if isinstance(base, Pointers):
            return self.target_of(self.moved(base, index if isinstance(index, Range) else UNBOUNDED))
        if isinstance(base, Local):
            return (*base.key[:2], base.key[2] if base.key[2].endswith("[]") else f"{base.key[2]}[]")
        if isinstance(place, Target) and place.kind.kind == "array" and place.kind.to is not None:
            return Target(place.pointers, place.kind.to)
        return (place[0], place[1], f"{place[2]}[]") if isinstance(place, tuple) else None

    def moved(self, base: Pointers, by: Range) -> Pointers:
        out: list[Pointer] = []
        for target in base.targets:
            step, unit = target.to.size, self.memories[target.memory].element.size
            if step is None or unit is None:
                offset = UNBOUNDED
            elif step >= unit:
                offset = ranges.add(target.offset, ranges.multiply(by, point(Number(step // unit))))
            else:
                offset = ranges.add(target.offset, ranges.divide(by, point(Number(unit // step))))
            out.append(Pointer(target.memory, offset, target.to))
        return Pointers(tuple(out))

    def _global(self, name: str) -> Target | None:
        variable = self.unit.variables.get(name)
        if variable is None or variable.space not in ("constant", "global"):
            return None
        kind = self.globals.get(name)
        if kind is None:
            lowerer = Lowerer(self.unit, variable.source)
            inner = variable.declarator
            if inner.type == "init_declarator":
                inner = inner.child_by_field_name("declarator") or inner
            kind = lowerer.declared(lowerer.type_of(variable.declaration.child_by_field_name("type")), inner)[0]
            self.globals[name] = kind
        element = kind
        while element.kind == "array" and element.to is not None:
            element = element.to
        self.memories.setdefault(f"::{name}", Memory(f"::{name}", element))
        return Target((Pointer(f"::{name}", point(ZERO), kind),), kind)

    # Memory ---------------------------------------------------------------------------------------------------------

    def load(self, target: Target) -> Value:
        if target.kind.kind == "array" and target.kind.to is not None:  # its name is its first element's address
            return Pointers(tuple(Pointer(p.memory, p.offset, target.kind.to or UNKNOWN_TYPE) for p in target.pointers))
        found: Range | None = None
        for pointer in target.pointers:
            memory = self._touch(pointer, target.kind)
            memory.loaded = memory.loaded or self.recording
            value = self._contents(memory, target.kind)
            found = value if found is None else ranges.join(found, value)
        return found or UNBOUNDED

    def _contents(self, memory: Memory, kind: CType) -> Range:
        if not kind.is_integer:
            return UNBOUNDED
        if memory.name.startswith(("shared ", "local ")):
            return memory.contents or point(ZERO)  # what is stored there later, the next pass sees
        memory.limited = True
        limit = Range(ZERO, ranges.combine("-", Name(f"#{memory.name}"), ONE))
        if kind.size == 1 and limit.high is not None:
            return Range(ZERO, Call("min", (Number(255 if kind.kind == "uint" else 127), limit.high)))
        return ranges.join(limit, memory.contents) if memory.contents is not None else limit

    def store(self, target: Target, value: Value, atomic: bool = False) -> None:
        for pointer in target.pointers:
            memory = self._touch(pointer, target.kind)
            if self.recording:
                memory.stored = memory.stored or not atomic
                memory.changed = memory.changed or atomic
            if target.kind.is_integer or not isinstance(value, Range):
                given = value if isinstance(value, Range) and not atomic else UNBOUNDED
                together = given if memory.contents is None else ranges.join(memory.contents, given)
                memory.contents = UNBOUNDED if self.widening and together != memory.contents else together

    def _touch(self, pointer: Pointer, kind: CType) -> Memory:
        memory = self.memories[pointer.memory]
        if self.recording:
            unit = memory.element.size
            size = kind.size if kind.size is not None else pointer.to.size
            if unit is None or size is None or pointer.offset.high is None:
                memory.reach(None)
            else:
                memory.reach(ranges.short(ranges.normal(ranges.combine("+", pointer.offset.high,
                    Number(max(1, -(-max(size, pointer.to.size or 0) // unit)))) or ZERO)))  # fmt: skip
        return memory

    def escape(self, value: Value) -> None:
        """An address that goes where it is not followed."""
        if isinstance(value, Pointers) and self.recording:
            for target in value.targets:
                memory = self.memories[target.memory]
                memory.escapes = True
                memory.contents = UNBOUNDED
        elif isinstance(value, Local):
            self.forget(value.key)
        elif isinstance(value, Struct):
            for _, member in value.members:
                self.escape(member)

    def escape_everything(self) -> None:
        """Code that is not read may do anything with every address that a variable holds."""
        for value in list((self.environment or {}).values()):
            if isinstance(value, (Pointers, Struct)):
                self.escape(value)

    def forget(self, key: Key) -> None:
        for other in self._parts(key):
            self._set(other, UNBOUNDED)
        self._set(key, UNBOUNDED)

    def _parts(self, key: Key) -> list[Key]:
        environment = self.environment or {}
        return [k for k in environment if isinstance(k, tuple) and k[:2] == key[:2] and k[2].startswith(f"{key[2]}.")]

    def _set(self, key: Key, value: Value) -> None:
        self.written.add(key[:2])
        if self.environment is not None:
            self.environment[key] = value

    def assign(self, place: Key | Target | None, value: Value, name: str = "") -> None:
        """Store a value; what conditions said of expressions with `name` in them no longer holds."""
        if isinstance(place, Target):
            self.store(place, value)
            return
        if place is None or self.environment is None:
            return
        self.written.add(place[:2])
        if name:
            word = re.compile(rf"\b{re.escape(name)}\b")
            for text in [k for k in self.environment if isinstance(k, str) and word.search(k)]:
                del self.environment[text]
        if place[2].endswith("[]"):  # one of many elements
            before = self.environment.get(place)
            self.environment[place] = value if before is None else joined(before, value)
        elif isinstance(value, Struct):
            for member, part in value.members:
                self.environment[place[0], place[1], f"{place[2]}{member}"] = part
        else:
            for key in self._parts(place):
                del self.environment[key]
            self.environment[place] = value

    def read(self, place: Key | Target | None) -> Value:
        if isinstance(place, Target):
            return self.load(place)
        if place is None or self.environment is None:
            return UNBOUNDED
        found = self.environment.get(place)
        if found is not None:
            return found
        parts = self._parts(place)
        if parts:
            return Struct(tuple((k[2][len(place[2]) :], self.environment[k]) for k in parts))
        if (*place[:2], f"{place[2]}[]") in self.environment:
            return Local(place)
        return UNBOUNDED

    # Values ---------------------------------------------------------------------------------------------------------

    def number(self, node: ir.Expr) -> Range:
        value = self.value(node)
        return value if isinstance(value, Range) else UNBOUNDED

    def value(self, node: ir.Expr) -> Value:
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise TooLongError
        value = self._value(node)
        if isinstance(value, Range) and isinstance(node, ir.Binary) and self.environment is not None:
            bound = self.environment.get(spelled(node))
            if isinstance(bound, Range):
                value = Range(value.low, bound.high if value.high is None else met(value.high, bound.high))
        return value

    def _value(self, node: ir.Expr) -> Value:
        match node:
            case ir.Const(value=int() as number):
                return point(Number(number))
            case ir.Special(name=name, axis=int() as axis):
                bound = (self.environment or {}).get(f"{name}.{'xyz'[axis]}")
                return bound if isinstance(bound, Range) else builtin(name, "xyz"[axis])
            case ir.Var() | ir.Member() | ir.Deref() | ir.Index() | ir.Global():
                return self.read(self.place(node))
            case ir.Unary(op=op, operand=operand):
                inner = self.number(operand)
                if op == "-":
                    return ranges.subtract(point(ZERO), inner)
                return inner if op == "+" else Range(ZERO, ONE) if op == "!" else UNBOUNDED
            case ir.Binary(op=op, left=left, right=right):
                return self.binary(op, self.value(left), self.value(right))
            case ir.Logical(left=left, right=right):
                self.value(left)
                before = dict(self.environment or {})
                self.assume(left, node.op == "&&")
                self.value(right)
                self.environment = before if self.environment is not None else None
                return Range(ZERO, ONE)
            case ir.Conditional(condition=condition, then=then, otherwise=otherwise):
                self.value(condition)
                values: list[Value] = []
                for side, holds in ((then, True), (otherwise, False)):
                    before = dict(self.environment or {})
                    self.assume(condition, holds)
                    values.append(self.value(side))
                    self.environment = before if self.environment is not None else None
                return joined(*values)
            case ir.Assign(op=op, target=target, value=given):
                stored = self.value(given)
                if op:
                    stored = self.binary(op, self.value(target), stored)
                self.assign(self.place(target), stored, name_of(target))
                return stored
            case ir.Update(op=op, target=target, prefix=prefix):
                before_update = self.value(target)
                after = self.binary(op[0], before_update, point(ONE))
                self.assign(self.place(target), after, name_of(target))
                return after if prefix else before_update
            case ir.Comma(left=left, right=right):
                self.value(left)
                return self.value(right)
            case ir.AddressOf(target=target):
                if isinstance(target, ir.Conditional):
                    self.value(target.condition)
                    return joined(self.address(target.then), self.address(target.otherwise))
                return self.address(target)
            case ir.Cast(type=kind, operand=operand):
                return cast(self.value(operand), kind)
            case ir.Construct(type=kind, arguments=arguments):
                given_values = [self.value(a) for a in arguments]
                names = [f".{name}" for name, _, _ in kind.fields] if kind is not None else []
                if len(names) >= len(given_values) > 0 and kind is not None and kind.kind == "struct":
                    return Struct(tuple(zip(names, given_values, strict=False)))
                for given_value in given_values:
                    self.escape(given_value)
                return joined(*given_values) if given_values and kind is None else UNBOUNDED
            case ir.Call():
                return self.call(node)
            case ir.Opaque(parts=parts):
                for part in parts:
                    self.escape(self.value(part))
                if not parts and "asm" in node.span.code:
                    self.escape_everything()
            case ir.Lambda():
                self.escape_everything()
        return UNBOUNDED

    def address(self, node: ir.Expr) -> Value:
        """The address of what an expression names; what is not followed escapes."""
        place = self.place(node)
        if isinstance(place, Target):
            return Pointers(tuple(Pointer(p.memory, p.offset, place.kind) for p in place.pointers))
        if place is None:
            self.escape(self.value(node))
            return UNBOUNDED
        return Local(place)

    def binary(self, op: str, left: Value, right: Value) -> Value:
        if isinstance(left, Pointers) and isinstance(right, Range) and op in ("+", "-"):
            return self.moved(left, right if op == "+" else ranges.subtract(point(ZERO), right))
        if isinstance(right, Pointers) and isinstance(left, Range) and op == "+":
            return self.moved(right, left)
        if isinstance(left, Local) and op in ("+", "-"):
            return left
        if not isinstance(left, Range) or not isinstance(right, Range):
            return UNBOUNDED
        if op in ("==", "!=", "<", "<=", ">", ">="):
            return Range(ZERO, ONE)
        operation = {"+": ranges.add, "-": ranges.subtract, "*": ranges.multiply, "/": ranges.divide,
            "%": ranges.modulo, "&": ranges.masked, "|": ranges.either, "^": ranges.either}.get(op)  # fmt: skip
        if operation is not None:
            return operation(left, right)
        return ranges.shift(op, left, right) if op in ("<<", ">>") else UNBOUNDED

    # Conditions -----------------------------------------------------------------------------------------------------

    def assume(self, condition: ir.Expr, holds: bool) -> None:
        """Take a condition to be true, or false, from here on."""
        match condition:
            case ir.Cast(operand=operand):
                self.assume(operand, holds)
            case ir.Unary(op="!", operand=operand):
                self.assume(operand, not holds)
            case ir.Logical(op=op, left=left, right=right) if (op == "&&") == holds:
                self.assume(left, holds)
                self.assume(right, holds)
            case ir.Binary(op=op, left=left, right=right) if op in _NEGATED:
                recording, self.recording = self.recording, False
                sign = op if holds else _NEGATED[op]
                one, other = self.value(left), self.value(right)
                if isinstance(one, Range) and isinstance(other, Range):
                    self._bound(left, sign, other)
                    self._bound(right, _TURNED[sign], one)
                self.recording = recording

    def _bound(self, node: ir.Expr, sign: str, limit: Range) -> None:
        """`node sign limit` holds."""
        high = low = None
        if sign in ("<", "<=", "=="):
            high = limit.high if sign != "<" else ranges.combine("-", limit.high, ONE)
        if sign in (">", ">=", "=="):
            low = limit.low if sign != ">" else ranges.combine("+", limit.low, ONE)
        if high is not None or low is not None:
            self._narrow(node, low, high)

    def _narrow(self, node: ir.Expr, low: Expression | None, high: Expression | None) -> None:
        if self.environment is None:
            return
        value = self.value(node)
        if not isinstance(value, Range) or value.is_point:
            return
        if high is not None:
            self._cover(value, high)
        match node:
            case ir.Cast(operand=operand):
                self._narrow(operand, low, high)
            case ir.Var() | ir.Member():
                place = self.place(node)
                if isinstance(place, tuple):
                    self.environment[place] = Range(
                        low if low is not None and not _not_below(value.low, low) else value.low,
                        value.high if high is None else met(value.high, high),
                    )
            case ir.Special(name=name, axis=int() as axis):
                self.environment[f"{name}.{'xyz'[axis]}"] = Range(value.low, met(value.high, high))
            case ir.Binary(op=op, left=left, right=right):
                if high is not None and (text := spelled(node)):
                    self.environment[text] = Range(None, high)
                if op == "+":
                    one, other = self.number(left), self.number(right)
                    self._narrow(left, _moved(low, other.high), _moved(high, other.low))
                    self._narrow(right, _moved(low, one.high), _moved(high, one.low))
                elif op == "-" and self.number(right).is_point:
                    by = self.number(right).low
                    self._narrow(left, ranges.combine("+", low, by), ranges.combine("+", high, by))
                elif op == "*" and self.number(right).is_point:
                    self._narrow(left, None, ranges.combine("/", high, self.number(right).low))
                elif op == "*" and self.number(left).is_point:
                    self._narrow(right, None, ranges.combine("/", high, self.number(left).low))

    def _cover(self, value: Range, high: Expression) -> None:
        """A condition on the number of a thread or block in the grid says how many of them have work."""
        ending = ranges.combine("+", high, ONE)
        if ending is None or value.high is None:
            return
        for axis in "xyz":
            blocks, threads = Name(f"gridDim.{axis}"), Name(f"blockDim.{axis}")
            if value.high == ranges.combine("-", ranges.combine("*", blocks, threads), ONE):
                self.coverage.threads.setdefault(axis, ending)
            elif value.high == ranges.combine("-", blocks, ONE):
                self.coverage.blocks.setdefault(axis, ending)

    # Calls ----------------------------------------------------------------------------------------------------------

    @abstractmethod
    def call(self, node: ir.Call, address: bool = False) -> Value:
        """What a call returns; with `address`, the address of it where that is a reference."""

    def function(self, text: FunctionText, bindings: dict[str, CType | int], this: CType | None = None) -> ir.Function:
        named = sorted((k, v if isinstance(v, int) else v.name) for k, v in bindings.items())
        key = (text.node.id, repr((named, this.name if this else "")))
        if key not in self.lowered:
            self.lowered[key] = Lowerer(self.unit, text.source, bindings).function(text, this)
        return self.lowered[key]


_NEGATED = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}


def met(old: Expression | None, new: Expression | None) -> Expression | None:
    """Of two upper bounds the smaller; where that does not show the newer, which is what a guard says."""
    if old is None or new is None:
        return new if old is None else old
    return old if ranges.never_less(new, old) else new


def _moved(bound: Expression | None, by: Expression | None) -> Expression | None:
    return ranges.combine("-", bound, by)


def _not_below(low: Expression | None, bound: Expression) -> bool:
    return low is not None and ranges.never_less(low, bound)


def builtin(name: str, axis: str) -> Range:
    if name in ("threadIdx", "blockIdx"):
        size = Name(f"{'blockDim' if name == 'threadIdx' else 'gridDim'}.{axis}")
        return Range(ZERO, ranges.combine("-", size, ONE))
    return point(Name(f"{name}.{axis}"))


def cast(value: Value, kind: CType) -> Value:
    """A value as another type: a pointer's target changes, a number is taken to fit."""
    if isinstance(value, Pointers) and kind.kind == "pointer":
        return Pointers(tuple(Pointer(t.memory, t.offset, kind.to or UNKNOWN_TYPE) for t in value.targets))
    if isinstance(value, Range) and kind.kind == "uint" and kind.size in (1, 2):
        return Range(ZERO, ranges.smallest(value.high, Number((1 << 8 * kind.size) - 1)))
    return value


def joined(first: Value, *others: Value) -> Value:
    """A value that is one of these."""
    for other in others:
        if first == other:
            continue
        if isinstance(first, Range) and isinstance(other, Range):
            first = ranges.join(first, other)
        elif isinstance(first, Pointers) and isinstance(other, Pointers):
            first = Pointers(tuple(_merged(first.targets + other.targets)))
        elif isinstance(first, Struct) and isinstance(other, Struct):
            more = dict(other.members)
            first = Struct(tuple((name, joined(part, more[name])) for name, part in first.members if name in more))
        elif isinstance(first, Pointers) and isinstance(other, Range):
            continue  # a null pointer is not followed
        elif isinstance(first, Range) and isinstance(other, Pointers):
            first = other
        else:
            return UNBOUNDED
    return first


def _merged(targets: tuple[Pointer, ...]) -> Iterator[Pointer]:
    by_memory: dict[tuple[str, CType], Pointer] = {}
    for target in targets:
        known = by_memory.get((target.memory, target.to))
        offset = ranges.join(known.offset, target.offset) if known else target.offset
        by_memory[target.memory, target.to] = Pointer(target.memory, offset, target.to)
    yield from by_memory.values()


def spelled(node: ir.Expr) -> str:
    """The text of an operation; "" where it stands in a macro, whose use is the text of all its parts."""
    text = re.sub(r"\s+", "", node.span.text)
    return "" if re.fullmatch(r"[\w.]+(\(.*\))?", text) else text


def name_of(node: ir.Expr) -> str:
    while isinstance(node, (ir.Member, ir.Index, ir.Deref, ir.Cast)):
        node = (
            node.base
            if isinstance(node, (ir.Member, ir.Index))
            else node.pointer
            if isinstance(node, ir.Deref)
            else node.operand
        )
    return node.name if isinstance(node, ir.Var) else ""
