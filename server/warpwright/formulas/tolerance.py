"""How far the outputs of a formula may lie from the reference: a bound for each element, from the operations.

For each stage there is a second one, `error of <stage>`, whose expression bounds the error that a kernel makes with the
first (`with_errors`). The reference evaluates both. So the bound of `a - b` where both are nearly equal is as large as
the roundings before it make it, and that of a copy is 0. What is bounded is the distance before the result is stored;
`numpy_agreement` rounds both ends of the interval to the type of the output.

The rules, with u half the distance from 1 to the next number of the type that is computed in (`types.computed`):

- An operation of + - * / rounds by u |result| (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed.
  2002, (2.4); running error bounds as in 3.3). An error of its operands is handed on by its derivative.
- A sum of n terms errs by u g(n) times the largest sum in between, in whatever order it is added. The bound that always
  holds has g(n) = n - 1 and the sum of the terms' sizes (Higham, 4.2, (4.4)). Roundings that are independent give
  6 sqrt(n) with a probability that is close to 1 (Higham and Mary, A New Approach to Probabilistic Rounding Error
  Analysis, SIAM J. Sci. Comput. 41(5), 2019), and terms whose signs follow no order keep the sums in between below that
  of all and 8 roots of the sum of squares, as a random walk does. The smaller ones are taken, and 4 more for a division
  or a conversion at the end. A tensor core cuts off instead of rounding, which is not independent: sums of inputs of
  less than 32 bits have n / 4 more.
- Weights that are computed and multiply an array of 16 bits, as a softmax does, may be rounded to that type: a tensor
  core takes both factors alike (T. Dao et al., FlashAttention, NeurIPS 2022, as it is implemented). These roundings are
  independent: 6 roots of the sum of their squares.
- A function errs by the units in the last place of the table in the CUDA C++ Programming Guide (Mathematical Functions
  Appendix, Standard Functions); one that is put together by what its parts give. Complex `tan` and `tanh` divide by
  what cancels out near a pole, so their error grows with the square of the result there.
- What jumps (`round`, `floor`, a cast to whole numbers, a comparison, `argmax`) has no error where its operand has
  none, and else errs as far as it jumps within the error of its operand.
- All bounds are taken twice, for the terms of second order and the reference's own roundings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from warpwright.formulas.functions import COMPARISONS
from warpwright.formulas.literals import as_computed
from warpwright.formulas.model import Formula, Stage, Tensor
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, Reduce, rebuilt, walk
from warpwright.formulas.types import TYPES, ElementType, computed
from warpwright.formulas.typing_rules import as_precise, settled, types_of

SAFETY = 2.0
DEVIATIONS = 6.0
SPREAD = 8.0
AT_THE_END = 4.0

Terms = tuple[Expr, ...]
"""What adds up to an error; nothing where there is none."""

ULPS = {
    "sqrt": 0.5, "rsqrt": 2, "cbrt": 1, "exp": 2, "exp2": 2, "expm1": 1, "log": 1, "log2": 1, "log10": 2, "log1p": 1,
    "sin": 2, "cos": 2, "tan": 4, "asin": 2, "acos": 2, "atan": 2, "atan2": 3, "sinh": 3, "cosh": 2, "tanh": 2,
    "asinh": 3, "acosh": 4, "atanh": 3, "erf": 2, "erfc": 5, "lgamma": 6, "hypot": 3, "pow": 4, "**": 4, "rcp": 1,
    "j0": 9, "j1": 9, "sigmoid": 4, "silu": 5, "softplus": 6, "uniform": 0, "copysign": 0, "conj": 0, "real": 0,
    "imag": 0, "complex": 0, "abs": 0,
}  # fmt: skip
"""Units in the last place, by function: the larger of f32 and f64."""
_BESSEL_FAR = 2.2e-6
"""The largest absolute error of j0f and j1f beyond 8, of the same table."""
_COMPLEX = 8.0
"""Of an operation on complex numbers, as which several real ones are done, in units of u."""
_OF_ARGUMENT = ("gelu", "gelu_tanh")
"""Their error is one of 1 + erf or 1 + tanh times the argument, not relative to the result."""
_EXACT = ("neg", "relu", "abs", "real", "imag", "conj", "copysign", "complex", "fmax", "fmin", "max", "min", "clamp")
_STEPS = ("floor", "ceil", "round", "trunc", "sign")


def error_name(stage: str) -> str:
    """The stage that bounds the error of another. No stage of a text has a blank in its name."""
    return f"error of {stage}"


def with_errors(formula: Formula) -> Formula:
    """The formula with a stage more for each, as an output where that is one.

    >>> from warpwright.formulas.printer import shown
    >>> from warpwright.formulas.resolve import formula_of
    >>> for stage in with_errors(formula_of("y[i] = x[i]")).stages: print(stage.name, "=", shown(stage.value))
    y = x[i]
    error of y = 0.0
    """
    return _Errors(as_computed(formula)).formula()


@dataclass
class _Errors:
    given: Formula
    dims: dict[str, Expr] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    exact: dict[str, bool] = field(default_factory=dict)
    stages: list[Stage] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._type_of = types_of(self.named)

    def formula(self) -> Formula:
        self.dims = dict(self.given.dims)
        self.tensors = dict(self.given.tensors)
        for stage in self.given.stages:
            self.stages.append(stage)
            self.stages += self.scattered(stage) if stage.combine else [self.of_stage(stage)]
        errors = tuple(error_name(each) for each in self.given.written)
        written = (*self.given.written, *errors)
        return replace(self.given, stages=tuple(self.stages), dims=self.dims, tensors=self.tensors, written=written)

    # Stages

    def of_stage(self, stage: Stage) -> Stage:
        kind = TYPES[stage.type]
        terms = self.of(stage.value, kind)
        if kind.kind == "bool":
            unsure = self.unsure(stage.value)
            terms = () if unsure is None else (_chosen(unsure, Num(1.0), Num(0.0)),)
        elif kind.kind == "integer" and self.type(stage.value).is_float:
            terms = self.stepped(lambda x: Call(kind.name, (x,)), stage.value, terms)
        if not stage.primed:
            self.exact[stage.name] = not terms
        return Stage(error_name(stage.name), stage.dims, _scaled(SAFETY, terms), "f64", stage.temporary)

    def scattered(self, stage: Stage) -> list[Stage]:
        """How often and how much is added to an element is known only when it is done, so that is added up, too."""
        kind = TYPES[stage.type]
        u = 2.0**-kind.digits if kind.digits else 0.0
        extents = self.given.extents_of(stage.name)
        dims: list[str] = []
        for extent in extents:
            dims.append(f"{stage.name} {len(dims)}")
            self.dims[dims[-1]] = extent
        place = tuple(Name(each) for each in dims)
        own = self.of(stage.value, kind)
        steps = stage.combine in ("max", "min")

        def part(name: str, value: Expr, combine: str = "+") -> Load:
            full = f"{name} of {stage.name}"
            self.tensors[full] = Tensor(full, "f64", extents, "out")
            found.append(Stage(full, stage.dims, value, "f64", True, stage.own_index, combine))
            return Load(full, place)

        found: list[Stage] = []
        error: Terms = ()
        if steps:
            error = (Call("max", (part("given", _total(own), "max"), Num(0.0))),) if own else ()
        elif u:
            count, size = part("count", Num(1.0)), part("size", _size(stage.value), stage.combine)
            before = _size(Load(stage.name, place)) if stage.keeps else None
            if stage.combine == "*":
                whole = size if before is None else _product(before, size)
                given = part("given", Call("/", (_total(own), _size(stage.value)))) if own else Num(0.0)
                error = (_product(whole, Call("+", (_product(Num(u), count), given))),)
            else:
                whole = size if before is None else Call("+", (before, size))
                error = (_product(Num(u), count, whole), *((part("given", _total(own)),) if own else ()))
        self.exact[stage.name] = not error
        found.append(Stage(error_name(stage.name), tuple(dims), _scaled(SAFETY, error), "f64", stage.temporary))
        return found

    # Types

    def named(self, name: str) -> ElementType:
        if name in self.dims or name in self.given.sizes:
            return TYPES["i64"]
        own = next((each for each in self.stages if each.name == name), None)
        return TYPES[own.type] if own is not None else self.given.type_of(name)

    def type(self, node: Expr) -> ElementType:
        return settled(self._type_of(node))

    @staticmethod
    def unit(kind: ElementType) -> float:
        """u of what is computed with values of a type; 0 for whole numbers."""
        own = computed(kind)
        return 2.0**-own.digits if own.digits else 0.0

    def rounding(self, node: Expr, kind: ElementType, units: float = 1.0) -> Terms:
        """A rounding of the node's value; what is infinite was not rounded."""
        u = self.unit(kind) * units * (_COMPLEX if kind.kind == "complex" else 1.0)
        return (_product(Num(u), Call("finite", (_size(node),))),) if u else ()

    # Expressions

    def of(self, node: Expr, within: ElementType, *, last: bool = True) -> Terms:
        """The error of an expression. Literals alone are computed in the type `within`, with whole numbers in
        one that is as precise; without `last` the rounding of the outermost operation is left out, as another one
        accounts for it."""
        match node:
            case Num() | Name():
                return ()
            case Load():
                return self.of_load(node)
            case Reduce():
                return self.of_reduction(node)
            case Call():
                return self.of_call(node, within, last)

    def of_load(self, node: Load) -> Terms:
        stage = self.given.stage(node.tensor)
        found: list[Expr] = []
        if stage is not None and not self.exact[node.tensor]:
            outside = Num(0.0) if isinstance(node.outside, Num) else node.outside
            found.append(Load(error_name(node.tensor), node.index, outside))
        if stage is not None and TYPES[stage.type].bits < computed(TYPES[stage.type]).bits and _digits(stage.type):
            found.append(_product(Num(2.0 ** -_digits(stage.type)), Call("finite", (_size(node),))))
        moved = [term for index in node.index for term in self.of(index, TYPES["i64"])]
        if moved:
            found.append(_chosen(Call(">", (_total(moved), Num(0.0))), Num(math.inf), Num(0.0)))
        return tuple(found)

    def of_call(self, node: Call, within: ElementType, last: bool) -> Terms:
        name, args, kind = node.name, node.args, self.type(node)
        if not self._type_of(node).bits and kind.is_float:
            kind = within
        kind = as_precise(node, kind, within, self._type_of)
        errors = [self.of(each, kind) for each in args]
        if kind.kind == "bool":
            return ()
        if name == "select":
            return self.of_choice(node, errors)
        if name in TYPES:
            return self.of_cast(args[0], kind, errors[0])
        if name in _STEPS:
            return self.stepped(lambda x: Call(name, (x,)), args[0], errors[0])
        own = self.rounding(node, kind) if last and name not in _EXACT else ()
        sizes = [_size(each) for each in args]
        totals = [_total(each) for each in errors]
        match name:
            case "+" | "-" | "complex":
                return (*errors[0], *errors[1], *own)
            case "*" | "square" | "fma":
                one, other = (0, 0) if name == "square" else (0, 1)
                found = [_product(sizes[other], term) for term in errors[one]]
                found += [_product(sizes[one], term) for term in errors[other]]
                if name == "fma":  # the reference rounds the product, too
                    found += [*errors[2], *self.rounding(Call("*", args[:2]), kind)]
                return (*found, *own)
            case "/":
                whole = [*errors[0], *(_product(_size(node), term) for term in errors[1])]
                return (*(Call("/", (term, sizes[1])) for term in whole), *own, *own, *own)
            case "//" | "%":
                return self.of_remainder(node, kind, errors)
            case "fmod":
                return self.of_remainder(node, kind, errors) if errors[0] or errors[1] else ()
            case "max" | "min" | "fmax" | "fmin" | "clamp":
                some = [_total(each) for each in errors if each]
                return (_largest(some),) if some else ()
            case "pow" | "**":
                return self.of_power(node, kind, errors)
            case "hypot" | "copysign":
                return (*errors[0], *(errors[1] if name == "hypot" else ()), *self.rounding(node, kind, 2 * ULPS[name]))
            case "atan2":
                size = Call("hypot", args)
                steps = [Call("/", (term, size)) for each in errors for term in each]
                return (*steps, *self.rounding(node, kind, 2 * ULPS[name]))
            case "normal":
                return (_product(Num(16 * self.unit(kind)), Call("+", (_size(node), Num(1.0)))),)
            case _ if kind.kind == "integer":
                return tuple(term for each in errors for term in each)
        if len(args) != 1:
            return self.rounding(node, kind, 2 * ULPS.get(name, 1.0))
        is_complex = self.type(args[0]).kind == "complex"
        slope = _complex_slope if is_complex else _slope
        handed = (slope(name, args[0], node, totals[0]),) if errors[0] else ()
        if name in _OF_ARGUMENT:
            return (*handed, _product(Num(8 * self.unit(kind)), Call("finite", (sizes[0],))))
        own = self.rounding(node, kind, 2 * ULPS.get(name, 0.0)) if name not in _EXACT else ()
        if is_complex and name in ("tan", "tanh"):
            own = tuple(_product(each, _steepness(node)) for each in own)
        if is_complex and name == "abs":
            own = self.rounding(node, kind, 2 * ULPS["hypot"])
        if name in ("j0", "j1"):
            own = (*own, Num(_BESSEL_FAR if kind.digits == 24 else 5e-12))
        if name == "lgamma":
            own = (*own, Num(64 * self.unit(kind)))  # near 1 and 2, where it is 0
        return (*handed, *own)

    def of_choice(self, node: Call, errors: list[Terms]) -> Terms:
        condition, one, other = node.args
        unsure = self.unsure(condition)
        found: Terms = ()
        if errors[1] or errors[2]:
            found = (_chosen(condition, _total(errors[1]), _total(errors[2])),)
        if unsure is not None:
            far = _total((_size(Call("-", (one, other))), *errors[1], *errors[2]))
            found = (_chosen(unsure, far, _total(found)),)
        return found

    def of_cast(self, operand: Expr, kind: ElementType, error: Terms) -> Terms:
        if kind.kind == "integer":
            return (
                self.stepped(lambda x: Call(kind.name, (x,)), operand, error) if self.type(operand).is_float else error
            )
        narrows = self.type(operand).digits > kind.digits or computed(self.type(operand)).digits > kind.digits
        if not error or not kind.digits:
            return error
        # What is rounded to a grid may fall on the next point of it.
        return (*error, *((_product(Num(2.0 ** (1 - kind.digits)), _size(operand)),) if narrows else ()))

    def stepped(self, step: Callable[[Expr], Expr], operand: Expr, error: Terms) -> Terms:
        """Of a function that grows in steps."""
        if not error:
            return ()
        total = _scaled(SAFETY, error)
        ends = [step(Call(sign, (operand, total))) for sign in ("+", "-")]
        return (Call("-", (Call("f64", (ends[0],)), Call("f64", (ends[1],)))),)

    def of_remainder(self, node: Call, kind: ElementType, errors: list[Terms]) -> Terms:
        one, other = node.args
        step = "trunc" if node.name == "fmod" else "floor"
        if not errors[0] and not errors[1] and (node.name == "%" or kind.kind == "integer"):
            return self.rounding(other, kind) if node.name == "%" else ()
        quotient = Call("/", (one, other))
        jump = self.stepped(lambda x: Call(step, (x,)), quotient, self.of(quotient, kind))
        if node.name == "//":
            return jump
        whole = _product(_size(Call(step, (quotient,))), _total(errors[1]))
        return (*errors[0], whole, *(_product(_size(other), term) for term in jump), *self.rounding(other, kind))

    def of_power(self, node: Call, kind: ElementType, errors: list[Terms]) -> Terms:
        base, exponent = node.args
        found: list[Expr] = []
        if errors[0]:
            steps = Call("*", (exponent, Call(node.name, (base, Call("-", (exponent, Num(1)))))))
            found.append(_product(_size(steps), _total(errors[0])))
        if errors[1]:
            found.append(_product(_size(Call("*", (Call("log", (_size(base),)), node))), _total(errors[1])))
        return (*found, *self.rounding(node, kind, 2 * ULPS["pow"]))

    # Reductions

    def of_reduction(self, node: Reduce) -> Terms:
        kind = self.type(node)
        body = self.of(node.body, kind, last=node.op not in ("sum", "mean") or bool(node.accumulate))
        u = self.unit(TYPES[node.accumulate] if node.accumulate else kind)
        match node.op:
            case "sum" | "mean":
                return self.of_sum(node, kind, body, u)
            case "max" | "min":
                return self.of_largest(node, kind, body)
            case "prod":
                own: Terms = (_product(Num(u), self.growth(node), _size(node)),) if u else ()
                relative = Call("/", (_total(body), _size(node.body)))
                return (*((_product(_size(node), replace(node, op="sum", body=relative)),) if body else ()), *own)
            case "logsumexp":
                most = (replace(node, op="max", body=_total(body), accumulate=""),) if body else ()
                size = Call("+", (_product(Num(4.0), Call("finite", (_size(node),))), self.growth(node)))
                return (*most, _product(Num(u), Call("+", (size, Num(16.0)))))
            case "var" | "std":
                return self.of_variance(node, body, u)
            case "argmax" | "argmin":
                return self.of_place(node, body)
        return ()

    def of_sum(self, node: Reduce, kind: ElementType, body: Terms, u: float) -> Terms:
        # Each term is a sum of its own: one of products stays a matrix product.
        found: list[Expr] = [replace(node, body=term, accumulate="") for term in body]
        if node.accumulate:
            found += self.rounding(node, kind)
        if u:
            growth = self.growth(node)
            if any(isinstance(each, Load) and self.type(each).bits < 32 for each in walk(node.body)):
                growth = Call("+", (growth, _product(Num(0.25), self.length(node))))
            units = Num(u * (_COMPLEX if kind.kind == "complex" else 1.0))
            plain, size = replace(node, accumulate=""), _size(node.body)
            spread: Expr = Call("sqrt", (replace(plain, body=Call("square", (size,))),))
            if node.op == "mean":
                spread = Call("/", (spread, Call("sqrt", (self.length(node),))))
            mixed = Call("+", (_size(plain), _product(Num(SPREAD), spread)))
            found.append(_product(units, growth, Call("min", (replace(plain, body=size), mixed))))
        return (*found, *self.of_weights(node))

    def of_weights(self, node: Reduce) -> Terms:
        """What it may add that a tensor core takes computed weights in the type of the array that they weigh."""
        match node.body:
            case Call(name="*", args=(one, other)) if node.op == "sum" and not node.accumulate:
                array, weight = (other, one) if self.weighs(other, one, node) else (one, other)
                if not self.weighs(array, weight, node):
                    return ()
            case _:
                return ()
        u, size = 2.0 ** -self.type(array).digits, _product(_size(weight), _size(array))
        apart = Call("sqrt", (replace(node, body=Call("square", (size,))),))
        rounded = _product(Num(u), Call("min", (replace(node, body=size), _product(Num(DEVIATIONS), apart))))
        if self.type(array).name != "f16":
            return (rounded,)
        # What is less than the smallest number of the type is lost; the largest weight is 1 there.
        most = replace(node, op="max", body=_size(weight))
        return (rounded, _product(Num(2.0**-25), most, replace(node, body=_size(array))))

    def weighs(self, array: Expr, weight: Expr, node: Reduce) -> bool:
        """Whether a sum is a matrix product of an array of 16 bits and of weights that are computed."""
        is_array = isinstance(array, Load) and self.given.stage(array.tensor) is None and array.tensor in self.tensors
        if not is_array or self.type(array).name not in ("f16", "bf16") or computed(self.type(weight)).name != "f32":
            return False
        if not any(
            isinstance(each, Call) or (isinstance(each, Load) and self.given.stage(each.tensor))
            for each in walk(weight)
        ):
            return False
        one, other = (_names(each) for each in (array, weight))
        return {each.name for each in node.ranges} <= one & other and bool(one - other) and bool(other - one)

    def of_largest(self, node: Reduce, kind: ElementType, body: Terms) -> Terms:
        """How far the largest moves where every element does by its error: a far smaller one does not count."""
        if not body:
            return ()
        plain = replace(node, accumulate="")
        up = Call("-", (replace(plain, body=Call("+", (node.body, _total(body)))), plain))
        down = Call("-", (plain, replace(plain, body=Call("-", (node.body, _total(body))))))
        own = self.rounding(node, kind, 4) if kind.digits == 53 else ()  # the reference's own, in these differences
        return (_chosen(Call("isfinite", (plain,)), Call("max", (up, down)), Num(0.0)), *own)

    def of_variance(self, node: Reduce, body: Terms, u: float) -> Terms:
        variance = replace(node, op="var", accumulate="")
        mean = replace(node, op="mean", body=_size(node.body), accumulate="")
        growth = self.growth(node)
        found: list[Expr] = [_product(Num(u), Call("+", (growth, Num(4.0))), variance)]
        found.append(Call("square", (_product(Num(u), growth, mean),)))
        if body:
            squares = replace(node, op="mean", body=Call("square", (_total(body),)), accumulate="")
            found += [_product(Num(2.0), Call("sqrt", (Call("*", (variance, squares)),))), squares]
        return (_slope("sqrt", variance, node, _total(found)),) if node.op == "std" else tuple(found)

    def of_place(self, node: Reduce, body: Terms) -> Terms:
        """The index is bounded by nothing where two values are as near as their errors."""
        if not body:
            return ()
        names = {each.name: f"{each.name} again" for each in node.ranges}
        self.dims.update((new, self.dims[old]) for old, new in names.items())
        again = _renamed(replace(node, op=node.op[3:], accumulate=""), names)
        error = _scaled(2 * SAFETY, (_renamed(replace(node, op="max", body=_total(body), accumulate=""), names),))
        near = Call("<=", (_size(Call("-", (node.body, again))), error))
        near = Call("and", (near, Call(">", (error, Num(0.0)))))  # values without error tie as the formula says
        count = replace(node, op="sum", body=_chosen(near, Num(1.0), Num(0.0)), accumulate="")
        return (_chosen(Call(">", (count, Num(1.0))), Num(math.inf), Num(0.0)),)

    def length(self, node: Reduce) -> Expr:
        if any(each.lower is not None or each.upper is not None for each in node.ranges):
            return replace(node, op="sum", body=Num(1.0), accumulate="")
        return Call("f64", (_product(*(self.dims[each.name] for each in node.ranges)),))

    def growth(self, node: Reduce) -> Expr:
        """g(n)."""
        length = self.length(node)
        likely = _product(Num(DEVIATIONS), Call("sqrt", (length,)))
        return Call("+", (Call("min", (length, likely)), Num(AT_THE_END)))

    # Conditions

    def unsure(self, node: Expr) -> Expr | None:
        """Whether roundings may turn a condition; None where they cannot."""
        match node:
            case Call(name="and" | "or" | "not" | "&" | "|" | "^", args=args):
                some = [each for each in map(self.unsure, args) if each is not None]
                return None if not some else some[0] if len(some) == 1 else Call("or", (some[0], some[1]))
            case Call(name=name, args=(one, other)) if name in COMPARISONS:
                kind = self.type(Call("+", (one, other)))
                error = (*self.of(one, kind), *self.of(other, kind))
                return Call("<=", (_size(Call("-", (one, other))), _scaled(SAFETY, error))) if error else None
            case Load(tensor=tensor) if self.given.stage(tensor) is not None and not self.exact[tensor]:
                return Call(">", (Load(error_name(tensor), node.index, node.outside), Num(0.0)))
            case Reduce(op="any" | "all", body=body):
                inner = self.unsure(body)
                return None if inner is None else replace(node, op="any", body=inner, accumulate="")
        return None


