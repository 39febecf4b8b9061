"""The functions that a kernel runs, each with what the compiler knows of its variables before any thread runs.

A variable is known at compile time where it only ever holds what literals, template arguments and counters of loops of
constant length make of it, since such loops are unrolled. All else is a run-time value: parameters of the kernel,
thread and block numbers, what is read from memory, and what is assigned under a condition on one of these. Where that
is not certain, a value is taken to be known.

Example: in `for (int k = 0; k < 8; k++) t[k] = a[n];` the counter k is known, n and a[n] are run-time values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from warpwright.facts import ir
from warpwright.facts.types import (
    BOOL,
    DOUBLE,
    FLOAT,
    INT,
    UINT,
    UNKNOWN_TYPE,
    CType,
    arithmetic_result,
    pointer_to,
)
from warpwright.facts.walk import Outline, Step, below, inner_statements, outline, parts

Callees = Mapping[ir.Call, tuple[ir.Function, list[ir.Expr]]]
"""The function that each call which was run means, with the arguments for its parameters."""

MAX_BODIES = 200
_COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))
OVERLOADED = frozenset((
    "sqrt", "rsqrt", "cbrt", "exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan",
    "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sinpi", "cospi", "erf", "erfc",
    "pow", "fmod", "hypot", "floor", "ceil", "round", "trunc", "rint", "nearbyint", "fabs", "fmin", "fmax", "fma",
    "copysign", "tgamma", "lgamma", "remainder", "fdim",
))  # fmt: skip
"""Functions of the CUDA Math API that C++ has for float and for double under one name; an integer counts as double."""
DOUBLE_CONSTANTS = frozenset((
    "M_E", "M_LOG2E", "M_LOG10E", "M_LN2", "M_LN10", "M_PI", "M_PI_2", "M_PI_4", "M_1_PI", "M_2_PI", "M_2_SQRTPI",
    "M_SQRT2", "M_SQRT1_2",
))  # fmt: skip
"""Macros of <math.h>, whose definitions are not found; none is a float exactly."""
_LOADS = frozenset(("__ldg", "__ldcg", "__ldca", "__ldcs", "__ldlu", "__ldcv"))


@dataclass(frozen=True, slots=True)
class LocalArray:
    """An array of the thread's own, or of its caller's."""

    name: str
    type: CType
    place: tuple[str, int]


@dataclass(slots=True, eq=False)
class Body:
    """One function as it is called from somewhere: types and run-time variables by slot.

    `depth` counts the loops around the call, `late_depth` those of them whose length is not known. `arrays` are the
    local arrays that its variables are or point to. `born` is how many run-time conditions stand around the place where
    a variable begins.
    """

    function: ir.Function
    outline: Outline
    callees: Callees
    global_type: Callable[[str], CType]
    depth: int = 0
    late_depth: int = 0
    types: dict[int, CType] = field(default_factory=lambda: {})
    run_time: set[int] = field(default_factory=set)
    arrays: dict[int, LocalArray] = field(default_factory=lambda: {})
    born: dict[int, int] = field(default_factory=lambda: {})
    known_types: dict[ir.Expr, CType] = field(default_factory=lambda: {})

    def ends_late(self, loop: ir.Loop) -> bool:
        """Whether a run-time value decides how often a loop runs, so that it cannot be unrolled whole."""
        return loop.condition is None or self.decides(loop.condition)

    def in_late_loop(self, step: Step) -> bool:
        return self.late_depth > 0 or any(map(self.ends_late, step.loops))

    def is_run_time(self, node: ir.Expr) -> bool:
        """Whether a number is certain not to be known to the compiler. A choice between two known ones is not that."""
        match node:
            case ir.Logical() | ir.Unary(op="!"):
                return False
            case ir.Binary(op=op) if op in _COMPARISONS:
                return False
            case ir.Conditional(then=then, otherwise=otherwise):
                return self.is_run_time(then) or self.is_run_time(otherwise)
            case _:
                return self._depends(node, self.is_run_time)

    def decides(self, node: ir.Expr) -> bool:
        """Whether a condition is certain not to be known to the compiler."""
        return self._depends(node, self.decides)

    def _depends(self, node: ir.Expr, on: Callable[[ir.Expr], bool]) -> bool:
        match node:
            case ir.Var(slot=slot):
                return slot in self.run_time
            case ir.Special():
                return True
            case ir.Index() | ir.Deref() if self.local_array(node) is None:
                return True
            case ir.Assign(value=value):
                return on(value)
            case ir.Lambda():
                return False
        return any(on(part) for part in parts(node))

    def local_array(self, node: ir.Expr) -> LocalArray | None:
        """The local array that an element or a row is of."""
        while isinstance(node, (ir.Index, ir.Member)) and not (isinstance(node, ir.Member) and node.arrow):
            node = node.base
        return self.arrays.get(node.slot) if isinstance(node, ir.Var) else None

    def type_of(self, node: ir.Expr) -> CType:
        """The static type of an expression; UNKNOWN_TYPE where it is not certain."""
        known = self.known_types.get(node)
        if known is None:
            known = self.known_types[node] = self._read_type(node)
        return known

    def _read_type(self, node: ir.Expr) -> CType:
        match node:
            case ir.Const(type=kind) | ir.Cast(type=kind):
                return kind
            case ir.Var(slot=slot):
                return self.types.get(slot, UNKNOWN_TYPE)
            case ir.Global(name=name):
                return DOUBLE if name in DOUBLE_CONSTANTS else self.global_type(name)
            case ir.Special(axis=axis):
                return UINT if axis is not None else UNKNOWN_TYPE
            case ir.Unary(op=op, operand=operand):
                kind = self.type_of(operand)
                return BOOL if op == "!" else INT if kind.is_integer and (kind.size or 4) < 4 else kind
            case ir.Update(target=inner) | ir.Assign(target=inner) | ir.Comma(right=inner):
                return self.type_of(inner)
            case ir.Logical():
                return BOOL
            case ir.Binary(op=op, left=left, right=right):
                return self._binary_type(op, self.type_of(left), self.type_of(right))
            case ir.Conditional(then=then, otherwise=otherwise):
                a, b = self.type_of(then), self.type_of(otherwise)
                return arithmetic_result(a, b) if _is_number(a) and _is_number(b) else a
            case ir.Index(base=inner) | ir.Deref(pointer=inner):
                return self.type_of(inner).to or UNKNOWN_TYPE
            case ir.AddressOf(target=inner):
                return pointer_to(self.type_of(inner))
            case ir.Member(base=base, field=name, arrow=arrow):
                whole = self.type_of(base)
                member = ((whole.to or UNKNOWN_TYPE) if arrow else whole).member(name)
                return member[1] if member is not None else UNKNOWN_TYPE
            case ir.Construct(type=kind):
                return kind or UNKNOWN_TYPE
            case ir.Call():
                return self._call_type(node)
        return UNKNOWN_TYPE

    @staticmethod
    def _binary_type(op: str, left: CType, right: CType) -> CType:
        if op in _COMPARISONS:
            return BOOL
        for kind in (left, right):
            if kind.kind == "array":
                return pointer_to(kind.to or UNKNOWN_TYPE)
            if kind.kind == "pointer":
                return kind
        if not (_is_number(left) and _is_number(right)):
            return UNKNOWN_TYPE
        if op in ("<<", ">>"):
            return arithmetic_result(left, left)
        return arithmetic_result(left, right)

    def _call_type(self, node: ir.Call) -> CType:
        if node in self.callees:
            returns = self.callees[node][0].returns
            return returns if returns.name != "auto" else UNKNOWN_TYPE
        if node.target is not None:
            return UNKNOWN_TYPE
        return intrinsic_type(node.name, [self.type_of(a) for a in node.arguments])


def intrinsic_type(name: str, arguments: list[CType]) -> CType:
    """What a built-in function returns for arguments of these types; UNKNOWN_TYPE where that is not known here.

    >>> intrinsic_type("sqrt", [FLOAT]).name, intrinsic_type("pow", [FLOAT, INT]).name
    ('float', 'double')
    """
    first = arguments[0] if arguments else UNKNOWN_TYPE
    if name in OVERLOADED:
        if not all(map(_is_number, arguments)) or any(a.kind == "float" and a.size not in (4, 8) for a in arguments):
            return UNKNOWN_TYPE
        return FLOAT if all(a.kind == "float" and a.size == 4 for a in arguments) else DOUBLE
    if is_float_function(name):
        return FLOAT
    if name in ("max", "min") and len(arguments) == 2 and all(map(_is_number, arguments)):
        return arithmetic_result(*arguments)
    if name == "abs":
        return first
    if name in _LOADS or name.startswith("atomic"):
        return first.to or UNKNOWN_TYPE
    if name.startswith("__shfl"):
        return arguments[1] if name.endswith("_sync") and len(arguments) > 1 else first
    return UNKNOWN_TYPE


def is_float_function(name: str) -> bool:
    """Whether a built-in takes and gives float alone: sqrtf, __expf, __fdividef, __fmul_rn.

    >>> [is_float_function(name) for name in ("powf", "__expf", "__fadd_rn", "pow", "__float2int_rn")]
    [True, True, True, False, False]
    """
    if name.startswith("__f") and name.endswith(("_rn", "_rz", "_ru", "_rd")):
        return name[3:].partition("_")[0] in ("add", "sub", "mul", "div", "rcp", "sqrt", "rsqrt", "maf", "ma")
    plain = name.removeprefix("__")
    return plain.endswith("f") and (plain[:-1] in OVERLOADED or plain in ("fdividef", "saturatef"))


def _is_number(kind: CType) -> bool:
    return kind.is_integer or kind.kind == "float"


def bodies(kernel: ir.Function, callees: Callees, global_type: Callable[[str], CType]) -> Iterator[Body]:
    """The kernel and every function that it was seen to call, once for each way in which their arguments differ."""
    outlines: dict[ir.Function, Outline] = {kernel: outline(kernel)}
    for function, _ in callees.values():
        if function not in outlines:
            outlines[function] = outline(function)
    asked = any(each.divides or each.has_arrays for each in outlines.values())
    pending = [Body(kernel, outlines[kernel], callees, global_type, run_time={p.slot for p in kernel.parameters})]
    seen: set[object] = set()
    while pending and len(seen) < MAX_BODIES:
        body = pending.pop(0)
        state = (frozenset(body.run_time), frozenset(body.arrays.items())) if asked else None
        key = (body.function, state, body.depth > 0, body.late_depth > 0)
        if key in seen:
            continue
        seen.add(key)
        _read(body, asked)
        yield body
        pending += _called(body, outlines)


def _called(body: Body, outlines: Mapping[ir.Function, Outline]) -> Iterator[Body]:
    for node, step in body.outline.calls:
        if node not in body.callees:
            continue
        function, arguments = body.callees[node]
        if function in body.outline.lambdas:
            continue
        late = body.late_depth + sum(map(body.ends_late, step.loops))
        depth = body.depth + len(step.loops)
        inner = Body(function, outlines[function], body.callees, body.global_type, depth, late)
        for parameter, argument in zip(function.parameters, arguments, strict=False):
            if body.is_run_time(argument):
                inner.run_time.add(parameter.slot)
            array = body.local_array(argument)
            if array is not None and (isinstance(argument, ir.Var) or body.type_of(argument).kind == "array"):
                inner.arrays[parameter.slot] = array
        yield inner


def _read(body: Body, asked: bool) -> None:
    """Fill in types and arrays and, where they are asked for, let run-time values spread until nothing changes."""
    for parameter in body.function.parameters:
        body.types[parameter.slot] = parameter.type
    _declare(body, body.function.body)
    before = -1
    while asked and before != len(body.run_time):
        before = len(body.run_time)
        _spread(body, body.function.body, 0)


def _declare(body: Body, statement: ir.Stmt) -> None:
    match statement:
        case ir.Declare(slot=slot, name=name, type=kind, init=init):
            if isinstance(init, ir.Lambda):
                for parameter in init.function.parameters:
                    body.types[parameter.slot] = parameter.type
                _declare(body, init.function.body)
            known = body.type_of(init) if kind.name == "auto" and init is not None else kind
            body.types[slot] = known
            if kind.kind == "array" and statement.shared is None and not statement.static:
                body.arrays[slot] = LocalArray(name, kind, (statement.span.path, statement.span.start))
            elif kind.kind == "pointer" and isinstance(init, ir.Var) and init.slot in body.arrays:
                body.arrays[slot] = body.arrays[init.slot]
        case _:
            for child in inner_statements(statement):
                _declare(body, child)


def _spread(body: Body, statement: ir.Stmt, late: int) -> None:
    """`late` counts the run-time values around that decide whether, or how often, the statement runs."""
    match statement:
        case ir.Declare(slot=slot, init=init):
            body.born[slot] = late
            if init is not None:
                _assign(body, init, late)
                if slot not in body.run_time and body.is_run_time(init):
                    body.run_time.add(slot)
        case ir.Evaluate(expr=expr):
            _assign(body, expr, late)
        case ir.If(condition=condition):
            _assign(body, condition, late)
            late += body.decides(condition)
        case ir.Loop():
            _spread_loop(body, statement, late)
            return
        case ir.Switch(value=value):
            late += body.decides(value)
    for child in inner_statements(statement):
        _spread(body, child, late)


def _spread_loop(body: Body, loop: ir.Loop, late: int) -> None:
    """A counter that the loop's first part sets is as good as declared there: `for (k = 0; k < 8; k++)`."""
    born = dict(body.born)
    if isinstance(loop.init, ir.Evaluate):
        for node in body.outline.of[loop.init.expr].assigned:
            if isinstance(node.target, ir.Var):
                body.born[node.target.slot] = late
    if loop.init is not None:
        _spread(body, loop.init, late)
    late += body.ends_late(loop)
    for each in (loop.condition, loop.step):
        if each is not None:
            _assign(body, each, late)
    _spread(body, loop.body, late)
    body.born |= born


