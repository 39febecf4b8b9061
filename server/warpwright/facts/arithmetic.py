"""Arithmetic of a kernel that costs more than its text suggests: double operations that only literals ask for, integer
division by run-time values, and pow with a constant exponent.

What costs and what does not was read from nvcc's machine code (CUDA 13.0, -O3, sm_70 to sm_100). A single double
operation whose operands are floats, or literals that a float holds exactly, and whose result goes to a float is done in
float, since the result is the same: `x * 0.5` costs nothing, `x * 0.1` and `2.0 * x + y` do. So does a comparison with
a literal that a float holds exactly.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from warpwright.facts import ir
from warpwright.facts.bodies import (
    DOUBLE_CONSTANTS,
    OVERLOADED,
    Body,
    is_float_function,
)
from warpwright.facts.constants import fold
from warpwright.facts.model import Division, Power, Promotion
from warpwright.facts.types import CType, arithmetic_result
from warpwright.facts.walk import Step, below, parts
from warpwright.syntax.source import Span

_ARITHMETIC = frozenset("+-*/")
_COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))


def promotions(body: Body) -> Iterator[Promotion]:
    """The double operations of a body that come from literals, one entry for each whole expression."""
    for step in body.outline.steps:
        if not any(_is_cause(node) for node in step.nodes):
            continue
        reader = _Promotions(body, body.depth + len(step.loops) > 0)
        reader.visit(step.node, _wanted(body, step))
        yield from reader.found


def _is_cause(node: ir.Expr) -> bool:
    """Whether a node can make a double of floats."""
    if isinstance(node, ir.Const):
        return node.type.kind == "float" and node.type.size == 8
    return isinstance(node, ir.Global) and node.name in DOUBLE_CONSTANTS


def divisions(body: Body) -> Iterator[Division]:
    """Integer divisions and modulos by run-time values in loops, those aside that are the same at every iteration."""
    for step in body.outline.steps if body.outline.divides else ():
        if not step.loops and not body.depth:
            continue
        for node in step.nodes:
            match node:
                case (
                    ir.Binary(op="/" | "%", left=left, right=right) | ir.Assign(op="/" | "%", target=left, value=right)
                ):
                    pass
                case _:
                    continue
            kind = arithmetic_result(body.type_of(left), body.type_of(right))
            known = body.type_of(left).is_integer and body.type_of(right).is_integer
            if not known or kind.size is None or not body.is_run_time(right) or fold(right) is not None:
                continue
            changes = _assigned_in(body, step)
            fixed = not _moves(right, changes)
            if fixed and isinstance(node, ir.Binary) and changes is not None and not _moves(left, changes):
                continue
            yield Division(
                node.span, node.op, left.span.one_line, right.span.one_line,
                8 * kind.size, kind.kind != "uint", fixed, _is_strided(body, step),
            )  # fmt: skip


def powers(body: Body) -> Iterator[Power]:
    """Calls of pow and powf with a constant exponent."""
    for node, step in body.outline.calls if not body.outline.names.isdisjoint(("pow", "powf")) else ():
        if node.name not in ("pow", "powf") or node in body.callees:
            continue
        if len(node.arguments) != 2 or node.target is not None:
            continue
        base, exponent = node.arguments
        value = constant(exponent)
        if value is None or constant(base) is not None:
            continue
        result, kind = body.type_of(node), body.type_of(base)
        if result.kind != "float" or result.size is None or kind.assumed:
            continue
        yield Power(
            node.span, base.span, value, node.name, kind.name, 8 * result.size, body.depth + len(step.loops) > 0
        )


def constant(node: ir.Expr) -> float | None:
    """The number that an expression of literals alone stands for, or None.

    >>> from warpwright.facts.types import DOUBLE
    >>> at = Span(None, 0, 0)
    >>> constant(ir.Binary(at, "/", ir.Const(at, 1.0, DOUBLE), ir.Const(at, 4.0, DOUBLE)))
    0.25
    """
    match node:
        case ir.Const(value=value) if value is not None:
            return value
        case ir.Unary(op="-" | "+" as op, operand=operand):
            value = constant(operand)
            return -value if op == "-" and value is not None else value
        case ir.Cast(type=kind, operand=operand):
            value = constant(operand)
            if value is None:
                return None
            return int(value) if kind.is_integer else float(value) if kind.kind == "float" else None
        case ir.Binary(op=op, left=left, right=right) if op in _ARITHMETIC:
            a, b = constant(left), constant(right)
            if a is None or b is None:
                return None
            if op == "/":
                whole = isinstance(a, int) and isinstance(b, int)
                return None if b == 0 else int(a / b) if whole else a / b
            return a + b if op == "+" else a - b if op == "-" else a * b
    return None


def _is_strided(body: Body, step: Step) -> bool:
    """Whether every loop around goes ahead by a run-time value: `i += gridDim.x * blockDim.x`."""
    return not body.depth and all(_strides(body, loop) for loop in step.loops)


def _strides(body: Body, loop: ir.Loop) -> bool:
    match loop.step:
        case ir.Assign(op="+", value=by):
            return body.is_run_time(by)
        case ir.Assign(op="", target=ir.Var(slot=slot), value=ir.Binary(op="+", left=left, right=right)):
            others = [part for part in (left, right) if not (isinstance(part, ir.Var) and part.slot == slot)]
            return len(others) == 1 and body.is_run_time(others[0])
    return False


def _assigned_in(body: Body, step: Step) -> set[int] | None:
    """Variables that change in the innermost loop around a step; None where that loop is the caller's."""
    if not step.loops:
        return None
    loop = step.loops[-1]
    changed: set[int] = set()
    for inner in body.outline.steps:
        if loop not in inner.loops:
            continue
        if isinstance(inner.statement, ir.Declare):
            changed.add(inner.statement.slot)
        for node in inner.assigned:
            whole = node.target
            while isinstance(whole, (ir.Index, ir.Member)):
                whole = whole.base
            if isinstance(whole, ir.Var):
                changed.add(whole.slot)
    return changed


