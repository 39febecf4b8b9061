"""The derivative of a formula, as a formula: from the gradients of its results to those of its inputs.

Reverse mode over the normal form. Each stage that a gradient comes to hands it on to what it reads: `x_grad` has at
each element the sum over all places that read it. Where the index says which element that is, it is gathered, else
scattered. What the forward computed in between is computed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from warpwright.formulas.bounds import gapped_strides
from warpwright.formulas.lexer import FormulaError
from warpwright.formulas.model import Formula, Stage, Tensor
from warpwright.formulas.normal import normal
from warpwright.formulas.parser import parse
from warpwright.formulas.printer import printed, shown
from warpwright.formulas.resolve import formula_of
from warpwright.formulas.tree import Call, Declaration, Equation, Expr, Load, Name, Num, Range, Reduce, Written, rebuilt
from warpwright.formulas.tree import walk as nodes
from warpwright.formulas.types import TYPES

PARTIALS: Mapping[str, tuple[str, ...]] = {
    "+": ("g", "g"), "-": ("g", "-g"), "*": ("g * y", "x * g"), "/": ("g / y", "-g * x / (y * y)"), "neg": ("-g",),
    **dict.fromkeys(("**", "pow"), ("g * y * pow(x, y - 1)", "g * pow(x, y) * log(x)")),
    "square": ("2 * g * x",), "fma": ("g * y", "g * x", "g"),
    "exp": ("g * exp(x)",), "exp2": ("g * exp2(x) * 0.6931471805599453",), "expm1": ("g * exp(x)",),
    "log": ("g / x",), "log2": ("g / (x * 0.6931471805599453)",), "log10": ("g / (x * 2.302585092994046)",),
    "log1p": ("g / (1 + x)",), "sin": ("g * cos(x)",), "cos": ("-g * sin(x)",), "tan": ("g * (1 + square(tan(x)))",),
    "asin": ("g * rsqrt(1 - x * x)",), "acos": ("-g * rsqrt(1 - x * x)",), "atan": ("g / (1 + x * x)",),
    "sinh": ("g * cosh(x)",), "cosh": ("g * sinh(x)",), "tanh": ("g * (1 - square(tanh(x)))",),
    "asinh": ("g * rsqrt(x * x + 1)",), "acosh": ("g * rsqrt(x * x - 1)",), "atanh": ("g / (1 - x * x)",),
    "sqrt": ("g * 0.5 * rsqrt(x)",), "rsqrt": ("-0.5 * g * rsqrt(x) / x",), "rcp": ("-g / (x * x)",),
    "cbrt": ("g / (3 * square(cbrt(x)))",), "erf": ("g * 1.1283791670955126 * exp(-x * x)",),
    "erfc": ("-g * 1.1283791670955126 * exp(-x * x)",), "sigmoid": ("g * sigmoid(x) * (1 - sigmoid(x))",),
    "silu": ("g * sigmoid(x) * (1 + x * (1 - sigmoid(x)))",), "softplus": ("g * sigmoid(x)",),
    "relu": ("g if x > 0 else 0.0",), "abs": ("g * sign(x)",),
    "gelu": ("g * (0.5 * erfc(-0.7071067811865476 * x) + x * 0.3989422804014327 * exp(-0.5 * x * x))",),
    "gelu_tanh": (
        "g * (0.5 * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))) + 0.5 * x * (1 - square(tanh("
        "0.7978845608028654 * (x + 0.044715 * x * x * x)))) * 0.7978845608028654 * (1 + 0.134145 * x * x))",
    ),
    "clamp": ("g if x >= y and x <= z else 0.0", "g if x < y else 0.0", "g if x > z else 0.0"),
    **dict.fromkeys(("max", "fmax"), ("g if x > y else 0.5 * g if x == y else 0.0",
                                      "g if y > x else 0.5 * g if x == y else 0.0")),
    **dict.fromkeys(("min", "fmin"), ("g if x < y else 0.5 * g if x == y else 0.0",
                                      "g if y < x else 0.5 * g if x == y else 0.0")),
    "hypot": ("g * x / hypot(x, y)", "g * y / hypot(x, y)"),
    "atan2": ("g * y / (x * x + y * y)", "-g * x / (x * x + y * y)"),
}  # fmt: skip
"""What a gradient g of a function becomes for each of its arguments x, y, z. Of two that tie each gets half, as in
torch."""
FLAT = ("sign", "floor", "ceil", "round", "trunc", "//")
"""Functions whose derivative is 0 nearly everywhere."""
_TRUTHS = ("==", "!=", "<", "<=", ">", ">=", "and", "or", "not", "isnan", "isinf", "isfinite")


class NoDerivativeError(Exception):
    """A formula that has no derivative here: one sentence."""


@dataclass(frozen=True, slots=True)
class Derivative:
    """`text` is a formula whose inputs are gradients of results, named in `given` by the result, and what it reads of
    the forward's inputs; its results are gradients of inputs, named in `made` by the input."""

    text: str
    given: Mapping[str, str]
    made: Mapping[str, str]


