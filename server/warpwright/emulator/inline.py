"""A kernel's instructions with every call replaced by the function that it calls, so that one flow graph has them all.

A parameter of a device function is the variable that its caller passes: both names mean one place in a lane's local
memory. A call through a pointer becomes a choice among the functions whose address the module takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from warpwright.emulator.ptx.model import (
    Address,
    Function,
    Guard,
    Immediate,
    Instruction,
    Label,
    Module,
    Negated,
    Operand,
    Pair,
    Place,
    Register,
    Symbol,
    Variable,
    Vector,
)

FIRST_FUNCTION_ADDRESS = 0x1000
FUNCTION_STRIDE = 16


class RecursionFoundError(Exception):
    """A function calls itself, directly or through others; the message names it."""


@dataclass(slots=True)
class Flat:
    """One kernel without calls to functions of the module. `variables` are the shared, local and param variables of the
    kernel and of all that it calls. Names of inlined registers, labels, local and param variables end in `@` and a
    number; a shared variable of a function is one, wherever it is inlined."""

    body: list[Instruction | Label] = field(default_factory=lambda: [])
    registers: dict[str, str] = field(default_factory=lambda: {})
    variables: dict[str, Variable] = field(default_factory=lambda: {})
    branch_targets: dict[str, tuple[str, ...]] = field(default_factory=lambda: {})


def function_addresses(module: Module) -> dict[str, int]:
    """A number for each function, as `mov.u64 %rd1, f` gives it."""
    names = sorted(module.functions)
    return {name: FIRST_FUNCTION_ADDRESS + FUNCTION_STRIDE * i for i, name in enumerate(names)}


def flatten(module: Module, kernel: Function) -> Flat:
    """The kernel with what it calls. Raises RecursionFoundError."""
    flat = Flat()
    _Inliner(module, flat).add(kernel, _Names(0, {}), (kernel.name,), None)
    return flat


@dataclass(frozen=True, slots=True)
class _Names:
    """How the names of one inlined copy are written: `copy` 0 is the kernel itself, whose names stay."""

    copy: int
    parameters: Mapping[str, str]

    def own(self, name: str) -> str:
        return f"{name}@{self.copy}" if self.copy else name

    def symbol(self, name: str) -> str:
        return self.parameters.get(name, name)


class _Inliner:
    def __init__(self, module: Module, flat: Flat) -> None:
        self.module = module
        self.flat = flat
        self.copies = 0
        self.addresses = function_addresses(module)

    def add(self, function: Function, names: _Names, stack: tuple[str, ...], behind: str | None) -> None:
        """Append a function's text; a return goes to the label `behind`, or ends the thread where that is None."""
        flat = self.flat
        labels = {item.name for item in function.body or () if isinstance(item, Label)}
        for name, kind in function.registers.items():
            flat.registers[names.own(name)] = kind
        private = {v.name for v in function.variables if v.space in {"local", "param"}}
        for variable in function.variables:
            name = names.own(variable.name) if variable.name in private else variable.name
            flat.variables[name] = replace(variable, name=name)
        for name, targets in (function.branch_targets or {}).items():
            flat.branch_targets[names.own(name)] = tuple(names.own(t) for t in targets)
        own = set(function.registers) | labels | set(function.branch_targets or {}) | private
        for item in function.body or ():
            if isinstance(item, Label):
                flat.body.append(Label(names.own(item.name)))
                continue
            renamed = _renamed(item, own, names)
            if item.opcode == "ret" and behind is not None:
                flat.body.append(replace(renamed, opcode="bra", modifiers=(), operands=(Symbol(behind),)))
            elif item.opcode == "call":
                self._call(renamed, function, stack)
            else:
                flat.body.append(renamed)

    def _call(self, call: Instruction, caller: Function, stack: tuple[str, ...]) -> None:
        results, target, arguments, prototype = call_parts(call)
        if isinstance(target, Symbol):
            name = self.module.aliases.get(target.name, target.name)
            callee = self.module.functions.get(name)
            if callee is None or callee.body is None:
                self.flat.body.append(call)
                return
            behind = self._label("after")
            if call.guard is not None:
                negated = Guard(call.guard.register, not call.guard.negated)
                self.flat.body.append(_branch(call, behind, negated))
            self._inline(callee, results, arguments, stack, behind, call.place)
            self.flat.body.append(Label(behind))
            return
        self._call_pointer(call, target, (results, arguments), _prototype(caller, prototype), stack)

    def _call_pointer(
        self,
        call: Instruction,
        target: Register,
        passed: tuple[tuple[str, ...], tuple[str, ...]],
        prototype: tuple[int, int] | None,
        stack: tuple[str, ...],
    ) -> None:
        """Compare the pointer with each function that takes as much, and trap where it is none of them."""
        behind = self._label("after")
        if call.guard is not None:
            self.flat.body.append(_branch(call, behind, Guard(call.guard.register, not call.guard.negated)))
        for callee in self.module.functions.values():
            if callee.is_kernel or callee.body is None or callee.name in stack:
                continue
            if prototype is not None and prototype != (len(callee.results), len(callee.parameters)):
                continue
            self.copies += 1
            other, test = self._label("other"), f"%is_callee@{self.copies}"
            self.flat.registers[test] = "pred"
            operands = (Register(test), target, Immediate(self.addresses[callee.name]))
            self.flat.body.append(Instruction("setp", ("eq", "u64"), operands, None, call.place, call.row))
            self.flat.body.append(_branch(call, other, Guard(test, True)))
            self._inline(callee, *passed, stack, behind, call.place)
            self.flat.body.append(Label(other))
        self.flat.body.append(Instruction("trap", (), (), None, call.place, call.row))
        self.flat.body.append(Label(behind))

    def _inline(
        self,
        callee: Function,
        results: tuple[str, ...],
        arguments: tuple[str, ...],
        stack: tuple[str, ...],
        behind: str,
        called_at: Place | None,
    ) -> None:
        if callee.name in stack:
            raise RecursionFoundError(callee.name)
        self.copies += 1
        parameters = {v.name: a for v, a in zip(callee.parameters, arguments, strict=False)}
        parameters |= {v.name: r for v, r in zip(callee.results, results, strict=False)}
        start = len(self.flat.body)
        self.add(callee, _Names(self.copies, parameters), (*stack, callee.name), behind)
        if called_at is not None:
            places: dict[Place, Place] = {}
            for at, item in enumerate(self.flat.body[start:], start):
                if isinstance(item, Instruction) and item.place is not None:
                    place = places.setdefault(item.place, _called(item.place, called_at, callee.name))
                    self.flat.body[at] = replace(item, place=place)
        last = self.flat.body[-1]
        if not (isinstance(last, Instruction) and last.opcode == "bra" and last.guard is None):
            self.flat.body.append(Instruction("bra", (), (Symbol(behind),), None, None, 0))

    def _label(self, what: str) -> str:
        self.copies += 1
        return f"${what}@{self.copies}"


