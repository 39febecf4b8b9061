"""Expressions of NumPy and torch: whole arrays, `[:, None]`, `.sum(axis=-1)`, einsum and matrix products."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from random import Random

from warpwright.formulas.tree import Call, Equation, Expr, Load, Name, Num, Reduce

from warpwright_upskill.data.requests.spelled.axes import Axes, UnsayableError, axes_of, element_dims, running_over
from warpwright_upskill.data.requests.spelled.notation import ATOM, COMPARISON, POWER, PRODUCT, SIGN, SUM, Notation

_LEVELS = {"+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT}
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_RUNNING = {"sum": "cumsum", "prod": "cumprod"}


class Whole:
    """One equation after the other, in the habits of NumPy or of torch."""

    def __init__(self, dims: Mapping[str, str], chance: Random) -> None:
        self.chance = chance
        self.torch = chance.random() < 0.5
        self.module = "torch" if self.torch else "np"
        self.axis = chance.choice(("axis=", "axis=", "")) if not self.torch else chance.choice(("dim=", "dim=", ""))
        self.methods = chance.random() < 0.6
        self.negative = chance.random() < 0.7
        self.kept = chance.random() < 0.6
        self.einsum = chance.random() < 0.65
        self.matmul = chance.random() < 0.5
        self.notation = Notation(dims, chance)
        self.axes = Axes(())

    def statement(self, equation: Equation) -> str:
        self.axes = axes_of(equation)
        text = self.expr(equation.value)
        if equation.combine in ("max", "min"):
            function = "maximum" if equation.combine == "max" else "minimum"
            return f"{equation.name} = {self.module}.{function}({equation.name}, {text})"
        return f"{equation.name} {equation.combine}= {text}"

    def expr(self, node: Expr, least: int = 0, into: Sequence[str] | None = None) -> str:
        """The expression, with axes so that it broadcasts to `into`."""
        own = self.axes.of(node)
        if into is not None and own and tuple(into[len(into) - len(own) :]) != own:
            return self._spread(node, own, into)
        text, level = self._text(node)
        return f"({text})" if level < least else text

    def _spread(self, node: Expr, own: Sequence[str], into: Sequence[str]) -> str:
        tail = into[into.index(own[0]) :]
        missing = [each for each in tail if each not in own]
        if isinstance(node, Reduce) and not running_over(node) and self.kept:
            over = [each.name for each in node.ranges]
            inner = self.axes.of(node.body)
            at = [inner.index(each) - len(inner) for each in over]
            if sorted(at) == sorted(tail.index(each) - len(tail) for each in missing) and node.op != "logsumexp":
                return self._reduced(node, keep=True)[0]
        text, level = self._text(node)
        text = f"({text})" if level < ATOM else text
        if self.torch and len(missing) == 1 and tail[-1] == missing[0]:
            return f"{text}.unsqueeze(-1)"
        return f"{text}[{', '.join(':' if each in own else 'None' for each in tail)}]"

    def _text(self, node: Expr) -> tuple[str, int]:
        match node:
            case Num() | Name():
                infinite = "float('-inf')" if self.torch else "-np.inf"
                return (
                    (infinite, ATOM)
                    if node == Num(float("-inf"))
                    else (self.notation.expr(node), SIGN if isinstance(node, Num) and node.value < 0 else ATOM)
                )
            case Load():
                return self._load(node), ATOM
            case Reduce():
                return self._reduced(node, keep=False)
            case Call(name="**", args=(base, power)):
                return f"{self.expr(base, ATOM)}**{self.expr(power, ATOM)}", POWER
            case Call(name="neg", args=(operand,)):
                return f"-{self.expr(operand, SIGN)}", SIGN
            case Call(name="and", args=(left, right)):
                both = self.axes.of(node)
                return f"({self.expr(left, 0, both)}) & ({self.expr(right, 0, both)})", COMPARISON
            case Call(name="select", args=args):
                if not self.axes.of(args[0]):
                    raise UnsayableError("a choice by a number")
                if self.torch and all(isinstance(each, Num) for each in args[1:]):
                    args = (args[0], *(Num(float(each.value)) for each in args[1:] if isinstance(each, Num)))
                return f"{self.module}.where({self._listed(node, args)})", ATOM
            case Call(name=sign, args=(left, right)) if sign in _LEVELS or sign in _COMPARISONS:
                both, level = self.axes.of(node), _LEVELS.get(sign, COMPARISON)
                second = level + 1 if sign in ("-", "/") or sign in _COMPARISONS else level + (sign == "*")
                return f"{self.expr(left, level, both)} {sign} {self.expr(right, second, both)}", level
            case Call(name=name, args=args):
                return self._called(node, name, args)
        raise AssertionError(node)

    def _listed(self, node: Expr, args: Sequence[Expr]) -> str:
        return ", ".join(self.expr(each, 0, self.axes.of(node)) for each in args)

    def _called(self, node: Expr, name: str, args: Sequence[Expr]) -> tuple[str, int]:
        listed = self._listed(node, args)
        if self.torch and not self.axes.of(args[0]):
            raise UnsayableError("a function of a number")
        if name in ("max", "min"):
            if self.torch and not self.axes.of(args[1]):
                end = "min" if name == "max" else "max"
                return f"torch.clamp({self.expr(args[0])}, {end}={self.expr(args[1])})", ATOM
            return f"{self.module}.{name}imum({listed})", ATOM
        if name == "clamp":
            if self.torch and any(self.axes.of(each) for each in args[1:]):
                raise UnsayableError("arrays as limits")
            return f"torch.clamp({listed})" if self.torch else f"np.clip({listed})", ATOM
        if name == "relu":
            return f"torch.relu({listed})" if self.torch else f"np.maximum({listed}, 0)", ATOM
        if name == "sigmoid":
            return f"torch.sigmoid({listed})" if self.torch else f"sigmoid({listed})", ATOM
        if name == "rsqrt" and not self.torch:
            return f"1 / np.sqrt({listed})", PRODUCT
        return f"{self.module}.{name}({listed})", ATOM

    def _load(self, node: Load) -> str:
        dims = element_dims(node)
        text = node.tensor
        gathered = [at for at, each in enumerate(node.index) if isinstance(each, Load)]
        if gathered:
            (at,) = gathered if len(gathered) == 1 else (-1,)
            if at < 0:
                raise UnsayableError("two gathered indices")
            index = node.index[at]
            assert isinstance(index, Load)
            text = f"{text}[{':, ' * at}{index.tensor}]"
        if self.axes.sorted(dims) == dims:
            return text
        if len(dims) == 2:
            return f"{text}.T"
        raise UnsayableError("a transposition of more than two")

    def _reduced(self, node: Reduce, *, keep: bool) -> tuple[str, int]:
        if not keep and (product := self._product(node)):
            return product
        inner = self.axes.of(node.body)
        named = self.axis or ("dim=" if self.torch else "axis=")
        if running := running_over(node):
            place = inner.index(node.ranges[0].name)
            if node.op not in _RUNNING or place != self.axes.of(node).index(running):
                raise UnsayableError("a running total")
            return f"{self.module}.{_RUNNING[node.op]}({self.expr(node.body)}, {named}{place})", ATOM
        places = sorted(inner.index(each.name) - (len(inner) if self.negative else 0) for each in node.ranges)
        which = str(places[0]) if len(places) == 1 else f"({', '.join(map(str, places))})"
        whole = len(places) == len(inner) and not keep
        arguments = [] if whole else [f"{self.axis}{which}"]
        if keep:
            arguments = [f"{named}{which}", "keepdim=True" if self.torch else "keepdims=True"]
        op = node.op
        if op == "logsumexp":
            return f"{'torch.' if self.torch else ''}logsumexp({self.expr(node.body)}, {named}{which})", ATOM
        if op == "var" and self.torch:
            arguments.append("unbiased=False")
        if self.torch and op in ("max", "min") and not whole:
            op = f"a{op}"
        if self.torch and op == "prod" and len(places) > 1:
            raise UnsayableError("a product over two")
        if op in ("argmax", "argmin") and len(places) > 1 and len(inner) > len(places):
            raise UnsayableError("argmax over two")
        if self.methods:
            return f"{self.expr(node.body, ATOM)}.{op}({', '.join(arguments)})", ATOM
        return f"{self.module}.{op}({', '.join([self.expr(node.body), *arguments])})", ATOM

    def _product(self, node: Reduce) -> tuple[str, int] | None:
        """A sum of products of elements as einsum or as a matrix product."""
        if node.op != "sum" or running_over(node) or any(each.upper is not None for each in node.ranges):
            return None
        factors = _factors(node.body)
        loads = [each for each in factors if isinstance(each, Load) and all(isinstance(i, Name) for i in each.index)]
        if len(loads) < max(2, len(factors)):
            return None
        dims = [element_dims(each) for each in loads]
        result = self.axes.of(node)
        if len(loads) == 2 and self.matmul and len(node.ranges) == 1 and all(len(each) <= 2 for each in dims):
            k = node.ranges[0].name
            for (left, one), (right, other) in permutations(zip((each.tensor for each in loads), dims, strict=True)):
                if one[1:] == (k,) and other[:1] == (k,) and result == (one[0], *other[1:]):
                    return f"{left} @ {right}", PRODUCT
                if one[1:] == (k,) and other[1:] == (k,) and result == (one[0], other[0]):
                    return f"{left} @ {right}.T", PRODUCT
        if not self.einsum or any(len(each) > 1 for part in dims for each in part):
            return None
        spec = ",".join("".join(each) for each in dims) + "->" + "".join(result)
        return f"{self.module}.einsum('{spec}', {', '.join(each.tensor for each in loads)})", ATOM


def _factors(node: Expr) -> list[Expr]:
    if isinstance(node, Call) and node.name == "*":
        return [each for part in node.args for each in _factors(part)]
    return [node]
