"""Walks over the interpreted form of a function: its expressions, with the statements and loops around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from warpwright.facts import ir


@dataclass(frozen=True, slots=True)
class Step:
    """One whole expression as it stands in a statement, with the statement and the loops around it.

    `nodes` are the expression and all below it, `assigned` those of them that change a variable.
    """

    node: ir.Expr
    statement: ir.Stmt
    loops: tuple[ir.Loop, ...]
    nodes: tuple[ir.Expr, ...]
    assigned: tuple[ir.Assign | ir.Update, ...]


@dataclass(slots=True, eq=False)
class Outline:
    """The expressions of one function, in the order of the text, lambdas' bodies included; `of` finds them again."""

    steps: list[Step] = field(default_factory=lambda: [])
    of: dict[ir.Expr, Step] = field(default_factory=lambda: {})
    lambdas: set[ir.Function] = field(default_factory=set)
    calls: list[tuple[ir.Call, Step]] = field(default_factory=lambda: [])
    names: set[str] = field(default_factory=set)  # of what is called
    divides: bool = False
    has_arrays: bool = False


def outline(function: ir.Function) -> Outline:
    """Everything that is asked of a function's text more than once."""
    out = Outline()
    _statement(out, function.body, ())
    return out


def _statement(out: Outline, statement: ir.Stmt, loops: tuple[ir.Loop, ...]) -> None:
    match statement:
        case ir.Declare(init=init, type=kind, shared=shared):
            out.has_arrays = out.has_arrays or (kind.kind == "array" and shared is None)
            if init is not None:
                _expression(out, init, statement, loops)
        case ir.Evaluate(expr=expr):
            _expression(out, expr, statement, loops)
        case ir.If(condition=condition):
            _expression(out, condition, statement, loops)
        case ir.Loop(init=first, condition=goes_on, step=step, body=inner):
            if first is not None:
                _statement(out, first, loops)
            within = (*loops, statement)
            for each in (goes_on, step):
                if each is not None:
                    _expression(out, each, statement, within)
            _statement(out, inner, within)
            return
        case ir.Switch(value=value):
            _expression(out, value, statement, loops)
        case ir.Return(value=result) if result is not None:
            _expression(out, result, statement, loops)
    for child in inner_statements(statement):
        _statement(out, child, loops)


def _expression(out: Outline, node: ir.Expr, statement: ir.Stmt, loops: tuple[ir.Loop, ...]) -> None:
    nodes = tuple(below(node))
    assigned = tuple(each for each in nodes if isinstance(each, (ir.Assign, ir.Update)))
    step = Step(node, statement, loops, nodes, assigned)
    out.steps.append(step)
    out.of[node] = step
    for each in nodes:
        if isinstance(each, ir.Call):
            out.calls.append((each, step))
            out.names.add(each.name)
        elif isinstance(each, ir.Lambda):
            out.lambdas.add(each.function)
            _statement(out, each.function.body, loops)
        elif isinstance(each, (ir.Binary, ir.Assign)) and each.op in ("/", "%"):
            out.divides = True


def inner_statements(statement: ir.Stmt) -> Iterator[ir.Stmt]:
    match statement:
        case ir.Block(body=body):
            yield from body
        case ir.If(then=then, otherwise=otherwise):
            yield then
            if otherwise is not None:
                yield otherwise
        case ir.Loop(init=init, body=inner):
            if init is not None:
                yield init
            yield inner
        case ir.Switch(cases=cases):
            for _, statements in cases:
                yield from statements


def below(node: ir.Expr) -> Iterator[ir.Expr]:
    """The node and all below it, in the order of the text; a lambda's body is not below it."""
    pending = [node]
    while pending:
        each = pending.pop()
        yield each
        pending += reversed(parts(each))


def parts(node: ir.Expr) -> list[ir.Expr]:
    """The expressions that a node is made of."""
    handler = _PARTS.get(type(node))
    return handler(node) if handler is not None else []


def _call_parts(node: ir.Call) -> list[ir.Expr]:
    return [node.target, *node.arguments] if node.target is not None else node.arguments


_PARTS: dict[type[ir.Expr], Callable[..., list[ir.Expr]]] = {
    ir.Unary: lambda node: [node.operand],
    ir.Cast: lambda node: [node.operand],
    ir.Update: lambda node: [node.target],
    ir.AddressOf: lambda node: [node.target],
    ir.Deref: lambda node: [node.pointer],
    ir.Member: lambda node: [node.base],
    ir.Piece: lambda node: [node.base],
    ir.Binary: lambda node: [node.left, node.right],
    ir.Logical: lambda node: [node.left, node.right],
    ir.Comma: lambda node: [node.left, node.right],
    ir.Conditional: lambda node: [node.condition, node.then, node.otherwise],
    ir.Assign: lambda node: [node.target, node.value],
    ir.Index: lambda node: [node.base, node.index],
    ir.Construct: lambda node: node.arguments,
    ir.Opaque: lambda node: node.parts,
    ir.Call: _call_parts,
}
