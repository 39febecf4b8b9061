"""Which type an expression has. A literal takes the type of what it meets."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from warpwright.formulas.functions import BITS, COMPARISONS, FUNCTIONS
from warpwright.formulas.printer import shown
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, Reduce
from warpwright.formulas.types import KIND_RANK, TYPES, ElementType, promoted

WHOLE_LITERAL = ElementType("a whole number", "integer", 0)
LITERAL = ElementType("a number", "float", 0)
_MEASURES = ("logsumexp", "var", "std", "mean")
ACCUMULATING = ("sum", "prod", "max", "min", *_MEASURES)
"""Reductions that take a type to be held in."""


class TypeRuleError(Exception):
    """An operation that its operands' types do not have: one sentence, and the place."""

    def __init__(self, at: int, reason: str) -> None:
        self.at = at
        self.reason = reason
        super().__init__(reason)


def settled(kind: ElementType) -> ElementType:
    """A literal's own type, where nothing else decides: i64 or f32."""
    if kind.bits:
        return kind
    return TYPES["i64"] if kind.kind == "integer" else TYPES["f32"]


def meeting(one: ElementType, other: ElementType) -> ElementType:
    """As `types.promoted`, of literals too.

    >>> meeting(WHOLE_LITERAL, TYPES["u8"]).name, meeting(LITERAL, TYPES["bf16"]).name
    ('u8', 'bf16')
    >>> meeting(LITERAL, TYPES["i32"]).name
    'a number'
    """
    if one.kind == other.kind and not (one.bits and other.bits):
        return one if one.bits else other
    return promoted(one, other)


def types_of(named: Callable[[str], ElementType]) -> Callable[[Expr], ElementType]:
    """What tells the type of an expression and finds that of each node once. `named` gives the types of tensors, stages
    and scalars, and that of a dimension or an extent. What is returned raises TypeRuleError."""
    # By identity: nodes that are equal may differ in type, as 1 and 1.0. They are kept, so that no other has their id.
    known: dict[int, tuple[Expr, ElementType]] = {}

    def of(node: Expr) -> ElementType:
        found = known.get(id(node))
        if found is None:
            found = known[id(node)] = node, _typed(node, named, of)
        return found[1]

    return of


def type_of(node: Expr, named: Callable[[str], ElementType]) -> ElementType:
    """The type of one expression, as by `types_of`. Raises TypeRuleError."""
    return types_of(named)(node)


def as_precise(
    node: Expr, own: ElementType, wanted: ElementType, type_of: Callable[[Expr], ElementType]
) -> ElementType:
    """The type in which an expression of type `own` is computed where `wanted` is what it meets: what is made of
    literals and whole numbers alone, as `cos(2 * pi * i / I)`, is as precise as that."""
    if wanted.digits != 53 or own.kind not in ("float", "complex") or not _is_undecided(node, type_of):
        return own
    return TYPES["f64" if own.kind == "float" else "c128"]


def _is_undecided(node: Expr, type_of: Callable[[Expr], ElementType]) -> bool:
    """Whether nothing in an expression is of a floating-point type."""
    if isinstance(node, Num) or type_of(node).kind in ("integer", "bool"):
        return True
    if not isinstance(node, Call) or node.name in TYPES or node.name in ("uniform", "normal"):
        return False
    args = node.args[1:] if node.name == "select" else node.args
    return all(_is_undecided(each, type_of) for each in args)


def _typed(node: Expr, named: Callable[[str], ElementType], of: Callable[[Expr], ElementType]) -> ElementType:
    match node:
        case Num(value=value):
            return TYPES["bool"] if isinstance(value, bool) else WHOLE_LITERAL if isinstance(value, int) else LITERAL
        case Name(name=name):
            return named(name)
        case Load(tensor=tensor, index=index):
            for each in index:
                if of(each).kind not in ("integer", "bool"):
                    raise TypeRuleError(
                        each.at, f"An index of {tensor} is a whole number, not {settled(of(each)).name}."
                    )
            kind = named(tensor)
            if isinstance(node.outside, Num) and not _holds(kind, node.outside.value):
                number = shown(node.outside)
                cure = "test the index with 'if' in its place"
                raise TypeRuleError(
                    node.outside.at, f"{tensor} is of {kind.name}, which does not hold {number}: {cure}."
                )
            return kind
        case Reduce(ranges=ranges):
            for each in (end for r in ranges for end in (r.lower, r.upper) if end is not None):
                if of(each).kind not in ("integer", "bool"):
                    raise TypeRuleError(each.at, f"An end of a range is a whole number, not {settled(of(each)).name}.")
            return _reduced(node, of(node.body))
        case Call(name=name, args=args, at=at):
            kind = _called(name, [of(each) for each in args], at)
            if kind.kind == "integer" and len(args) == 2:
                _need_sense(name, args[1], kind)
            return kind


def _holds(kind: ElementType, value: float) -> bool:
    low, high = kind.bounds
    return kind.kind not in ("bool", "integer") or (isinstance(value, int) and low <= value <= high)


