"""Kernel code in the form that is interpreted: names resolved to slots, macros expanded, templates bound.

A slot is a variable of one function call. Every node keeps the place in the text that it speaks for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from warpwright.facts.types import CType
from warpwright.syntax.source import Span

if TYPE_CHECKING:
    from warpwright.facts.code import PlaceCode, ValueCode


@dataclass(slots=True, eq=False)
class Expr:
    """The codes are made when the expression is first run, see facts/code.py."""

    span: Span
    value_code: ValueCode | None = field(default=None, init=False, repr=False)
    place_code: PlaceCode | None = field(default=None, init=False, repr=False)


@dataclass(slots=True, eq=False)
class Const(Expr):
    value: int | float | None  # None: a literal that is not a number
    type: CType


@dataclass(slots=True, eq=False)
class Var(Expr):
    slot: int
    name: str


@dataclass(slots=True, eq=False)
class Global(Expr):
    """A variable of the file: `__constant__`, `__device__`, or a host constant whose value is not known."""

    name: str


@dataclass(slots=True, eq=False)
class Special(Expr):
    """A built-in such as threadIdx.x; `name` is "threadIdx" and so on, `axis` 0 to 2, or None for the whole triple."""

    name: str
    axis: int | None


@dataclass(slots=True, eq=False)
class Unary(Expr):
    op: str
    operand: Expr


@dataclass(slots=True, eq=False)
class Update(Expr):
    """++x, x--"""

    op: str
    target: Expr
    prefix: bool


@dataclass(slots=True, eq=False)
class Binary(Expr):
    op: str
    left: Expr
    right: Expr


@dataclass(slots=True, eq=False)
class Logical(Expr):
    op: str
    left: Expr
    right: Expr


@dataclass(slots=True, eq=False)
class Conditional(Expr):
    condition: Expr
    then: Expr
    otherwise: Expr


@dataclass(slots=True, eq=False)
class Assign(Expr):
    op: str  # "" for plain assignment, "+" for +=
    target: Expr
    value: Expr


@dataclass(slots=True, eq=False)
class Comma(Expr):
    left: Expr
    right: Expr


@dataclass(slots=True, eq=False)
class Index(Expr):
    base: Expr
    index: Expr


@dataclass(slots=True, eq=False)
class Deref(Expr):
    pointer: Expr


@dataclass(slots=True, eq=False)
class AddressOf(Expr):
    target: Expr


@dataclass(slots=True, eq=False)
class Member(Expr):
    base: Expr
    field: str
    arrow: bool


@dataclass(slots=True, eq=False)
class Piece(Expr):
    """The member or element of that number: what a structured binding names."""

    base: Expr
    number: int


@dataclass(slots=True, eq=False)
class Cast(Expr):
    type: CType
    operand: Expr


@dataclass(slots=True, eq=False)
class Construct(Expr):
    """T(a, b), T{a, b} or {a, b}; `type` is None for a bare list."""

    type: CType | None
    arguments: list[Expr]


@dataclass(slots=True, eq=False)
class Call(Expr):
    name: str
    arguments: list[Expr]
    template_arguments: list[CType | Expr] = field(default_factory=lambda: [])
    target: Expr | None = None  # the object of a method call, or an expression that is called
    owner: CType | None = None  # the struct in `Struct::name(...)`


@dataclass(slots=True, eq=False)
class Lambda(Expr):
    function: Function


@dataclass(slots=True, eq=False)
class Opaque(Expr):
    """Something whose value is not followed; its parts are evaluated for their accesses. Inline assembly may also
    order threads, or end them."""

    parts: list[Expr]
    is_assembly: bool = False


@dataclass(slots=True, eq=False)
class Stmt:
    span: Span


@dataclass(slots=True, eq=False)
class Declare(Stmt):
    slot: int
    name: str
    type: CType
    init: Expr | None
    reference: bool
    shared: SharedVariable | None = None
    static: bool = False


@dataclass(slots=True, eq=False)
class SharedVariable:
    """A __shared__ declaration inside a function."""

    name: str
    type: CType
    dynamic: bool
    span: Span
    dims: tuple[int | None, ...]
    element: CType

    @property
    def bytes(self) -> int | None:
        """Static size in bytes; None where a part of it is unknown, and for a dynamic array."""
        total = None if self.dynamic else self.element.size
        for dim in self.dims:
            total = total * dim if total is not None and dim is not None else None
        return total


@dataclass(slots=True, eq=False)
class Evaluate(Stmt):
    expr: Expr
    last: bool = False  # nothing of its function follows it


@dataclass(slots=True, eq=False)
class Block(Stmt):
    body: list[Stmt]
    has_labels: bool = False  # among its own statements


@dataclass(slots=True, eq=False)
class If(Stmt):
    condition: Expr
    then: Stmt
    otherwise: Stmt | None
    last: bool = False  # nothing of its function follows it


@dataclass(slots=True, eq=False)
class Loop(Stmt):
    kind: str  # "for" | "while" | "do"
    init: Stmt | None
    condition: Expr | None
    step: Expr | None
    body: Stmt
    straight: bool = False  # the compiler can unroll it, see merging.is_straight


@dataclass(slots=True, eq=False)
class Switch(Stmt):
    value: Expr
    cases: list[tuple[Expr | None, list[Stmt]]]  # a None value is `default`


@dataclass(slots=True, eq=False)
class Return(Stmt):
    value: Expr | None


@dataclass(slots=True, eq=False)
class Break(Stmt):
    pass


@dataclass(slots=True, eq=False)
class Continue(Stmt):
    pass


@dataclass(slots=True, eq=False)
class Goto(Stmt):
    """A jump to a label behind it."""

    label: str


@dataclass(slots=True, eq=False)
class Label(Stmt):
    """Where the lanes that jumped to it go on; it stands right in a Block."""

    name: str


@dataclass(slots=True, eq=False)
class FunctionParameter:
    slot: int
    name: str
    type: CType
    reference: bool
    default: Expr | None = None


@dataclass(slots=True, eq=False)
class Function:
    """`slots` is the number of variables; a lambda shares the slots of the function it stands in."""

    name: str
    parameters: list[FunctionParameter]
    body: Stmt
    slots: int
    returns: CType
    incomplete: list[str] = field(default_factory=lambda: [])
    reference: bool = False  # it returns one
