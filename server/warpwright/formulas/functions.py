"""The functions and reductions of a formula: how many arguments each takes, and of what kind the result is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Result = Literal["float", "same", "bool", "real", "integer"]
"""Of a function: a floating-point number (an integer is converted to f32), the promoted type of the arguments, a truth
value, the real type of a complex one, or an integer of 32 bits."""


@dataclass(frozen=True, slots=True)
class Function:
    """How often it may take an argument, and what it gives. `kinds` are the kinds of arguments that it takes."""

    least: int
    most: int
    result: Result
    kinds: tuple[str, ...] = ("bool", "integer", "float")


_ANY = ("bool", "integer", "float", "complex")
_WHOLE = ("bool", "integer")

FUNCTIONS: dict[str, Function] = {
    **{name: Function(1, 1, "float") for name in (
        "exp2", "expm1", "log2", "log10", "log1p", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh",
        "cbrt", "rsqrt", "erf", "erfc", "lgamma", "sigmoid", "gelu", "gelu_tanh", "silu", "softplus", "rcp", "j0", "j1",
    )},
    **{name: Function(1, 1, "float", _ANY) for name in ("exp", "log", "sin", "cos", "tan", "tanh", "sqrt")},
    **{name: Function(2, 2, "float") for name in ("atan2", "hypot", "copysign")},
    **{name: Function(1, 1, "same") for name in ("relu", "sign", "floor", "ceil", "round", "trunc")},
    **{name: Function(2, 2, "same") for name in ("max", "min", "fmax", "fmin", "fmod")},
    "pow": Function(2, 2, "same", _ANY),
    "abs": Function(1, 1, "real", _ANY),
    "square": Function(1, 1, "same", _ANY),
    "fma": Function(3, 3, "same"),
    "clamp": Function(3, 3, "same"),
    **{name: Function(1, 1, "bool") for name in ("isnan", "isinf", "isfinite")},
    "popc": Function(1, 1, "integer", _WHOLE),
    "clz": Function(1, 1, "integer", _WHOLE),
    "real": Function(1, 1, "real", ("complex",)),
    "imag": Function(1, 1, "real", ("complex",)),
    "conj": Function(1, 1, "same", ("complex",)),
    "complex": Function(2, 2, "same", ("float", "integer")),
    "uniform": Function(2, 2, "float", _WHOLE),
    "normal": Function(2, 2, "float", _WHOLE),
}  # fmt: skip
"""By name. `max` and `min` hand a NaN on, as NumPy and torch do; `fmax` and `fmin` pass over it, as C does. `round`
takes the even neighbour of a half. `uniform(seed, i)` is the number i of the sequence of a seed, in [0, 1); `normal`
likewise."""

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
ARITHMETIC = ("+", "-", "*", "/", "//", "%", "**")
BITS = ("&", "|", "^", "<<", ">>")
LOGIC = ("and", "or", "not")

REDUCTIONS = ("sum", "mean", "max", "min", "prod", "any", "all", "argmax", "argmin", "logsumexp", "var", "std")
"""`var` and `std` divide by the count (no correction). `argmax` and `argmin` give the lowest index of those that
tie."""

KEYWORDS = ("where", "if", "else", "and", "or", "not", "inf", "nan", "pi", "true", "false")