def _reduced(node: Reduce, body: ElementType) -> ElementType:
    op, at, body = node.op, node.at, settled(body)
    if op in ("argmax", "argmin"):
        kind = TYPES["i64"]
    elif op in ("any", "all"):
        kind = TYPES["bool"]
    elif op in ("sum", "prod") and body.kind in ("integer", "bool"):
        kind = TYPES["i64"]
    elif op in _MEASURES and body.kind in ("integer", "bool"):
        kind = TYPES["f32"]
    else:
        kind = body
    if body.kind == "complex" and op not in ("sum", "prod", "mean"):
        raise TypeRuleError(at, f"{op} has no meaning for complex numbers, which have no order.")
    if op in ("any", "all") and body.kind not in ("bool", "integer"):
        raise TypeRuleError(at, f"{op} takes truth values, not {body.name}: compare first, as in {op}[i] (x[i] > 0).")
    return _accumulated(node, body, kind)


def _accumulated(node: Reduce, body: ElementType, kind: ElementType) -> ElementType:
    """The type of the result where the type to add up in is named: that, of whole numbers."""
    if not node.accumulate:
        return kind
    chosen, short = TYPES[node.accumulate], f"{node.op}:{node.accumulate}"
    if node.op not in ACCUMULATING:
        raise TypeRuleError(node.at, f"{node.op} adds nothing up: write {node.op}[...] without a type.")
    if chosen.bits < 32:
        raise TypeRuleError(
            node.at, f"{short} has too few bits to add up in: name one of 32 or 64 bits, as f32 or i32."
        )
    if KIND_RANK[chosen.kind] < KIND_RANK[body.kind]:
        raise TypeRuleError(node.at, f"{short} cannot hold values of {body.name}: cast them first.")
    return chosen if chosen.kind == "integer" else promoted(kind, chosen) if kind.kind != chosen.kind else kind


def _called(name: str, args: list[ElementType], at: int) -> ElementType:
    if name in TYPES:
        if args[0].kind == "complex" and TYPES[name].kind != "complex":
            raise TypeRuleError(at, f"A complex number is no {name}: take real(z), imag(z) or abs(z).")
        return TYPES[name]
    if name == "select":
        _need_truth(args[0], "A condition", at)
        return meeting(args[1], args[2])
    if name in ("and", "or", "not"):
        for each in args:
            _need_truth(each, f"'{name}'", at)
        return TYPES["bool"]
    together = args[0]
    for each in args[1:]:
        together = meeting(together, each)
    if name in COMPARISONS:
        if together.kind == "complex" and name not in ("==", "!="):
            raise TypeRuleError(at, "Complex numbers have no order.")
        return TYPES["bool"]
    if name in BITS or name == "~":
        if together.kind not in ("integer", "bool"):
            raise TypeRuleError(at, f"'{name}' takes whole numbers, not {together.name}.")
        return together
    if name == "/":
        return together if together.kind in ("float", "complex") else LITERAL if not together.bits else TYPES["f32"]
    if name in ("//", "%") and together.kind == "complex":
        raise TypeRuleError(at, f"'{name}' has no meaning for complex numbers.")
    if name not in FUNCTIONS:
        return settled_bool(together)
    known = FUNCTIONS[name]
    if together.kind not in known.kinds:
        raise TypeRuleError(at, f"{name} takes {_kinds(known.kinds)}, not {settled(together).name}.")
    match known.result:
        case "bool":
            return TYPES["bool"]
        case "integer":
            return TYPES["i32"]
        case "real":
            return {"c64": TYPES["f32"], "c128": TYPES["f64"]}.get(together.name, together)
        case "float":
            return together if together.kind in ("float", "complex") and together.bits else TYPES["f32"]
    if name == "complex":
        return TYPES["c128"] if together.name == "f64" else TYPES["c64"]
    return settled_bool(together)


def settled_bool(kind: ElementType) -> ElementType:
    """Arithmetic on truth values is that of whole numbers."""
    return TYPES["i64"] if kind.kind == "bool" else kind


def _need_truth(kind: ElementType, what: str, at: int) -> None:
    if kind.kind != "bool":
        raise TypeRuleError(at, f"{what} takes a truth value, not {settled(kind).name}: compare first, as in x > 0.")


def _need_sense(name: str, right: Expr, kind: ElementType) -> None:
    """What C++ leaves open for whole numbers, where a literal stands on the right."""
    if not isinstance(right, Num):
        return
    value = right.value
    most = max(32, kind.bits) - 1 if kind.bits else 63
    if name in ("<<", ">>") and not 0 <= value <= most:
        raise TypeRuleError(right.at, f"'{name}' of {settled(kind).name} shifts by 0 to {most} bits, not {value}.")
    if name in ("//", "%") and value == 0:
        raise TypeRuleError(right.at, f"'{name}' divides a whole number by 0.")


def _kinds(kinds: tuple[str, ...]) -> str:
    if "float" not in kinds:
        return "complex numbers" if "complex" in kinds else "whole numbers"
    return "real numbers" if "complex" not in kinds else "numbers"


def operand_type(name: str, own: ElementType, args: Sequence[ElementType]) -> ElementType:
    """The type that a call's arguments are converted to, where it gives `own`: `x < 2.5` of whole numbers compares
    floating-point ones.

    >>> operand_type("<", TYPES["bool"], [TYPES["i32"], LITERAL]).name
    'f32'
    """
    if name in COMPARISONS or name in ("isnan", "isinf", "isfinite", "not"):
        together = args[0]
        for each in args[1:]:
            together = meeting(together, each)
        return settled(together)
    if name in ("real", "imag", "abs", "popc", "clz"):
        return settled(args[0])
    if name in ("complex", "uniform", "normal"):
        return TYPES["f64"] if name == "complex" else TYPES["u64"]
    return TYPES["i64"] if name in ("<<", ">>") and own.kind == "bool" else own
