"""Operators that compute each element from those at the same index."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from warpwright.formulas.aten.graph import Shape
from warpwright.formulas.aten.indices import Index, add, mul, reshaped, same
from warpwright.formulas.aten.operators import OPERATORS, operator
from warpwright.formulas.aten.values import Builder, NoFormulaError, Value, broadcast, number, weight
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, Reduce, walk

Element = Callable[..., Expr]


def call(name: str, *args: Expr | float | int) -> Expr:
    """A function or an operator of the language, on expressions and numbers.

    >>> call("+", Num(1), 2)
    Call(name='+', args=(Num(value=1), Num(value=2)))
    """
    return Call(name, tuple(each if not isinstance(each, bool | int | float) else Num(each) for each in args))


def select(condition: Expr, then: Expr | float, otherwise: Expr | float) -> Expr:
    return call("select", condition, then, otherwise)


def shared(b: Builder, x: Value) -> Value:
    """An operand that an expression reads more than once: named where it is more than one operator."""
    return b.named(x, f"{b.own}_in") if weight(x.at(b.dims(x.extents))) > 1 else x


def pointwise(b: Builder, out: Shape, element: Element, *operands: Any) -> Value:
    """`element` of operands that are broadcast to the result. Where an operand is a view of other extents, so is the
    result, if that makes the other operands' indices no worse."""
    values = [each if isinstance(each, Value) else number(each) for each in operands]

    def of(extents: Index) -> Callable[[Index], Expr]:
        readers = [broadcast(each, extents) for each in values]
        return lambda index: element(*[read(index) for read in readers])

    origins = [
        v.origin for v in values
        if v.origin is not None and len(v.extents) == len(out.extents) and all(map(same, v.extents, out.extents))
    ]  # fmt: skip
    for origin in origins[:1]:
        own = [v.origin if v.origin is not None and v.origin.extents == origin.extents else None for v in values]
        back = reshaped(b.dims(origin.extents), origin.extents, out.extents, b.extents)
        if back is None:
            continue
        others = [broadcast(v, out.extents)(back) for v, o in zip(values, own, strict=True) if o is None]
        if any(isinstance(n, Call) and n.name in ("//", "%") for e in others for n in walk(e)):
            continue

        def at_origin(index: Index, origin: Value = origin, own: list[Value | None] = own) -> Expr:
            old = reshaped(index, origin.extents, out.extents, b.extents)
            assert old is not None
            return element(
                *[
                    broadcast(v, out.extents)(old) if o is None else o.at(index)
                    for v, o in zip(values, own, strict=True)
                ]
            )

        return b.reshape(Value(origin.extents, out.type, at_origin), out.extents)
    return Value(out.extents, out.type, of(out.extents))


def _table(names: dict[str, Element], again: bool = False) -> None:
    """`again`: an element is read more than once."""
    for name, element in names.items():
        OPERATORS[name] = _entered(element, again)


def _entered(element: Element, again: bool = False) -> Callable[..., Value]:
    def made(b: Builder, out: Shape, *operands: Any, **_: Any) -> Value:
        return pointwise(b, out, element, *[shared(b, e) if again else e for e in operands])

    return made


def _function(name: str) -> Element:
    return lambda *args: call(name, *args)