def _slope(name: str, x: Expr, value: Expr, error: Expr) -> Expr:
    """How far an error of x moves a function of it."""

    def over(divisor: Expr) -> Expr:
        return Call("/", (error, divisor))

    def one(sign: str, other: Expr) -> Expr:
        return Call(sign, (Num(1.0), other))

    size, square = _size(value), Call("*", (x, x))
    match name:
        case "exp" | "cosh" | "sinh":
            far = Call("cosh" if name != "exp" else "exp", (Call("+", (_size(x) if name != "exp" else x, error)),))
            # An error that is larger than all numbers leaves exp(-1e30) what it is, 0.
            return Call(
                "fmin", (_product(Call("cosh", (x,)) if name == "sinh" else size, Call("expm1", (error,))), far)
            )
        case "exp2":
            return Call("fmin", (_product(size, Call("expm1", (error,))), Call("exp2", (Call("+", (x, error)),))))
        case "expm1":
            return _product(Call("exp", (x,)), Call("expm1", (error,)))
        case "log" | "log2" | "log10" | "lgamma" | "log1p":
            divisor = _size(x) if name != "log1p" else _size(one("+", x))
            step = over(divisor)
            if name == "lgamma":
                step = _product(error, Call("+", (Call("abs", (Call("log", (_size(x),)),)), one("/", _size(x)))))
            return _product(Num(1.5), step) if name == "log2" else step
        case "sqrt":
            return Call("fmin", (over(size), Call("sqrt", (error,))))
        case "cbrt":
            return Call("fmin", (over(_product(size, size)), Call("cbrt", (error,))))
        case "rsqrt":
            return _product(error, size, size, size)
        case "rcp":
            return _product(error, size, size)
        case "tan":
            return _product(error, one("+", Call("*", (value, value))))
        case "asin" | "acos":
            return over(Call("sqrt", (one("-", square),)))
        case "acosh":
            return over(Call("sqrt", (Call("-", (square, Num(1.0))),)))
        case "atanh":
            return over(_size(one("-", square)))
        case "gelu" | "gelu_tanh" | "silu" | "erf" | "erfc":
            return _product(Num(1.2), error)
    return error  # what is no steeper than 1: sin, tanh, sigmoid, relu, abs, ...