def _assign(body: Body, whole: ir.Expr, late: int) -> None:
    """What the assignments in one whole expression do to the variables."""
    step = body.outline.of[whole]
    for node in step.assigned:
        target = node.target
        while isinstance(target, ir.Index) and body.local_array(target) is not None:
            target = target.base
        if not isinstance(target, ir.Var) or target.slot in body.run_time:
            continue
        given = isinstance(node, ir.Assign) and (body.decides if node.op else body.is_run_time)(node.value)
        if given or (late > body.born.get(target.slot, 0) and not _is_toggle(node, target.slot)):
            body.run_time.add(target.slot)
    if body.outline.lambdas:
        _assign_in_lambdas(body, step, late)


def _is_toggle(node: ir.Assign | ir.Update, slot: int) -> bool:
    """Whether a variable goes round a few known numbers, as the index of a double buffer does: `at ^= 1`.

    A loop that is unrolled by their number knows it, whatever the loop's length.
    """
    if not isinstance(node, ir.Assign):
        return False
    round_about = node.op == "^" or (isinstance(node.value, ir.Binary) and node.value.op in ("^", "%", "&", "-"))
    names = [each for each in below(node.value) if not isinstance(each, (ir.Const, ir.Binary, ir.Cast))]
    return round_about and all(isinstance(each, ir.Var) and each.slot == slot for each in names)


def _assign_in_lambdas(body: Body, step: Step, late: int) -> None:
    for node in step.nodes:
        if isinstance(node, ir.Lambda):
            _spread(body, node.function.body, late)
        elif isinstance(node, ir.Call) and node in body.callees:
            function, arguments = body.callees[node]
            if function in body.outline.lambdas:
                for parameter, argument in zip(function.parameters, arguments, strict=False):
                    if body.is_run_time(argument):
                        body.run_time.add(parameter.slot)
