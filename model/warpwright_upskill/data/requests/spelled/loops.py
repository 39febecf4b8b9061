"""Formulas as loops: of C with flat or nested indices, and pseudo-code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from warpwright.formulas.tree import Call, Equation, Expr, Load, Name, Num, Range, Reduce, walk

from warpwright_upskill.data.requests.spelled.axes import UnsayableError
from warpwright_upskill.data.requests.spelled.notation import ATOM, CHOICE, OR, PRODUCT, SIGN, Notation

_C_FUNCTIONS = {
    "exp": "expf", "log": "logf", "tanh": "tanhf", "sin": "sinf", "cos": "cosf", "sqrt": "sqrtf", "abs": "fabsf",
    "rsqrt": "rsqrtf", "floor": "floorf", "round": "rintf", "max": "fmaxf", "min": "fminf",
}  # fmt: skip
_BEGINS = {"sum": "0", "mean": "0", "prod": "1", "max": "-inf", "min": "inf"}
LOOPED = frozenset(_BEGINS)
"""Reductions that a loop says."""


class Code(Notation):
    """Expressions of C: `x[i * n + j]`, `c ? a : b`, `expf`."""

    name = "c"
    words: Mapping[str, str] = {"and": "&&", "or": "||"}

    def __init__(self, dims: Mapping[str, str], chance: Random, flat: Mapping[str, Sequence[str]]) -> None:
        super().__init__(dims, chance)
        self.flat = flat if chance.random() < 0.5 else {}
        self.choice = 0
        self.single = chance.random() < 0.4
        self.nested = True
        self.inside: dict[Reduce, str] = {}

    def load(self, name: str, index: Sequence[str]) -> str:
        if name not in self.flat or len(index) < 2:
            return super().load(name, index)
        text = index[0]
        for part, size in zip(index[1:], self.flat[name][1:], strict=True):
            text = f"{f'({text})' if ' ' in text or '+' in text else text}*{size} + {part}"
        return f"{name}[{text}]"

    def powered(self, base: Expr, power: Expr) -> tuple[str, int]:
        if power in (Num(2), Num(3)) and isinstance(base, Load | Name):
            return "*".join([self.expr(base, ATOM)] * int(power.value)), PRODUCT  # type: ignore[union-attr]
        if power == Num(2) and self.single:
            return f"sq({self.expr(base)})", ATOM
        return f"pow({self.expr(base)}, {self.expr(power)})", ATOM

    def called(self, name: str, args: Sequence[Expr]) -> tuple[str, int]:
        said = _C_FUNCTIONS.get(name, name) if self.single else {"abs": "fabs", "round": "rint"}.get(name, name)
        return f"{said}({', '.join(self.expr(each) for each in args)})", ATOM

    def reduced(self, op: str, ranges: Sequence[str], body: Expr) -> tuple[str, int]:
        raise UnsayableError(op)

    def _text(self, node: Expr) -> tuple[str, int]:
        if isinstance(node, Reduce):
            return self.inside[node], ATOM
        return super()._text(node)

    def selected(self, condition: Expr, then: Expr, otherwise: Expr) -> tuple[str, int]:
        return f"{self.expr(condition, OR)} ? {self.expr(then, OR)} : {self.expr(otherwise, CHOICE)}", CHOICE


def loops(
    equations: Sequence[Equation], dims: Mapping[str, str], code: Code, names: Sequence[str], chance: Random
) -> str:
    """The equations as loops in one line. `names` are free for totals."""
    c_like = chance.random() < 0.6
    spare = iter(names)
    said = []
    for each in equations:
        equation = each
        outer = [each.name for each in equation.index if isinstance(each, Name)]
        value = equation.value
        scattered: list[str] = []
        if len(outer) < len(equation.index):
            scattered = [
                node.name
                for part in equation.index
                for node in walk(part)
                if isinstance(node, Name) and node.name in dims
            ]
            if isinstance(value, Reduce) and not equation.combine:
                scattered += [each.name for each in value.ranges]
                value = value.body
                equation = Equation(equation.name, equation.index, value, "+")
        order = list(dict.fromkeys((*scattered, *outer)))
        steps = []
        for node in dict.fromkeys(each for each in walk(value) if isinstance(each, Reduce)):
            total = next(spare)
            steps.append(_total(node, total, code, c_like))
            code.inside[node] = total
        left = (
            code.load(equation.name, [code.expr(each) for each in equation.index]) if equation.index else equation.name
        )
        if equation.combine in ("max", "min"):
            steps.append(f"{left} = {equation.combine}({left}, {code.expr(value)})")
        else:
            steps.append(f"{left} {equation.combine}= {code.expr(value)}")
        said.append(_nest([_over(each, "0", dims[each], c_like) for each in order], steps, c_like))
    return " ".join(said) if c_like else "; ".join(said)


def _over(name: str, first: str, beyond: str, c_like: bool) -> str:
    if c_like:
        return f"for (int {name} = {first}; {name} < {beyond}; {name}++)"
    return f"for {name} in range({beyond}):" if first == "0" else f"for {name} in range({first}, {beyond}):"


def _nest(heads: Sequence[str], steps: Sequence[str], c_like: bool) -> str:
    inner = (
        (" ".join(each if each.endswith("}") or each.endswith(";") else f"{each};" for each in steps))
        if c_like
        else "; ".join(steps)
    )
    if not heads:
        return inner
    if c_like:
        return f"{' '.join(heads)} {{ {inner} }}" if len(steps) > 1 else f"{' '.join(heads)} {inner}"
    return f"{' '.join(heads)} {inner}"


def _total(node: Reduce, total: str, code: Code, c_like: bool) -> str:
    heads = [_range(each, code, c_like) for each in node.ranges]
    for each in walk(node.body):
        if isinstance(each, Reduce):
            raise UnsayableError("a reduction inside of a reduction")
    body = code.expr(node.body)
    match node.op:
        case "sum" | "mean":
            step = f"{total} += {body}"
        case "prod":
            step = f"{total} *= {code.expr(node.body, SIGN)}"
        case "max" | "min":
            step = f"{total} = {node.op}({total}, {body})"
        case op:
            raise UnsayableError(op)
    begin = _BEGINS[node.op]
    after = f"; {total} /= {' * '.join(code.dims[each.name] for each in node.ranges)}" if node.op == "mean" else ""
    if node.op == "mean" and any(each.lower is not None or each.upper is not None for each in node.ranges):
        raise UnsayableError("a mean over a part")
    if c_like:
        infinite = {"-inf": "-INFINITY", "inf": "INFINITY"}.get(begin, begin)
        return f"float {total} = {infinite}; {' '.join(heads)} {step};{f' {after[2:]};' if after else ''}"
    return f"{total} = {begin}; {' '.join(heads)} {step}{after}"


def _range(each: Range, code: Code, c_like: bool) -> str:
    first = "0" if each.lower is None else code.expr(each.lower)
    if each.lower is not None and isinstance(each.lower, Call) and each.lower.name == "-":
        first = f"max(0, {first})"
    if each.upper is None:
        beyond = code.dims[each.name]
    elif each.closed:
        beyond = code.expr(Call("+", (each.upper, Num(1))))
    else:
        beyond = code.expr(each.upper)
    return _over(each.name, first, beyond, c_like)