def derivative(text: str) -> Derivative:
    """The derivative of a formula. Raises FormulaError and NoDerivativeError.

    >>> print(derivative("y[r] = sum[c] x[r, c] * w[c]").text)
    x: f32[R, C]
    w: f32[C]
    y_grad: f32[R]
    x_grad: f32[R, C]
    w_grad: f32[C]
    x_grad[r, c] = y_grad[r] * w[c]
    w_grad[c] = sum[r] x[r, c] * y_grad[r]
    """
    made = _Backward(normal(formula_of(text))).derivative()
    try:
        formula_of(made.text)
    except FormulaError as error:
        raise NoDerivativeError(f"Its derivative cannot be written as a formula: {error.reason}") from None
    return made


@dataclass(frozen=True, slots=True)
class _Term:
    """A gradient that comes to the element `index` of an array for each value of `scope`."""

    index: tuple[Expr, ...]
    value: Expr
    scope: tuple[Range, ...]


@dataclass
class _Backward:
    formula: Formula
    terms: dict[str, list[_Term]] = field(default_factory=dict)
    equations: list[Equation] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)

    def derivative(self) -> Derivative:
        formula = self.formula
        self._refuse()
        outputs = {each.name for each in formula.stages if not each.temporary and self._is_float(each.name)}
        given = {each.name: self._gradient(each.name) for each in formula.stages if each.name in outputs}
        for stage in reversed(formula.stages):
            if not self._is_float(stage.name):
                continue
            incoming = self._incoming(stage, given.get(stage.name))
            if incoming is not None:
                self._stage(stage, incoming)
        inputs = [each for each in formula.inputs if self._is_float(each.name) and self.terms.get(each.name)]
        if not inputs:
            raise NoDerivativeError("No input of floating point has a gradient.")
        made = {each.name: self._gradient(each.name) for each in inputs}
        results = [self._result(each, made[each.name]) for each in inputs]
        return Derivative(printed(self._written(results, given, made)), given, made)

    def _refuse(self) -> None:
        for each in self.formula.tensors.values():
            if each.base or gapped_strides(each.extents, each.strides) is not None:
                raise NoDerivativeError(f"{each.name} is laid out in a way of its own.")
            if each.role == "in-out":
                raise NoDerivativeError(f"{each.name} is written over, and autograd takes no operator that does that.")
            if TYPES[each.type].kind == "complex":
                raise NoDerivativeError(f"{each.name} is complex.")
        for stage in self.formula.stages:
            if stage.combine not in ("", "+"):
                raise NoDerivativeError(f"{stage.name} keeps only some of the values that meet in it.")

    def _is_float(self, name: str) -> bool:
        return self.formula.type_of(name).is_float

    def _gradient(self, name: str) -> str:
        known = {*self.formula.tensors, *self.formula.scalars, *self.formula.dims, *self.formula.sizes}
        known |= {each.name for each in self.formula.stages}
        if name not in self.names:
            free = (f"{name}_grad{n}" for n in ("", *range(2, 100)))
            self.names[name] = next(each for each in free if each not in known)
        return self.names[name]

    def _incoming(self, stage: Stage, given: str | None) -> Expr | None:
        """The gradient of a stage at each of its elements; None where none comes to it."""
        terms = self.terms.get(stage.name, [])
        if stage.combine:
            if terms:
                raise NoDerivativeError(f"{stage.name} is scattered and read again.")
            return None if given is None else Load(given, stage.own_index)
        own = tuple(Name(each) for each in stage.dims)
        if given is not None and not terms:
            return Load(given, own)
        if not terms:
            return None
        name = self._gradient(stage.name) if given is None else f"{self._gradient(stage.name)}_all"
        total = self._gathered(stage.name, terms, stage.dims)
        total = total if given is None else Call("+", (Load(given, own), total))
        self.equations.append(Equation(name, own, total, temporary=True))
        return Load(name, own)

    def _stage(self, stage: Stage, gradient: Expr) -> None:
        scope = tuple(Range(each) for each in stage.dims)
        if not isinstance(stage.value, Reduce):
            self._walk(stage.value, gradient, scope)
            return
        node = stage.value
        inner = (*scope, *node.ranges)
        if node.op in ("max", "min"):
            if any(isinstance(each, Call) and each.name not in ("*", "neg", "abs") for each in nodes(node.body)):
                raise NoDerivativeError(f"The {node.op} of an expression is not found again to the last bit.")
            own = Load(stage.name, tuple(Name(each) for each in stage.dims))
            is_it = Call("==", (node.body, own))
            ties = f"{self._gradient(stage.name)}_ties"
            count = replace(node, op="sum", body=Call("select", (is_it, Num(1.0), Num(0.0))), accumulate="")
            self.equations.append(Equation(ties, own.index, count, temporary=True))
            shared = Call("/", (gradient, Load(ties, own.index)))
            self._walk(node.body, Call("select", (is_it, shared, Num(0.0))), inner)
        elif node.op == "sum":
            self._walk(node.body, gradient, inner)
        else:
            raise NoDerivativeError(f"The derivative of {node.op} is not written.")

    def _walk(self, node: Expr, gradient: Expr, scope: tuple[Range, ...]) -> None:
        """Hand the gradient of an expression to what it loads."""
        if not any(isinstance(each, Load) and self._is_float(each.tensor) for each in nodes(node)):
            return
        match node:
            case Load(tensor=tensor, index=index, outside=None):
                if self._is_float(tensor):
                    self.terms.setdefault(tensor, []).append(_Term(index, gradient, scope))
            case Load():
                raise NoDerivativeError(f"{shown(node)} reads beyond an extent.")
            case Call(name="select", args=(condition, one, other)):
                self._walk(one, Call("select", (condition, gradient, Num(0.0))), scope)
                self._walk(other, Call("select", (condition, Num(0.0), gradient)), scope)
            case Call(name=name, args=(inner,)) if name in TYPES:
                if TYPES[name].is_float:
                    self._walk(inner, gradient, scope)
            case Call(name=name) if name in FLAT or name in _TRUTHS:
                return
            case Call(name=name, args=args) if name in PARTIALS:
                for own, rule in zip(args, PARTIALS[name], strict=True):
                    self._walk(own, _filled(rule, gradient, args), scope)
            case Call(name=name):
                raise NoDerivativeError(f"The derivative of {name} is not written.")

    def _result(self, tensor: Tensor, name: str) -> Equation:
        terms = self.terms[tensor.name]
        plain = next((each for each in terms if _is_plain(each.index)), None)
        if plain is not None:
            dims = tuple(each.name for each in plain.index if isinstance(each, Name))
            return Equation(name, plain.index, self._gathered(tensor.name, terms, dims))
        if len(terms) > 1:
            raise NoDerivativeError(f"{tensor.name} is read at several places that are computed.")
        return Equation(name, terms[0].index, Reduce("sum", terms[0].scope, terms[0].value))

    def _gathered(self, name: str, terms: Iterable[_Term], dims: tuple[str, ...]) -> Expr:
        """The sum of all gradients that come to the element `dims`."""
        total: Expr | None = None
        for each in terms:
            if not _is_plain(each.index):
                raise NoDerivativeError(f"{name} is read at places that are computed, and elsewhere too.")
            value = self._at(each, dims)
            total = value if total is None else Call("+", (total, value))
        assert total is not None
        return total

    def _at(self, term: _Term, dims: tuple[str, ...]) -> Expr:
        """A gradient at the element `dims`, with the term's own names for these exchanged for them."""
        read = [each.name for each in term.index if isinstance(each, Name)]
        instead = dict(zip(read, dims, strict=True))
        for each in term.scope:
            if each.name not in instead and each.name in dims:
                free = (f"{each.name}{n}" for n in range(2, 100))
                instead[each.name] = next(n for n in free if n not in self.formula.dims and n not in instead.values())

        def renamed(node: Expr) -> Expr:
            return Name(instead[node.name]) if isinstance(node, Name) and node.name in instead else node

        value = rebuilt(term.value, renamed)
        left = []
        for each in term.scope:
            ends = [None if end is None else rebuilt(end, renamed) for end in (each.lower, each.upper)]
            own = replace(each, name=instead.get(each.name, each.name), lower=ends[0], upper=ends[1])
            if each.name in read:
                value = _within(own, value)
            else:
                left.append(own)
        return Reduce("sum", tuple(left), value) if left else value

    def _written(self, results: list[Equation], given: Mapping[str, str], made: Mapping[str, str]) -> Written:
        """What is needed of the forward, and the backward behind it."""
        formula = self.formula
        forward = {
            each.name: Equation(each.name, each.own_index, each.value, each.combine, temporary=True)
            for each in formula.stages
        }
        backward = {each.name: each for each in self.equations}
        needed: dict[str, None] = {}
        todo = [*results]
        while todo:
            one = todo.pop()
            for node in (node for part in (*one.index, one.value) for node in nodes(part)):
                if isinstance(node, Load) and node.tensor not in needed:
                    needed[node.tensor] = None
                    found = backward.get(node.tensor) or forward.get(node.tensor)
                    todo += [found] if found else []
        stages = [each for name, each in forward.items() if name in needed]
        stages += [each for name, each in backward.items() if name in needed]
        gradients = {gradient: name for name, gradient in (*given.items(), *made.items())}
        tensors = [*(each.name for each in formula.inputs if each.name in needed), *given.values(), *made.values()]
        declared = [self._declared(each, gradients.get(each, each)) for each in tensors]
        read = {node.name for each in (*results, *stages) for part in (*each.index, each.value)
                for node in nodes(part) if isinstance(node, Name)}  # fmt: skip
        numbers = [Declaration(name, kind) for name, kind in formula.scalars.items() if name in read]
        return Written((*results, *stages), (*declared, *numbers))

    def _declared(self, name: str, like: str) -> Declaration:
        tensor = self.formula.tensors[like]
        return Declaration(name, tensor.type, tensor.extents)


