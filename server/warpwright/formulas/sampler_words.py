"""What formulas of the sampler are made of: names as people choose them, and expressions.

A template has the operands `{a}`, `{b}` and `{c}`; what has a domain keeps to it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

INPUTS = (
    ("x", "y", "z"), ("a", "b", "c"), ("input", "other", "third"), ("src", "ref", "aux"), ("lhs", "rhs", "acc"),
    ("u", "v", "w"), ("inp", "residual", "gate"), ("data", "prev", "mask_in"), ("hidden", "skip", "up"),
    ("img", "template", "kernel"), ("pos", "vel", "force"), ("grad", "act", "saved"),
)  # fmt: skip
OUTPUTS = ("out", "dst", "result", "output", "res", "o", "next", "ret", "y_out", "value")
WEIGHTS = ("weight", "gamma", "scale", "wt", "w1", "coef")
BIASES = ("bias", "beta", "shift", "offset", "b1")
NUMBERS = ("alpha", "lambda_", "eps", "tau", "s0", "factor", "theta", "mu", "rate", "k0", "limit", "temperature")
INDICES = ("ids", "index", "perm", "labels", "tokens", "keys", "bucket", "slot")
VECTOR = ("i", "n", "idx", "t", "e", "p", "tid")
MATRIX = (("r", "c"), ("i", "j"), ("row", "col"), ("m", "n"), ("b", "d"), ("n", "f"), ("t", "d"), ("s", "v"))
CUBE = (("b", "t", "d"), ("n", "h", "w"), ("i", "j", "k"), ("b", "r", "c"), ("x0", "x1", "x2"), ("z", "y", "x"))
IMAGES = (("n", "c", "h", "w"), ("b", "h", "t", "d"), ("n", "k", "p", "q"))
LITERALS = ("0.5", "2", "3", "0.1", "1e-05", "1.5", "0.25", "4", "0.01", "10", "1e-06", "0.125", "100", "pi", "7")

UNARY = (
    "exp({a})", "exp2({a})", "expm1({a})", "log(abs({a}) + 1)", "log2(abs({a}) + 1)", "log10(abs({a}) + 1)",
    "log1p(abs({a}))", "sin({a})", "cos({a})", "tan({a})", "asin(clamp({a}, -1, 1))", "acos(clamp({a}, -1, 1))",
    "atan({a})", "sinh({a})", "cosh({a})", "tanh({a})", "asinh({a})", "acosh(abs({a}) + 1)",
    "atanh(clamp({a}, -0.9, 0.9))", "cbrt({a})", "rsqrt({a} * {a} + 1e-05)", "sqrt(abs({a}))", "erf({a})", "erfc({a})",
    "lgamma(abs({a}) + 1)", "sigmoid({a})", "gelu({a})", "gelu_tanh({a})", "silu({a})", "softplus({a})",
    "rcp(1 + abs({a}))", "j0({a})", "j1({a})", "relu({a})", "sign({a})", "floor({a})", "ceil({a})", "round({a})",
    "trunc({a})", "abs({a})", "square({a})", "-{a}", "1 - {a}", "{a} * {a}", "{a} ** 2", "1 / (1 + exp(-{a}))",
    "{a} ** 3", "{a} * sigmoid(1.702 * {a})", "exp(-{a} * {a})", "max({a}, 0)", "clamp({a}, 0, 6)",
)  # fmt: skip
BINARY = (
    "{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} + {b}", "{a} * {b}", "{a} / (abs({b}) + 1)", "max({a}, {b})",
    "min({a}, {b})", "fmax({a}, {b})", "fmin({a}, {b})", "fmod({a}, abs({b}) + 1)", "atan2({a}, {b})",
    "hypot({a}, {b})", "copysign({a}, {b})", "pow(abs({a}) + 0.1, {b})", "({a} - {b}) ** 2", "{a} // (abs({b}) + 1)",
    "{a} % (abs({b}) + 1)", "abs({a} - {b})", "{a} * tanh({b})", "{a} * silu({b})", "0.5 * ({a} + {b})",
    "{a} if isfinite({a}) else {b}", "{b} if isinf({a}) else {a}", "{b} if not {a} > 0 else {a}",
)  # fmt: skip
TERNARY = (
    "fma({a}, {b}, {c})", "{a} + {b} * {c}", "{a} if {b} > {c} else {c}", "clamp({a}, -1, 1) * {b} + {c}",
    "{a} + {c} * ({b} - {a})", "({a} - {b}) * {c}",
)  # fmt: skip
CONDITIONS = (
    "{a} > 0", "{a} < 1", "{a} >= 0.1", "{a} <= 0.5", "{a} == 0", "{a} != 0", "isnan({a})", "isinf({a})",
    "isfinite({a})", "not isnan({a})", "{a} > 0 and {a} < 1", "{a} < -1 or {a} > 1", "abs({a}) < 2",
)  # fmt: skip
COMPARED = (
    "{a} > {b}", "{a} < {b}", "{a} >= {b}", "{a} <= {b}", "{a} == {b}", "{a} != {b}", "{a} > 0 and {b} > 0",
    "isnan({a}) or {b} < 0", "abs({a} - {b}) < 0.1",
)  # fmt: skip
WHOLE = (
    "{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} & {b}", "{a} | {b}", "{a} ^ {b}", "{a} << 3", "{a} >> 2", "~{a}",
    "{a} & 255", "{a} ^ {a} >> 5", "popc({a})", "clz({a})", "{a} // 3", "{a} % 16", "max({a}, {b})", "min({a}, {b})",
    "{a} & 15 | {b} << 4", "abs({a} - {b})", "{a} * 3 + {b}",
)  # fmt: skip


@dataclass
class Draw:
    """A formula while it is drawn: chance, and the names that are taken, with the extents that dimensions stand for."""

    chance: random.Random
    taken: set[str] = field(default_factory=set)

    def one(self, among: Sequence[str]) -> str:
        return self.chance.choice(among)

    def often(self, share: float) -> bool:
        return self.chance.random() < share

    def dims(self, among: Sequence[tuple[str, ...]] | Sequence[str]) -> tuple[str, ...]:
        """Names of dimensions, which are taken, as are those of their extents."""
        chosen = self.chance.choice(among)
        found: tuple[str, ...] = (chosen,) if isinstance(chosen, str) else tuple(chosen)
        self.taken |= {*found, *(name.upper() for name in found)}
        return found

    def dim(self, among: Sequence[str] = ("k", "l", "q", "g", "kk", "red")) -> str:
        """One more dimension."""
        name = self.name(among)
        self.taken.add(name.upper())
        return name

    def name(self, among: Sequence[str]) -> str:
        """A name that is free, from that moment taken; numbered where all are."""
        free = [each for each in among if each not in self.taken]
        name = self.one(free) if free else next(
            each for number in range(2, 99) if (each := f"{among[0]}{number}") not in self.taken
        )  # fmt: skip
        self.taken.add(name)
        return name

    def inputs(self, count: int) -> list[str]:
        """Names that go together."""
        together = self.chance.choice(INPUTS)[:count]
        found = [next(name for name in (each, f"{each}_in") if name not in self.taken) for each in together]
        self.taken |= set(found)
        return found

    def number(self) -> str:
        """A literal or a number that the caller hands over."""
        return self.one(LITERALS) if self.often(0.6) else self.name(NUMBERS)

    def real(self, leaves: Sequence[str], steps: int | None = None) -> str:
        """An expression of real numbers over all of `leaves`."""
        parts = list(leaves)
        for _ in range(self.chance.choice((0, 1, 1, 2, 3)) if steps is None else steps):
            at = self.chance.randrange(len(parts))
            kind = self.chance.random()
            if kind < 0.7:
                parts[at] = self._put(UNARY, parts[at])
            elif kind < 0.85:
                parts[at] = self._put(BINARY, parts[at], self.number())
            else:
                parts[at] = self._put(TERNARY, parts[at], self.number(), self.number())
        while len(parts) > 1:
            if len(parts) > 2 and self.often(0.3):
                parts = [self._put(TERNARY, *parts[:3]), *parts[3:]]
            elif self.often(0.15):
                condition = self.comparison(parts[0], parts[1])
                parts = [f"({parts[0]} if {condition} else {parts[1]})", *parts[2:]]
            else:
                parts = [self._put(BINARY, *parts[:2]), *parts[2:]]
        return parts[0]

    def condition(self, a: str) -> str:
        return self._put(CONDITIONS, a)

    def comparison(self, a: str, b: str) -> str:
        return self._put(COMPARED, a, b)

    def whole(self, leaves: Sequence[str], steps: int) -> str:
        """An expression of whole numbers over `leaves`."""
        value = leaves[0]
        for _ in range(steps):
            value = self._put(WHOLE, value, self.one((*leaves, "3", "7", "1")))
        return value

    def _put(self, templates: Sequence[str], *operands: str) -> str:
        inside = {letter: f"({operand})" for letter, operand in zip("abc", operands, strict=False)}
        return f"({self.one(templates).format(**inside)})"