def _complex_slope(name: str, x: Expr, value: Expr, error: Expr) -> Expr:
    """`_slope` where x is complex."""
    match name:
        case "exp":
            return _product(_size(value), Call("expm1", (error,)))
        case "sin" | "cos":
            return _product(error, Call("+", (_size(Call("sin", (x,))), _size(Call("cos", (x,))))))
        case "tan" | "tanh":
            return _product(error, _steepness(value))
        case "log" | "sqrt" | "rcp" | "rsqrt":
            return _slope(name, x, value, error)
    return error


def _steepness(tangent: Expr) -> Expr:
    """How steep a tangent is at most, by its value."""
    return Call("+", (Num(1.0), Call("square", (_size(tangent),))))


def _digits(kind: str) -> int:
    return TYPES[kind].digits


def _names(node: Expr) -> set[str]:
    return {each.name for each in walk(node) if isinstance(each, Name)}


def _size(node: Expr) -> Expr:
    """|node|, of a product as that of its factors."""
    match node:
        case Num(value=value):
            return Num(abs(value))
        case Call(name="*" | "square", args=args):
            return Call(node.name, tuple(map(_size, args)))
        case Call(name="neg", args=(inner,)):
            return _size(inner)
        case Call(name="abs"):
            return node
    return Call("abs", (node,))