_SAME = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh",
    "tanh", "asinh", "acosh", "atanh", "sqrt", "rsqrt", "erf", "erfc", "lgamma", "sigmoid", "silu", "relu", "sign",
    "floor", "ceil", "round", "trunc", "abs", "square", "isnan", "isinf", "isfinite", "atan2", "hypot", "copysign",
)  # fmt: skip
_table({f"{name}.default": _function(name) for name in _SAME})
_table({
    "neg.default": _function("neg"),
    "reciprocal.default": lambda x: call("/", 1.0, x),
    "sgn.default": _function("sign"),
    "logical_not.default": lambda x: call("not", truth(x)),
    "logical_and.default": lambda x, y: call("and", truth(x), truth(y)),
    "logical_or.default": lambda x, y: call("or", truth(x), truth(y)),
    "logical_xor.default": lambda x, y: call("!=", truth(x), truth(y)),
    "hardsigmoid.default": lambda x: call("/", call("clamp", call("+", x, 3.0), 0.0, 6.0), 6.0),
    "relu6.default": lambda x: call("clamp", x, 0.0, 6.0),
    "log_sigmoid.default": lambda x: call("neg", call("softplus", call("neg", x))),
    "minimum.default": _function("min"),
    "maximum.default": _function("max"),
    "fmin.default": _function("fmin"),
    "fmax.default": _function("fmax"),
    "where.self": select,
    "where.ScalarSelf": select,
    "where.ScalarOther": select,
    "where.Scalar": select,
    "masked_fill.Scalar": lambda x, m, v: select(m, v, x),
    "masked_fill.Tensor": lambda x, m, v: select(m, v, x),
    "fill.Scalar": lambda x, v: v,
})  # fmt: skip
_table({
    "mish.default": lambda x: call("*", x, call("tanh", call("softplus", x))),
    "hardswish.default": lambda x: call("/", call("*", x, call("clamp", call("+", x, 3.0), 0.0, 6.0)), 6.0),
    "lerp.Scalar": lambda x, y, w: call("+", x, call("*", w, call("-", y, x))),
    "lerp.Tensor": lambda x, y, w: call("+", x, call("*", w, call("-", y, x))),
}, again=True)  # fmt: skip
for _name, _sign in {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items():
    _table({f"{_name}.Tensor": _function(_sign), f"{_name}.Scalar": _function(_sign)})
for _name, _sign in {"mul": "*", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "fmod": "fmod"}.items():
    _table({f"{_name}.Tensor": _function(_sign), f"{_name}.Scalar": _function(_sign)})
for _name, _sign in {"bitwise_left_shift": "<<", "bitwise_right_shift": ">>"}.items():
    _table({f"{_name}.Tensor": _function(_sign), f"{_name}.Tensor_Scalar": _function(_sign)})
for _name, _sign in {"lshift": "<<", "rshift": ">>", "and": "&", "or": "|", "xor": "^"}.items():
    _table({f"__{_name}__.Tensor": _function(_sign), f"__{_name}__.Scalar": _function(_sign)})


def truth(node: Expr) -> Expr:
    """The expression as a truth value."""
    compared = isinstance(node, Call) and node.name in ("==", "!=", "<", "<=", ">", ">=", "and", "or", "not", "isnan")
    return node if compared or (isinstance(node, Reduce) and node.op in ("any", "all")) else call("!=", node, 0)


@operator("add.Tensor", "add.Scalar")
def plus(b: Builder, out: Shape, x: Any, y: Any, alpha: float = 1) -> Value:
    return pointwise(b, out, lambda x, y: call("+", x, y if alpha == 1 else call("*", alpha, y)), x, y)


@operator("sub.Tensor", "sub.Scalar")
def minus(b: Builder, out: Shape, x: Any, y: Any, alpha: float = 1) -> Value:
    return pointwise(b, out, lambda x, y: call("-", x, y if alpha == 1 else call("*", alpha, y)), x, y)


@operator("rsub.Scalar", "rsub.Tensor")
def minus_reversed(b: Builder, out: Shape, x: Any, y: Any, alpha: float = 1) -> Value:
    return pointwise(b, out, lambda x, y: call("-", y, x if alpha == 1 else call("*", alpha, x)), x, y)


@operator("div.Tensor", "div.Scalar", "div.Tensor_mode", "div.Scalar_mode", "true_divide.Tensor")
@operator("floor_divide.default", "floor_divide.Scalar")
def over(b: Builder, out: Shape, x: Any, y: Any, rounding_mode: str | None = None) -> Value:
    if b.operator.startswith("floor_divide"):
        rounding_mode = "floor"
    whole = not out.type.startswith(("f", "bf", "c"))
    if rounding_mode == "trunc" and whole:
        raise NoFormulaError("a division of whole numbers that rounds towards 0")
    if rounding_mode == "floor" and whole:
        return pointwise(b, out, _function("//"), x, y)
    rounds = {"floor": "floor", "trunc": "trunc"}.get(rounding_mode or "")
    return pointwise(b, out, lambda x, y: call(rounds, call("/", x, y)) if rounds else call("/", x, y), x, y)


@operator("remainder.Tensor", "remainder.Scalar")
def remainder(b: Builder, out: Shape, x: Any, y: Any) -> Value:
    return pointwise(b, out, _function("%"), x, y)


@operator("pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar")
def power(b: Builder, out: Shape, x: Any, y: Any) -> Value:
    def element(x: Expr, y: Expr) -> Expr:
        known = {2: "square", 0.5: "sqrt", -0.5: "rsqrt", 1: ""}
        if isinstance(y, Num) and y.value in known:
            return call(known[y.value], x) if known[y.value] else x
        return call("pow", x, y)

    return pointwise(b, out, element, x, y)


@operator("bitwise_not.default")
def bitwise_not(b: Builder, out: Shape, x: Value) -> Value:
    return pointwise(b, out, lambda e: call("not", truth(e)) if x.type == "bool" else call("~", e), x)


@operator("addcmul.default")
def addcmul(b: Builder, out: Shape, x: Value, y: Value, z: Value, value: float = 1) -> Value:
    def element(x: Expr, y: Expr, z: Expr) -> Expr:
        both = call("*", y, z)
        return call("+", x, both if value == 1 else call("*", value, both))

    return pointwise(b, out, element, x, y, z)


@operator("addcdiv.default")
def addcdiv(b: Builder, out: Shape, x: Value, y: Value, z: Value, value: float = 1) -> Value:
    def element(x: Expr, y: Expr, z: Expr) -> Expr:
        both = call("/", y, z)
        return call("+", x, both if value == 1 else call("*", value, both))

    return pointwise(b, out, element, x, y, z)


@operator("clamp.default", "clamp.Tensor", "hardtanh.default", "clamp_min.default", "clamp_min.Tensor")
def clamp(b: Builder, out: Shape, x: Value, min: Any = None, max: Any = None, **named: Any) -> Value:
    low, high = named.get("min_val", min), named.get("max_val", max)
    if b.operator == "hardtanh.default":
        low, high = -1.0 if low is None else low, 1.0 if high is None else high
    if low is None:
        return pointwise(b, out, _function("min"), x, high)
    if high is None:
        return pointwise(b, out, _function("max"), x, low)
    return pointwise(b, out, _function("clamp"), x, low, high)


@operator("clamp_max.default", "clamp_max.Tensor")
def clamp_max(b: Builder, out: Shape, x: Value, max: Any) -> Value:
    return pointwise(b, out, _function("min"), x, max)


@operator("gelu.default")
def gelu(b: Builder, out: Shape, x: Value, approximate: str = "none") -> Value:
    return pointwise(b, out, _function("gelu_tanh" if approximate == "tanh" else "gelu"), x)


@operator("leaky_relu.default")
def leaky_relu(b: Builder, out: Shape, x: Value, negative_slope: float = 0.01) -> Value:
    x = shared(b, x)
    return pointwise(b, out, lambda x: select(call(">", x, 0), x, call("*", negative_slope, x)), x)


@operator("prelu.default", "_prelu_kernel.default")
def prelu(b: Builder, out: Shape, x: Value, slope: Value) -> Value:
    x = shared(b, x)
    return pointwise(b, out, lambda x, s: select(call(">", x, 0), x, call("*", s, x)), x, slope)


@operator("elu.default")
def elu(b: Builder, out: Shape, x: Value, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Value:
    def element(x: Expr) -> Expr:
        low = call("*", alpha * scale, call("expm1", x if input_scale == 1 else call("*", x, input_scale)))
        return select(call(">", x, 0), x if scale == 1 else call("*", scale, x), low)

    x = shared(b, x)
    return pointwise(b, out, element, x)


@operator("softplus.default")
def softplus(b: Builder, out: Shape, x: Value, beta: float = 1.0, threshold: float = 20.0) -> Value:
    if beta == 1:
        return pointwise(b, out, _function("softplus"), x)
    return pointwise(b, out, lambda x: call("/", call("softplus", call("*", beta, x)), beta), x)


@operator("threshold.default")
def threshold(b: Builder, out: Shape, x: Value, threshold: float, value: float) -> Value:
    x = shared(b, x)
    return pointwise(b, out, lambda x: select(call("<=", x, threshold), value, x), x)


@operator("logit.default")
def logit(b: Builder, out: Shape, x: Value, eps: float | None = None) -> Value:
    def element(x: Expr) -> Expr:
        inner = x if eps is None else call("clamp", x, eps, 1 - eps)
        return call("log", call("/", inner, call("-", 1.0, inner)))

    return pointwise(b, out, element, x)


# What only hands on, and what is made of nothing


@operator("_to_copy.default", "to.dtype", "prims.convert_element_type.default")
def converted(b: Builder, out: Shape, x: Value, *_: Any, **__: Any) -> Value:
    if x.type == out.type:
        return x
    if out.type == "bool":
        return pointwise(b, out, truth, x)
    return pointwise(b, out, _function(out.type), x)


@operator("clone.default", "alias.default", "detach.default", "lift_fresh_copy.default", "contiguous.default")
@operator("dropout.default", "feature_dropout.default")
def handed_on(b: Builder, out: Shape, x: Value, *rest: Any, **_: Any) -> Value:
    if b.operator.endswith("dropout.default") and (len(rest) < 2 or rest[1]) and (not rest or rest[0] > 0):
        raise NoFormulaError("its random numbers are torch's")
    return x


@operator("native_dropout.default")
def native_dropout(b: Builder, out: Shape, x: Value, p: float, train: bool | None) -> list[Value]:
    if train is not False and p > 0:
        raise NoFormulaError("its random numbers are torch's")
    return [x, Value(x.extents, "bool", lambda index: Num(True))]


@operator("scalar_tensor.default", "lift.default")
def scalar_tensor(b: Builder, out: Shape, value: float, **_: Any) -> Value:
    return Value((), out.type, lambda index: Num(_in(value, out.type)))


@operator("full.default", "full_like.default", "new_full.default")
def full(b: Builder, out: Shape, _of: Any, value: Any, *rest: Any, **__: Any) -> Value:
    value = rest[0] if b.operator == "new_full.default" and rest else value
    if isinstance(value, Value):
        return pointwise(b, out, lambda x: x, value)
    return Value(out.extents, out.type, lambda index: Num(_in(value, out.type)))


@operator("zeros.default", "zeros_like.default", "new_zeros.default", "empty.memory_format", "empty_like.default")
def zeros(b: Builder, out: Shape, *_: Any, **__: Any) -> Value:
    return Value(out.extents, out.type, lambda index: Num(_in(0, out.type)))


@operator("ones.default", "ones_like.default", "new_ones.default")
def ones(b: Builder, out: Shape, *_: Any, **__: Any) -> Value:
    return Value(out.extents, out.type, lambda index: Num(_in(1, out.type)))


@operator("arange.start_step", "arange.start", "arange.default")
def arange(b: Builder, out: Shape, start: Any, end: Any = None, step: Any = 1, **_: Any) -> Value:
    if end is None:
        start = 0
    if not isinstance(start, int) or not isinstance(step, int):
        raise NoFormulaError("its steps are no whole numbers")

    def at(index: Index) -> Expr:
        found = add(Num(start), mul(Num(step), index[0]))
        return found if out.type == "i64" else call(out.type, found)

    return Value(out.extents, out.type, at)


@operator("eye.default", "eye.m")
def eye(b: Builder, out: Shape, *_: Any, **__: Any) -> Value:
    return Value(out.extents, out.type, lambda i: select(call("==", i[0], i[1]), _in(1, out.type), _in(0, out.type)))


@operator("tril.default")
def tril(b: Builder, out: Shape, x: Value, diagonal: int = 0) -> Value:
    return _band(out, x, lambda i, j: call("<=", j, add(i, Num(diagonal))))


@operator("triu.default")
def triu(b: Builder, out: Shape, x: Value, diagonal: int = 0) -> Value:
    return _band(out, x, lambda i, j: call(">=", j, add(i, Num(diagonal))))


def _band(out: Shape, x: Value, inside: Callable[[Expr, Expr], Expr]) -> Value:
    def at(index: Index) -> Expr:
        return select(inside(index[-2], index[-1]), x.at(index), _in(0, out.type))

    return Value(out.extents, out.type, at)


def _in(value: Any, kind: str) -> float | int | bool:
    """A number of a torch scalar in the type of its tensor."""
    if kind == "bool":
        return bool(value)
    if kind.startswith(("f", "bf")):
        return float(value)
    return int(value) if isinstance(value, bool | int) or math.isfinite(value) else value


def is_plain(node: Expr) -> bool:
    """Whether an expression is an element of an array, converted at most."""
    match node:
        case Call(name=name, args=(inner,)) if name in ("f32", "f64", "f16", "bf16"):
            return is_plain(inner)
        case Load(index=index):
            return all(isinstance(each, Name | Num) for each in index)
    return isinstance(node, Num)
