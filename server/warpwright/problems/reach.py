"""How far a kernel reaches into its arrays, as its text shows it: a guard `i < n` bounds what `i` indexes.

Upper bounds only: an array that is longer than the kernel needs does no harm, one that is shorter makes an honest
kernel look wrong. Device functions are followed, loops to where their variables settle. What nothing bounds is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from warpwright.facts import ir
from warpwright.facts.steps import OutOfStepsError
from warpwright.facts.types import UNKNOWN_TYPE, CType
from warpwright.facts.unit import FunctionText, Unit
from warpwright.problems import ranges
from warpwright.problems.expressions import Binary, Expression, Name, Number, names, show
from warpwright.problems.ranges import ONE, UNBOUNDED, ZERO, Range, point
from warpwright.problems.reach_values import (
    MAX_CALL_DEPTH,
    Coverage,
    Environment,
    Group,
    Key,
    Local,
    Memory,
    Pointer,
    Pointers,
    Struct,
    Target,
    TooLongError,
    Value,
    ValueReader,
    joined,
    name_of,
)

_PASSES = 6
_ROUNDS = 4
_ATOMICS = ("atomic", "red_")
_SAME = {"__ldg", "__ldcs", "__ldca", "__ldcg", "__ldlu", "__ldcv", "ldg"}
_BITS = {"__popc", "__popcll", "__ffs", "__ffsll", "__clz", "__clzll"}
_SHUFFLES = ("__shfl",)
_HARMLESS = {"__syncthreads", "__syncwarp", "__threadfence", "printf", "assert", "__threadfence_block", "__trap"}


@dataclass(frozen=True, slots=True)
class ArrayReach:
    """What a kernel does with one array. `extent` is in elements, None where an index has no bound; `limited` where the
    array's values are used as whole numbers: `#name` in an extent is one more than the largest of them."""

    extent: Expression | None
    role: str
    element: CType
    limited: bool
    declared: int | None = None  # the elements of an array of the kernel's own
    counts: bool = False  # what atomics add to it are whole numbers that are used


@dataclass(frozen=True, slots=True)
class KernelReach:
    """`arrays` by parameter, member of one (`p.data`), or `::variable` of the file, and `shared name`."""

    arrays: Mapping[str, ArrayReach]
    coverage: Coverage
    globals: Mapping[str, CType]
    complete: bool


def kernel_reach(unit: Unit, function: ir.Function, parameters: Mapping[str, Expression]) -> KernelReach:
    """Read a kernel. `parameters` gives its whole numbers, members such as `p.n` too, where they are known."""
    walker = _Walker(unit, parameters)
    complete = not function.incomplete
    try:
        for number in range(_PASSES):  # so that what one part stores is known where another loads it
            before = {name: memory.contents for name, memory in walker.memories.items()}
            for memory in walker.memories.values():
                memory.high, memory.unbounded = None, False
            walker.widening = number >= 2
            walker.start(function)
            walker.statement(function.body)
            if all(memory.contents == before.get(name) for name, memory in walker.memories.items() if memory.loaded):
                break
        else:
            complete = complete and not any(memory.limited and memory.contents for memory in walker.memories.values())
    except (TooLongError, OutOfStepsError, RecursionError):
        complete = False
    arrays = {name: _said(memory, complete) for name, memory in walker.memories.items()}
    return KernelReach(arrays, walker.coverage, walker.globals, complete)


def _said(memory: Memory, complete: bool) -> ArrayReach:
    followed = complete and not memory.escapes
    extent = memory.high if followed and not memory.unbounded else None
    if extent is None and followed and not memory.unbounded:
        extent = ONE
    if not followed or memory.changed or (memory.loaded and memory.stored):
        role = "in-out"
    else:
        role = "out" if memory.stored else "in"
    counts = memory.counted and memory.element.is_integer
    return ArrayReach(extent, role, memory.element, memory.limited, memory.count, counts)