def _product(*factors: Expr) -> Expr:
    left = [each for each in factors if each not in (Num(1), Num(1.0))]
    total: Expr = left[0] if left else Num(1.0)
    for each in left[1:]:
        total = Call("*", (total, each))
    return total


def _total(terms: tuple[Expr, ...] | list[Expr]) -> Expr:
    total: Expr = terms[0] if terms else Num(0.0)
    for each in terms[1:]:
        total = Call("+", (total, each))
    return total


def _scaled(factor: float, terms: tuple[Expr, ...]) -> Expr:
    return Call("*", (Num(factor), _total(terms))) if terms else Num(0.0)


def _largest(nodes: list[Expr]) -> Expr:
    most = nodes[0]
    for each in nodes[1:]:
        most = Call("max", (most, each))
    return most


def _chosen(condition: Expr, one: Expr, other: Expr) -> Expr:
    return Call("select", (condition, one, other))


def _renamed(node: Expr, names: Mapping[str, str]) -> Expr:
    def change(each: Expr) -> Expr:
        if isinstance(each, Name):
            return replace(each, name=names.get(each.name, each.name))
        if isinstance(each, Reduce):
            return replace(each, ranges=tuple(replace(r, name=names.get(r.name, r.name)) for r in each.ranges))
        return each

    return rebuilt(node, change)