def _called(place: Place, at: Place, function: str) -> Place:
    """A place of a function's own text as one that is called at a line of its caller's, as the compiler inlines."""
    if place.inlined_at is None:
        return replace(place, inlined_at=at, function=place.function or function)
    return replace(place, inlined_at=_called(place.inlined_at, at, function))


def call_parts(
    call: Instruction,
) -> tuple[tuple[str, ...], Symbol | Register, tuple[str, ...], str | None]:
    """The variables for the results, the function, the variables of the arguments, and the prototype's name.

    >>> a, r, f = Symbol("a"), Symbol("r"), Symbol("f")
    >>> call_parts(Instruction("call", ("uni",), (Vector((r,)), f, Vector((a,))), None, None, 1))
    (('r',), Symbol(name='f', offset=0, is_generic=False), ('a',), None)
    """
    operands = list(call.operands)
    results: tuple[str, ...] = ()
    if operands and isinstance(operands[0], Vector):
        results = _names_in(operands.pop(0))
    target = operands.pop(0)
    if not isinstance(target, Symbol | Register):
        raise KeyError(str(target))
    arguments = _names_in(operands.pop(0)) if operands and isinstance(operands[0], Vector) else ()
    prototype = operands[0].name if operands and isinstance(operands[0], Symbol) else None
    return results, target, arguments, prototype


def _names_in(operand: Operand) -> tuple[str, ...]:
    items = operand.items if isinstance(operand, Vector) else ()
    return tuple(item.name for item in items if isinstance(item, Symbol | Register))


def _prototype(caller: Function, name: str | None) -> tuple[int, int] | None:
    found = (caller.prototypes or {}).get(name or "")
    return None if found is None else (len(found[0]), len(found[1]))


def _branch(like: Instruction, label: str, guard: Guard) -> Instruction:
    return Instruction("bra", (), (Symbol(label),), guard, like.place, like.row)


def _renamed(instruction: Instruction, own: set[str], names: _Names) -> Instruction:
    if not names.copy:
        return instruction
    guard = instruction.guard
    if guard is not None:
        guard = Guard(names.own(guard.register), guard.negated)
    operands = tuple(_rename(operand, own, names) for operand in instruction.operands)
    return replace(instruction, operands=operands, guard=guard)


def _rename(operand: Operand, own: set[str], names: _Names) -> Operand:
    match operand:
        case Register(name):
            return Register(names.own(name)) if name in own else operand
        case Symbol(name, offset):
            return Symbol(names.own(name) if name in own else names.symbol(name), offset)
        case Address(base, offset):
            renamed = _rename(base, own, names)
            assert isinstance(renamed, Register | Symbol | Immediate)
            return Address(renamed, offset)
        case Vector(items):
            return Vector(tuple(_rename(item, own, names) for item in items))
        case Pair(first, second):
            return Pair(*_registers(first, second, own=own, names=names))
        case Negated(inner):
            return Negated(*_registers(inner, own=own, names=names))
    return operand


def _registers(*registers: Register, own: set[str], names: _Names) -> Iterator[Register]:
    for register in registers:
        yield Register(names.own(register.name)) if register.name in own else register