def _moves(node: ir.Expr, changes: set[int] | None) -> bool:
    """Whether a value can change from one iteration to the next; in a caller's loop variables are taken to stay."""
    for each in below(node):
        if isinstance(each, (ir.Index, ir.Deref, ir.Call, ir.Assign, ir.Update, ir.Global)):
            return True
        if isinstance(each, ir.Var) and changes is not None and each.slot in changes:
            return True
    return False


def _is_float(kind: CType) -> bool:
    return kind.kind == "float" and kind.size == 4 and not kind.assumed


def _is_double(kind: CType) -> bool:
    return kind.kind == "float" and kind.size == 8


def fits_float(value: float | None) -> bool:
    """Whether a float holds the number exactly.

    >>> [fits_float(value) for value in (0.5, 0.1, 1e300, None)]
    [True, False, False, False]
    """
    if value is None:
        return False
    try:
        return bool(struct.unpack("f", struct.pack("f", value))[0] == value)
    except OverflowError:
        return False


# How an operand comes to be a double: a literal; a float; an integer; an operation that literals made double; or a
# double of its own, which is what the author wanted.
_LITERAL, _FLOAT, _INTEGER, _WIDENED, _OWN = "literal", "float", "integer", "widened", "own"


@dataclass(slots=True)
class _Tree:
    """What is known of one double expression while it is read."""

    literals: list[Span] = field(default_factory=lambda: [])
    operations: list[ir.Expr] = field(default_factory=lambda: [])
    functions: list[str] = field(default_factory=lambda: [])
    floats: int = 0
    fits: set[ir.Expr] = field(default_factory=set)  # literals that a float holds, and floats