def _is_plain(index: tuple[Expr, ...]) -> bool:
    """Whether each element of the array is read for one value of the index."""
    names = [each.name for each in index if isinstance(each, Name)]
    return len(names) == len(index) == len(set(names))


def _within(each: Range, value: Expr) -> Expr:
    """A value where a dimension lies in its range, else 0."""
    own = Name(each.name)
    if each.lower is not None:
        value = Call("select", (Call(">=", (own, each.lower)), value, Num(0.0)))
    if each.upper is not None:
        value = Call("select", (Call("<=" if each.closed else "<", (own, each.upper)), value, Num(0.0)))
    return value


@lru_cache(maxsize=256)
def _rule(text: str) -> Expr:
    return parse(f"result = {text}").equations[0].value


def _filled(rule: str, gradient: Expr, args: tuple[Expr, ...]) -> Expr:
    """A partial derivative with the arguments in it; x to a whole power is simpler."""
    instead: dict[str, Expr] = {"g": gradient, **dict(zip("xyz", args, strict=False))}
    if rule.startswith("g * y * pow(") and args[1] == Num(2):
        rule = "2 * g * x"

    def change(node: Expr) -> Expr:
        return instead.get(node.name, node) if isinstance(node, Name) else node

    return rebuilt(_rule(rule), change)