class _Walker(ValueReader):
    """Statements and calls."""

    def __init__(self, unit: Unit, parameters: Mapping[str, Expression]) -> None:
        super().__init__(unit, parameters)
        self.exits: list[Environment] = []  # at the break and continue statements of the loop that is read
        self.returned: list[tuple[Value, Environment]] = []
        self.used = True  # the value of what is read
        self.by_reference = False  # the function that is read returns a reference

    def start(self, function: ir.Function) -> None:
        self.environment, self.frame, self.frames = {}, 0, 0
        self.aliases.clear()
        for parameter in function.parameters:
            self._declare_parameter(parameter.name, parameter.type, (0, parameter.slot, ""))

    def _declare_parameter(self, name: str, kind: CType, key: Key) -> None:
        if kind.kind == "pointer":
            self._set(key, self._array(name, kind.to or UNKNOWN_TYPE))
        elif kind.is_integer:
            self._set(key, point(self.parameters.get(name, Name(name))))
        elif kind.kind == "struct" or (kind.kind == "other" and kind.fields):
            self.kinds[key] = kind
            for member, _, inner in kind.fields:
                self._declare_parameter(f"{name}.{member}", inner, (key[0], key[1], f"{key[2]}.{member}"))
        else:
            self._set(key, UNBOUNDED)

    def _array(self, name: str, to: CType) -> Pointers:
        element = to
        while element.kind == "array" and element.to is not None:
            element = element.to
        self.memories.setdefault(name, Memory(name, element))
        return Pointers((Pointer(name, point(ZERO), to),))

    # Statements -----------------------------------------------------------------------------------------------------

    def statement(self, node: ir.Stmt) -> None:
        if self.environment is None:
            return
        match node:
            case ir.Block(body=body):
                for child in body:
                    self.statement(child)
            case ir.Declare():
                self._declare(node)
            case ir.Evaluate(expr=expr):
                self.used = not isinstance(expr, ir.Call)
                self.value(expr)
                self.used = True
            case ir.If(condition=condition, then=then, otherwise=otherwise):
                self.value(condition)
                before, written = self.environment, self.written
                self.written = set()
                one = self._side(before, condition, True, then)
                other = self._side(before, condition, False, otherwise)
                self.environment = _met(one, other)
                if one is not None and other is not None:  # what the condition said is over
                    kept = {k: v for k, v in before.items() if isinstance(k, str) or k[:2] not in self.written}
                    self.environment = {**(self.environment or {}), **kept}
                self.written |= written
            case ir.Loop():
                self._loop(node)
            case ir.Switch(value=value, cases=cases):
                self.value(value)
                self._switch(cases)
            case ir.Return(value=given):
                result: Value = UNBOUNDED
                if given is not None:
                    result = self.address(given) if self.by_reference else self.value(given)
                self.returned.append((result, self.environment))
                self.environment = None
            case ir.Break() | ir.Continue():
                self.exits.append(self.environment)
                self.environment = None

    def _side(
        self, before: Environment, condition: ir.Expr, holds: bool, statement: ir.Stmt | None
    ) -> Environment | None:
        self.environment = dict(before)
        self.assume(condition, holds)
        if statement is not None:
            self.statement(statement)
        return self.environment

    def _switch(self, cases: list[tuple[ir.Expr | None, list[ir.Stmt]]]) -> None:
        before, outer = self.environment, self.exits
        self.exits = []
        ends: Environment | None = before
        self.environment = None
        for _, body in cases:
            self.environment = _met(self.environment, dict(before) if before is not None else None)
            for child in body:
                self.statement(child)
            ends = _met(ends, self.environment)
        for leaving in self.exits:
            ends = _met(ends, leaving)
        self.exits, self.environment = outer, ends

    def _declare(self, node: ir.Declare) -> None:
        key = (self.frame, node.slot, "")
        kind = node.type
        if node.shared is not None or (kind.kind == "array" and kind.to is not None):
            element = kind
            while element.kind == "array" and element.to is not None:
                element = element.to
            name = f"{'shared' if node.shared is not None else 'local'} {node.name}"
            memory = self.memories.setdefault(name, Memory(name, element))
            if kind.size and element.size:
                memory.count = min(kind.size // element.size, memory.count or kind.size)
            target = Pointer(name, point(ZERO), kind)
            if kind.kind == "array":
                self.assign(key, self.load(Target((target,), kind)))
            else:
                self.aliases[key] = Pointers((target,))
            if isinstance(node.init, ir.Construct):
                scalar = Target((Pointer(name, UNBOUNDED, element),), element)
                for part in _leaves(node.init):
                    self.store(scalar, self.value(part))
            return
        if node.init is None:
            self.assign(key, UNBOUNDED, node.name)
            return
        if node.reference:
            place = self.place(node.init)
            if isinstance(place, tuple):
                self.aliases[key] = Local(place)
                return
            if isinstance(place, Target):
                self.aliases[key] = Pointers(tuple(Pointer(p.memory, p.offset, place.kind) for p in place.pointers))
                return
        self.assign(key, self.value(node.init), node.name)

    def _loop(self, node: ir.Loop) -> None:
        if node.init is not None:
            self.statement(node.init)
        if self.environment is None:
            return
        entry, outer = self.environment, self.exits
        recording, self.recording = self.recording, False
        self._condition(node, dict(entry))  # as threads come to it first: that is what covers the data
        head, steps = dict(entry), dict[Key | str, Expression]()
        ended: Environment | None = None
        for _ in range(_ROUNDS):
            self.exits = []
            start = self._condition(node, dict(head))
            ended = self._round(node, start)
            wider = self._widened(node, entry, head, start, ended, steps)
            if wider == head:
                break
            head = wider
        else:
            for key, value in self._changed(head, ended):
                if key in head:
                    head[key] = _lost(value)
        self.recording, self.exits = recording, []
        leaving = self._round(node, self._condition(node, dict(head)))
        for way in self.exits:
            leaving = _met(leaving, way)
        after = _met(leaving, dict(entry)) if node.kind != "do" else leaving
        self.environment = after
        if after is not None and node.condition is not None and not self.exits:
            self.assume(node.condition, False)
        self.exits = outer

    def _condition(self, node: ir.Loop, environment: Environment) -> Environment | None:
        self.environment = environment
        if node.condition is not None and node.kind != "do":
            self.value(node.condition)
            self.assume(_as_less(node), True)
        return self.environment

    def _round(self, node: ir.Loop, start: Environment | None) -> Environment | None:
        """The body and the step; what it leaves for the next iteration."""
        self.environment = dict(start) if start is not None else None
        before = len(self.exits)
        self.statement(node.body)
        for way in self.exits[before:]:
            self.environment = _met(self.environment, way)
        if self.environment is not None and node.step is not None:
            self.value(node.step)
        if self.environment is not None and node.kind == "do" and node.condition is not None:
            self.value(node.condition)
        return self.environment

    def _widened(
        self,
        node: ir.Loop,
        entry: Environment,
        head: Environment,
        start: Environment | None,
        ended: Environment | None,
        steps: dict[Key | str, Expression],
    ) -> Environment:
        """The variables at the head of any iteration, from what one iteration makes of them."""
        if ended is None:
            return head
        wider: Environment = {}
        trips = self._trips(node, entry, start, ended) if start is not None else None
        for key, value in head.items():
            if key not in ended:
                if not isinstance(key, str):
                    wider[key] = value
                continue
            end = ended[key]
            if end == value:
                wider[key] = value
            elif isinstance(value, Range) and isinstance(end, Range):
                narrowed = start is not None and start.get(key) != value
                wider[key] = self._wider(key, entry, value, end, None if narrowed else trips, steps)
            elif isinstance(value, Pointers) and isinstance(end, Pointers):
                wider[key] = self._wider_pointers(key, entry, value, end, trips, steps)
            else:
                wider[key] = joined(value, end)
        return wider

    def _wider_pointers(
        self,
        key: Key | str,
        entry: Environment,
        head: Pointers,
        end: Pointers,
        trips: Expression | None,
        steps: dict[Key | str, Expression],
    ) -> Value:
        first = entry.get(key)
        if len(head.targets) == len(end.targets) == 1 and isinstance(first, Pointers) and len(first.targets) == 1:
            one, other = head.targets[0], end.targets[0]
            if one.memory == other.memory and one.to == other.to:
                inner: Environment = {key: first.targets[0].offset}
                offset = self._wider(key, inner, one.offset, other.offset, trips, steps)
                return Pointers((Pointer(one.memory, offset, one.to),))
        both = joined(head, end)
        if both == head:
            return head
        if not isinstance(both, Pointers):
            return UNBOUNDED
        return Pointers(tuple(Pointer(t.memory, UNBOUNDED, t.to) for t in both.targets))

    def _wider(
        self,
        key: Key | str,
        entry: Environment,
        head: Range,
        end: Range,
        trips: Expression | None,
        steps: dict[Key | str, Expression],
    ) -> Range:
        first = entry.get(key)
        low = head.low
        if low is not None and (end.low is None or not ranges.never_less(end.low, low)):
            low = None
            if end.high is not None and head.low is not None and _halved(end.low):
                low = ZERO
        high = head.high
        if high is None or (end.high is not None and ranges.never_less(high, end.high)):
            return Range(low, high)
        if end.high is None or not isinstance(first, Range) or first.high is None:
            return Range(low, None)
        step = ranges.combine("-", end.high, high)
        if step is None or trips is None:
            return Range(low, None)
        if steps.get(key) == step:
            return Range(low, high)
        if key in steps:
            return Range(low, None)
        steps[key] = step
        last = ranges.combine("*", ranges.combine("-", trips, ONE), step)
        return Range(low, ranges.combine("+", first.high, last))

    def _trips(
        self, node: ir.Loop, entry: Environment, start: Environment | None, ended: Environment
    ) -> Expression | None:
        """At most how many iterations `for (i = a; i < b; i += c)` has; None for another loop."""
        condition = node.condition
        while isinstance(condition, ir.Cast):
            condition = condition.operand
        if not isinstance(condition, ir.Binary) or condition.op not in ("<", "<=", ">", ">=", "!="):
            return None
        before = self.environment
        self.environment = dict(entry)
        recording, self.recording = self.recording, False
        try:
            for counter, limit, ups in (
                (condition.left, condition.right, condition.op in ("<", "<=", "!=")),
                (condition.right, condition.left, condition.op in (">", ">=")),
            ):
                place = self.place(counter) if isinstance(counter, (ir.Var, ir.Cast, ir.Member)) else None
                if not isinstance(place, tuple):
                    continue
                first, last = entry.get(place), ended.get(place)
                if not isinstance(first, Range) or not isinstance(last, Range):
                    continue
                ending = self.number(limit)
                more = ONE if "=" in condition.op and condition.op != "!=" else ZERO
                begun = start.get(place) if start is not None else first
                begin = begun.low if isinstance(begun, Range) and begun.low is not None else first.low
                step = ranges.combine("-", last.low, begin)
                if ups and step is not None and ranges.never_less(step, ONE):
                    span = ranges.combine("+", ranges.combine("-", ending.high, first.low), more)
                    return _rounded_up(span, step)
                back = ranges.combine("-", first.high, last.high)
                if not ups and counter is condition.left and back is not None and ranges.never_less(back, ONE):
                    span = ranges.combine("+", ranges.combine("-", first.high, ending.low), more)
                    return _rounded_up(span, back)
        finally:
            self.environment, self.recording = before, recording
        return None

    @staticmethod
    def _changed(head: Environment, ended: Environment | None) -> list[tuple[Key | str, Value]]:
        return [(k, v) for k, v in head.items() if ended is not None and ended.get(k) != v]

    # Calls ----------------------------------------------------------------------------------------------------------

    def call(self, node: ir.Call, address: bool = False) -> Value:
        name = node.name.removeprefix("cg::")
        values = [self.value(a) for a in node.arguments]
        numbers = [v for v in values if isinstance(v, Range)]
        if name.startswith(_ATOMICS) and values:
            return self._atomic(name, values)
        if name in _SAME and values:
            target = self.target_of(values[0])
            return self.load(target) if target is not None else UNBOUNDED
        if name == "__pipeline_memcpy_async" and len(values) == 3 and self._copied(*values):
            return UNBOUNDED
        if name in _BITS:
            return Range(ZERO, Number(64 if name.endswith("ll") else 32))
        if name.startswith(_SHUFFLES) and len(numbers) >= 2:
            return numbers[1] if "_sync" in name else numbers[0]
        if name in ("min", "umin", "max", "umax", "llmin", "llmax") and len(numbers) == 2 == len(values):
            one, other = numbers
            if "min" in name:
                return Range(ranges.least(one.low, other.low), ranges.smallest(one.high, other.high))
            low = other.low if one.low is None else one.low
            if one.low is not None and other.low is not None and ranges.never_less(other.low, one.low):
                low = other.low
            return Range(low, ranges.largest(one.high, other.high))
        if name in ("__mul24", "__umul24") and len(numbers) == 2:
            return ranges.multiply(*numbers)
        if name == "abs" and len(numbers) == 1:
            negated = ranges.combine("-", ZERO, numbers[0].low)
            return Range(
                ZERO, numbers[0].high if ranges.is_natural(numbers[0]) else ranges.largest(numbers[0].high, negated)
            )
        if name.startswith("make_") and len(name) > 6 and name[-1] in "1234":
            return Struct(tuple(zip((".x", ".y", ".z", ".w"), values, strict=False)))
        group = self._group(node, name)
        if group is not None:
            return group
        text = self._function(node, name)
        if text is not None:
            return self._inlined(node, text, values, address)
        if name not in _HARMLESS:
            for value in values:
                self.escape(value)
        return UNBOUNDED

    def _copied(self, to: Value, of: Value, size: Value) -> bool:
        """Whether a copy is one of whole elements, which it then is read as: a load and a store."""
        target, origin = self.target_of(to), self.target_of(of)
        if target is None or origin is None or origin.kind.size is None:
            return False
        if not isinstance(size, Range) or size.high != Number(origin.kind.size) or target.kind.size != origin.kind.size:
            return False
        self.store(target, self.load(origin))
        return True

    def _atomic(self, name: str, values: list[Value]) -> Value:
        if isinstance(values[0], Local):
            self.forget(values[0].key)
            return UNBOUNDED
        target = self.target_of(values[0])
        if target is None:
            return UNBOUNDED
        before = self.load(target)
        given = values[-1] if len(values) > 1 else UNBOUNDED
        plain = any(word in name for word in ("Exch", "CAS", "Min", "Max"))
        self.store(target, given if plain else UNBOUNDED, atomic=not plain)
        for pointer in target.pointers:
            memory = self.memories[pointer.memory]
            memory.changed = memory.changed or self.recording
            memory.counted = memory.counted or (not plain and self.used)
        return before if plain and isinstance(before, Range) else UNBOUNDED

    def _group(self, node: ir.Call, name: str) -> Value | None:
        threads = ranges.normal(Binary("*", Binary("*", Name("blockDim.x"), Name("blockDim.y")), Name("blockDim.z")))
        if name in ("this_thread_block", "this_grid"):
            return Group(name == "this_grid")
        if name in ("tiled_partition", "coalesced_threads"):
            given = [t.value for t in node.template_arguments if isinstance(t, ir.Const)]
            size = given[0] if given and isinstance(given[0], int) else 32
            return Group(False, size)
        target = self.value(node.target) if node.target is not None else None
        if not isinstance(target, Group):
            return None
        if target.grid:
            blocks = ranges.normal(Binary("*", Binary("*", Name("gridDim.x"), Name("gridDim.y")), Name("gridDim.z")))
            threads = ranges.normal(Binary("*", threads, blocks))
        whole: Expression = threads if target.size is None else Number(target.size)
        if name == "thread_rank":
            return Range(ZERO, ranges.combine("-", whole, ONE))
        if name in ("size", "num_threads"):
            return point(whole)
        if name == "meta_group_rank" and target.size is not None:
            return Range(ZERO, ranges.combine("/", ranges.combine("-", threads, ONE), Number(target.size)))
        return UNBOUNDED

    def _function(self, node: ir.Call, name: str) -> FunctionText | None:
        listed = self.unit.methods if node.target is not None or node.owner is not None else self.unit.functions
        place = self.place(node.target) if node.target is not None else None
        kind = self.kinds.get(place) if isinstance(place, tuple) else None
        is_called = isinstance(node.target, ir.Var) and name == node.target.name
        if is_called and kind is None:
            return None  # a functor or lambda that is held in a variable
        wanted, name = len(node.arguments), "operator()" if is_called else name
        fitting = [t for t in listed.get(name, []) if not t.is_kernel and _takes(self, t, wanted)]
        own = [t for t in fitting if kind is not None and t.owner == kind.name.partition("<")[0]]
        return own[0] if own else fitting[0] if fitting and not is_called else None

    def _inlined(self, node: ir.Call, text: FunctionText, values: list[Value], address: bool) -> Value:
        if text.node.id in self.calling or len(self.calling) >= MAX_CALL_DEPTH or self.environment is None:
            for value in values:
                self.escape(value)
            return UNBOUNDED
        function = self.function(text, self._bindings(node, text, values))
        parameters = list(function.parameters)
        self.frames += 1
        frame = self.frames
        places = [self.place(a) for a in node.arguments]
        if parameters and parameters[0].name == "this":
            this = self.place(node.target) if node.target is not None else None
            self._bind_place((frame, parameters[0].slot, ""), this)
            parameters = parameters[1:]
        for parameter, value, place in zip(parameters, values, places, strict=False):
            key = (frame, parameter.slot, "")
            if parameter.reference and place is not None:
                self._bind_place(key, place)
            else:
                outer, self.frame = self.frame, frame
                self.assign(key, value)
                self.frame = outer
        outer_frame, outer_returned, outer_exits = self.frame, self.returned, self.exits
        outer_reference, self.by_reference = self.by_reference, function.reference
        self.frame, self.returned, self.exits = frame, [], []
        self.calling.append(text.node.id)
        try:
            self.statement(function.body)
            ends: Environment | None = self.environment
            for _, environment in self.returned:
                ends = _met(ends, environment)
            result: Value = joined(*(v for v, _ in self.returned)) if self.returned else UNBOUNDED
        finally:
            self.calling.pop()
            self.frame, self.returned, self.exits = outer_frame, outer_returned, outer_exits
            self.by_reference = outer_reference
        self.environment = {k: v for k, v in ends.items() if isinstance(k, str) or k[0] != frame} if ends else ends
        if function.reference and not address:
            return self.read(self._named_by(result))
        return result if address is function.reference else UNBOUNDED

    def _bind_place(self, key: Key, place: Key | Target | None) -> None:
        if isinstance(place, Target):
            self.aliases[key] = Pointers(tuple(Pointer(p.memory, p.offset, place.kind) for p in place.pointers))
        elif place is not None:
            self.aliases[key] = Local(place)

    def _bindings(self, node: ir.Call, text: FunctionText, values: list[Value]) -> dict[str, CType | int]:
        out: dict[str, CType | int] = {}
        for (name, is_type, _), given in zip(text.template, node.template_arguments, strict=False):
            if isinstance(given, CType) and is_type:
                out[name] = given
            elif isinstance(given, ir.Const) and isinstance(given.value, int) and not is_type:
                out[name] = given.value
        unbound = {name for name, is_type, _ in text.template if is_type and name not in out}
        if unbound:
            generic = self.function(text, out)
            for parameter, value in zip(generic.parameters, values, strict=False):
                to = parameter.type.to
                label = to.name.removeprefix("const ").strip() if to is not None else ""
                if label in unbound and isinstance(value, Pointers):
                    out.setdefault(label, value.targets[0].to)
        return out


def _takes(walker: ValueReader, text: FunctionText, count: int) -> bool:
    parameters = walker.function(text, {}).parameters
    own = [p for p in parameters if p.name != "this"]
    return sum(p.default is None for p in own) <= count <= len(own)


def _leaves(node: ir.Construct) -> list[ir.Expr]:
    out: list[ir.Expr] = []
    for argument in node.arguments:
        out += _leaves(argument) if isinstance(argument, ir.Construct) and argument.type is None else [argument]
    return out


def _as_less(node: ir.Loop) -> ir.Expr:
    """The condition of a loop that counts up by one, `i != n`, as `i < n`."""
    condition, step = node.condition, node.step
    assert condition is not None
    if not isinstance(condition, ir.Binary) or condition.op != "!=" or not isinstance(step, ir.Update):
        return condition
    counts_up = step.op == "++" and name_of(step.target) == name_of(condition.left)
    return ir.Binary(condition.span, "<", condition.left, condition.right) if counts_up else condition


def _met(one: Environment | None, other: Environment | None) -> Environment | None:
    """Where two ways join: variables that hold one or the other."""
    if one is None or other is None:
        return one if other is None else other
    both: Environment = {}
    for key, value in one.items():
        if key in other:
            both[key] = value if other[key] == value else joined(value, other[key])
        elif not isinstance(key, str):
            both[key] = value
    for key, value in other.items():
        if key not in one and not isinstance(key, str):
            both[key] = value
    return both


def _lost(value: Value) -> Value:
    if isinstance(value, Pointers):
        return Pointers(tuple(Pointer(t.memory, UNBOUNDED, t.to) for t in value.targets))
    return UNBOUNDED


def _halved(low: Expression | None) -> bool:
    return isinstance(low, Binary) and low.operator == "/"


def _rounded_up(span: Expression | None, step: Expression) -> Expression | None:
    if step == ONE or span is None:
        return span
    return ranges.combine("/", ranges.combine("-", ranges.combine("+", span, step), ONE), step)


def limits_in(extent: Expression) -> frozenset[str]:
    """The arrays whose values an extent depends on."""
    return frozenset(name[1:] for name in names(extent) if name.startswith("#"))


def told(extent: Expression) -> str:
    return show(extent)