@dataclass(slots=True)
class _Promotions:
    """Reads one whole expression; `found` are its double expressions that are double for the sake of literals."""

    body: Body
    in_loop: bool
    found: list[Promotion] = field(default_factory=lambda: [])

    def visit(self, node: ir.Expr, wanted: str) -> None:
        """`wanted` is what becomes of the value: "float", "integer", or "" where that is not known or a double."""
        if isinstance(node, ir.Lambda):
            return
        if isinstance(node, ir.Binary) and node.op in _COMPARISONS:
            if _is_double(self.body.type_of(node.left)) or _is_double(self.body.type_of(node.right)):
                self._comparison(node)
                return
        elif _is_double(self.body.type_of(node)) and isinstance(node, (ir.Binary, ir.Unary, ir.Conditional, ir.Call)):
            tree = _Tree()
            if self._classify(node, tree) == _WIDENED and wanted:
                if wanted == "float":
                    self._narrow(node, tree)
                self._add(node.span, tree, wanted == "float", False)
            return
        if isinstance(node, ir.Assign) and node.op in _ARITHMETIC and _is_float(self.body.type_of(node.target)):
            self.visit(node.target, "")
            if _is_double(self.body.type_of(node.value)):
                self._compound(node)
                return
        for part, use in self._uses(node, wanted):
            self.visit(part, use)

    def _compound(self, node: ir.Assign) -> None:
        """`x *= 0.1` multiplies in double."""
        tree = _Tree()
        kind = self._classify(node.value, tree)
        if kind in (_LITERAL, _WIDENED):
            whole = ir.Binary(node.span, node.op, node.target, node.value)
            tree.floats += 1
            tree.fits.add(node.target)
            tree.operations.append(whole)
            self._narrow(whole, tree)
            self._add(node.span, tree, True, False)

    def _uses(self, node: ir.Expr, wanted: str) -> Iterator[tuple[ir.Expr, str]]:
        """The parts of an expression that is not double, each with what becomes of it."""
        body = self.body
        match node:
            case ir.Assign(target=target, value=value):
                if not node.op:
                    yield target, ""
                yield value, _use(body.type_of(target))
            case ir.Cast(type=kind, operand=operand):
                yield operand, _use(kind)
            case ir.Index(base=base, index=index):
                yield base, ""
                yield index, "integer"
            case ir.Conditional(condition=condition, then=then, otherwise=otherwise):
                yield condition, ""
                yield then, wanted
                yield otherwise, wanted
            case ir.Comma(left=left, right=right):
                yield left, ""
                yield right, wanted
            case ir.Call(arguments=arguments) if node in body.callees:
                function, given = body.callees[node]
                for parameter, argument in zip(function.parameters, given, strict=False):
                    yield argument, _use(parameter.type)
            case ir.Call(arguments=arguments):
                known = is_float_function(node.name) or node.name.startswith("make_float")
                for argument in arguments:
                    yield argument, "float" if known else ""
            case ir.Construct(type=kind, arguments=arguments) if kind is not None and kind.fields:
                for (_, _, member), argument in zip(kind.fields, arguments, strict=False):
                    yield argument, _use(member)
            case _:
                for part in parts(node):
                    yield part, ""

    def _comparison(self, node: ir.Binary) -> None:
        tree = _Tree()
        kinds = {self._classify(node.left, tree), self._classify(node.right, tree)}
        if _OWN in kinds or not tree.floats:
            return
        alone = not tree.operations
        if not (alone and {node.left, node.right} <= tree.fits):
            tree.operations.append(node)
        self._add(node.span, tree, False, alone)

    def _add(self, span: Span, tree: _Tree, to_float: bool, comparison: bool) -> None:
        if tree.operations and tree.literals and (tree.floats or to_float):
            literals = tuple(sorted(dict.fromkeys(tree.literals), key=lambda s: s.start))
            functions = tuple(tree.functions)
            self.found.append(Promotion(span, literals, len(tree.operations), functions, comparison, self.in_loop))

    def _narrow(self, node: ir.Expr, tree: _Tree) -> None:
        """Take out the last operation before a conversion to float, where float gives the same result."""
        match node:
            case ir.Unary(operand=operand):
                self._narrow(operand, tree)
            case ir.Binary(left=left, right=right) if {left, right} <= tree.fits:
                tree.operations = [operation for operation in tree.operations if operation is not node]

    def _classify(self, node: ir.Expr, tree: _Tree) -> str:
        """How the operand comes to be a double, gathering what makes it one."""
        body, kind = self.body, self.body.type_of(node)
        value = constant(node)
        if value is not None and _is_float(kind):
            tree.fits.add(node)
            return _LITERAL
        if value is not None and kind.kind == "float":
            tree.literals += [each.span for each in below(node) if isinstance(each, ir.Const) and _is_double(each.type)]
            if fits_float(value):
                tree.fits.add(node)
            return _LITERAL
        if isinstance(node, ir.Global) and node.name in DOUBLE_CONSTANTS:
            tree.literals.append(node.span)
            return _LITERAL
        if _is_float(kind):
            tree.floats += 1
            tree.fits.add(node)
            self.visit(node, "")
            return _FLOAT
        if kind.is_integer:
            self.visit(node, "")
            return _INTEGER
        match node:
            case ir.Unary(op="-" | "+", operand=operand) if _is_double(kind):
                found = self._classify(operand, tree)
                if operand in tree.fits:
                    tree.fits.add(node)
                return found
            case ir.Binary(op=op, left=left, right=right) if op in _ARITHMETIC and _is_double(kind):
                return self._operation(node, (left, right), tree)
            case ir.Conditional(condition=condition, then=then, otherwise=otherwise) if _is_double(kind):
                self.visit(condition, "")
                kinds = {self._classify(then, tree), self._classify(otherwise, tree)}
                if {then, otherwise} <= tree.fits:
                    tree.fits.add(node)
                return _OWN if _OWN in kinds else _WIDENED
            case ir.Call(arguments=arguments) if _is_double(kind) and node not in body.callees and node.target is None:
                if node.name in OVERLOADED or node.name in ("max", "min"):
                    found = self._operation(node, tuple(arguments), tree)
                    if found == _WIDENED and node.name not in ("fabs", "max", "min", "fmin", "fmax"):
                        tree.functions.append(node.name)
                    return found
        for part, use in self._uses(node, ""):
            self.visit(part, use)
        return _OWN

    def _operation(self, node: ir.Expr, operands: tuple[ir.Expr, ...], tree: _Tree) -> str:
        kinds = [self._classify(operand, tree) for operand in operands]
        if _OWN in kinds or not {_LITERAL, _WIDENED} & set(kinds):
            return _OWN
        if set(kinds) == {_LITERAL}:
            return _LITERAL
        tree.operations.append(node)
        return _WIDENED


def _use(kind: CType) -> str:
    return "float" if _is_float(kind) else "integer" if kind.is_integer else ""


def _wanted(body: Body, step: Step) -> str:
    """What becomes of the value of a statement's expression."""
    match step.statement:
        case ir.Declare(type=kind, init=init) if init is step.node:
            return _use(kind)
        case ir.Return(value=value) if value is step.node:
            return _use(body.function.returns)
    return ""
