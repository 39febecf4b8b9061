"""Expressions of a formula in C++."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from warpwright.formulas.bounds import Bounds
from warpwright.formulas.functions import COMPARISONS, LOGIC
from warpwright.formulas.normal import identity
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, Reduce, rebuilt, walk
from warpwright.formulas.types import TYPES, ElementType, computed
from warpwright.formulas.typing_rules import as_precise, settled, type_of, types_of
from warpwright.writer.types import NAMES, gives_other_than_0_of_nan, limits, literal, written

TERNARY, OR, AND, BIT_OR, BIT_XOR, BIT_AND, EQUAL, LESS, SHIFT, SUM, PRODUCT, UNARY, ATOM = range(1, 14)
_LEVELS = {
    "or": OR, "and": AND, "|": BIT_OR, "^": BIT_XOR, "&": BIT_AND, "==": EQUAL, "!=": EQUAL, "<": LESS, "<=": LESS,
    ">": LESS, ">=": LESS, "<<": SHIFT, ">>": SHIFT, "+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT,
}  # fmt: skip
_SIGNS = {"or": "||", "and": "&&"}

_MATH = {
    "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log", "log2": "log2", "log10": "log10", "log1p": "log1p",
    "sin": "sin", "cos": "cos", "tan": "tan", "asin": "asin", "acos": "acos", "atan": "atan", "sinh": "sinh",
    "cosh": "cosh", "tanh": "tanh", "asinh": "asinh", "acosh": "acosh", "atanh": "atanh", "cbrt": "cbrt", "sqrt":
    "sqrt", "rsqrt": "rsqrt", "erf": "erf", "erfc": "erfc", "lgamma": "lgamma", "atan2": "atan2", "hypot": "hypot",
    "copysign": "copysign", "floor": "floor", "ceil": "ceil", "round": "rint", "trunc": "trunc", "fmax": "fmax",
    "fmin": "fmin", "fmod": "fmod", "fma": "fma", "j0": "j0", "j1": "j1",
}  # fmt: skip
"""Functions of CUDA's mathematical library; that of a float has an f behind it."""
_HELPERS = ("square", "cube", "sigmoid", "silu", "gelu", "gelu_tanh", "softplus", "relu", "sign", "uniform", "normal")
_FAST = ("sigmoid", "silu", "gelu", "gelu_tanh", "softplus")
"""Helpers that have a faster version for results of 16 bits or less."""
_KEEPS_RELATIVE_ERRORS = (
    "*",
    "/",
    "neg",
    "abs",
    "fmax",
    "fmin",
    "max",
    "min",
    "relu",
    "copysign",
    "f32",
    "f16",
    "bf16",
)
_COMPLEX = ("exp", "log", "sin", "cos", "tan", "tanh", "sqrt", "pow")


@dataclass
class Expressions:
    """Writes expressions of one kernel. `place` gives the C++ of a load and its own type (the one that the text has,
    such as float for what was converted); `named` that of a dimension, an extent or a scalar. `helpers` collects what
    is called; `fast` are the functions of which the faster version does."""

    type_named: Callable[[str], ElementType]
    place: Callable[[Load], tuple[str, ElementType]]
    named: Callable[[str], str]
    bounds: Bounds
    helpers: set[str] = field(default_factory=set)
    fast: frozenset[Expr] = frozenset()
    types: set[str] = field(default_factory=set)

    def of(self, node: Expr, least: int = TERNARY, wanted: ElementType | None = None) -> str:
        """The expression, in parentheses where it binds less tightly than `least`. A literal is of the type
        `wanted`."""
        text, level = self._text(node, wanted)
        return f"({text})" if level < least else text

    def type_of(self, node: Expr) -> ElementType:
        """The type in which the expression is computed."""
        return computed(settled(type_of(node, self.type_named)))

    def nothing(self, node: Reduce, kind: ElementType) -> str:
        """What a reduction over nothing gives, as a variable of `kind` holds it: of small whole numbers the least or
        largest that they have."""
        own = TYPES[node.accumulate] if node.accumulate else settled(type_of(node, self.type_named))
        return literal(identity(node.op, own), kind)

    def held(self, node: Expr, kind: ElementType) -> str:
        """The expression as a variable holds it of which memory of type `kind` gets the value: of a whole type as it
        would be stored."""
        own = self.type_of(node)
        if kind.kind == "integer" and own.is_float:
            return self.stored(node, kind)
        return self.of(node, wanted=computed(kind))

    def stored(self, node: Expr, kind: ElementType) -> str:
        """The expression as what memory of type `kind` holds."""
        own = self.type_of(node)
        if isinstance(node, Num):
            own = computed(kind)
        if kind.is_float and kind.bits <= 16:
            self.fast = _whose_errors_round_away(node)
            text = self.written(kind, self.of(node, wanted=computed(kind)), own)
            self.fast = frozenset()
            return text
        if isinstance(node, Load) and kind.kind == "integer" and self.type_named(node.tensor) == kind:
            return self.of(node)
        if _is_within(node, kind):
            return f"static_cast<{NAMES[kind.name]}>({self.of(node, wanted=computed(kind))})"
        return self.written(kind, self.of(node, wanted=computed(kind)), own)

    def written(self, kind: ElementType, value: str, own: ElementType) -> str:
        """As `types.written`, with the helper that it may call."""
        if gives_other_than_0_of_nan(own, kind):
            self.helpers.add("whole_of")
        return written(kind, value, own)

    def _text(self, node: Expr, wanted: ElementType | None) -> tuple[str, int]:
        match node:
            case Num(value=value):
                kind = wanted or settled(type_of(node, self.type_named))
                text = literal(value, kind)
                return text, UNARY if text.startswith("-") else ATOM
            case Name(name=name):
                return self.named(name), ATOM
            case Load():
                return self.place(node)[0], ATOM
            case Reduce():
                raise ValueError("a reduction is a stage of its own")
            case Call(name=name, args=args):
                return self._call(node, name, args, wanted)

    def _call(self, node: Call, name: str, args: tuple[Expr, ...], wanted: ElementType | None) -> tuple[str, int]:
        if name in TYPES:
            return self._cast(args[0], TYPES[name])
        if name == "select":
            kind = self._common(args[1:], wanted)
            text = f"{self.of(args[0], OR)} ? {self.of(args[1], OR, kind)} : {self.of(args[2], TERNARY, kind)}"
            return text, TERNARY
        if name == "not":
            return f"!{self.of(args[0], UNARY)}", UNARY
        kind = self._common(args, wanted)
        if name in COMPARISONS or name in LOGIC:
            level = _LEVELS[name]
            # Compilers warn of && beside || without parentheses.
            side = level + 1 if name in COMPARISONS else AND + 1 if name == "or" else level
            return f"{self.of(args[0], side, kind)} {_SIGNS.get(name, name)} {self.of(args[1], side, kind)}", level
        if name == "~" and kind.kind == "bool":
            return f"!{self.of(args[0], UNARY)}", UNARY
        if name in ("neg", "~"):
            operand = self.of(args[0], UNARY, kind)
            sign = "-" if name == "neg" else "~"
            return f"{sign}({operand})" if operand.startswith(sign) else f"{sign}{operand}", UNARY  # C++ has a --
        if name == "/":
            return self._quotient(args, self._met(node, wanted))
        if name in ("//", "%"):
            return self._rounded_down(name, args, kind)
        if name in ("**", "pow"):
            return self._power(args, kind)
        if name in _LEVELS:
            level = _LEVELS[name]
            return f"{self.of(args[0], level, kind)} {name} {self.of(args[1], level + 1, kind)}", level
        if node in self.fast and kind.name == "f32":
            self.helpers.add(f"fast_{name}")
            return f"fast_{name}({self._exact(args[0], kind)})", ATOM
        if self.type_of(node).is_float and kind.kind in ("integer", "bool"):
            kind = self._met(node, wanted)
        if name == "complex":
            kind = TYPES["f64" if self._met(node, wanted).name == "c128" else "f32"]
        return self._function(name, args, kind), ATOM

    def _common(self, args: tuple[Expr, ...], wanted: ElementType | None) -> ElementType:
        """The type in which operands meet; of literals alone the one that is wanted."""
        if wanted is not None and all(isinstance(each, Num) for each in args):
            return wanted
        meeting = args[0]
        for each in args[1:]:
            meeting = Call("+", (meeting, each))
        return self._met(meeting, wanted)

    def _met(self, node: Expr, wanted: ElementType | None) -> ElementType:
        """The type to compute in, as precise a one as is wanted where nothing else decides."""
        kind = self.type_of(node)
        return kind if wanted is None else as_precise(node, kind, wanted, types_of(self.type_named))

    def _cast(self, operand: Expr, kind: ElementType) -> tuple[str, int]:
        own = self._met(operand, kind)
        self.types.add(kind.name)
        is_whole = isinstance(operand, Num) and isinstance(operand.value, int)
        if isinstance(operand, Num) and kind.bits >= 32 and (kind.is_float or (is_whole and kind.kind == "integer")):
            return f"{literal(operand.value, kind)}{'LL' if kind.name == 'i64' else ''}", ATOM
        if kind.is_float and kind.bits < 32:
            inner = written(kind, self.of(operand, wanted=TYPES["f32"]), own)
            back = {"f16": f"__half2float({inner})", "bf16": f"__bfloat162float({inner})"}
            return back.get(kind.name, f"static_cast<float>({inner})"), ATOM
        is_index = kind.name == "i64" and isinstance(operand, Name | Call)  # which may be an int
        if own == kind and not is_index:
            return self._text(operand, kind)
        if own.is_float and kind.kind == "integer" and not _is_within(operand, kind):
            return self.written(kind, self.of(operand), own), ATOM
        return f"static_cast<{NAMES[kind.name]}>({self.of(operand, wanted=own)})", ATOM

    def _quotient(self, args: tuple[Expr, ...], kind: ElementType) -> tuple[str, int]:
        sides = [self._converted(args[0], kind, PRODUCT), self._converted(args[1], kind, PRODUCT + 1)]
        return f"{sides[0]} / {sides[1]}", PRODUCT

    def _converted(self, node: Expr, kind: ElementType, least: int) -> str:
        """As `of`, an integer as a floating-point number."""
        if isinstance(node, Num):
            return self.of(node, least, kind)
        own = self.type_of(node)
        if own.kind in ("integer", "bool") and kind.kind in ("float", "complex"):
            return f"static_cast<{NAMES[kind.name if kind.kind == 'float' else 'f32']}>({self.of(node)})"
        return self.of(node, least, kind)

    def _rounded_down(self, name: str, args: tuple[Expr, ...], kind: ElementType) -> tuple[str, int]:
        if kind.is_float:
            if name == "//":
                return f"{self._library('floor', kind)}({self._quotient(args, kind)[0]})", ATOM
            self.helpers.add("float_mod")
            return (
                f"float_mod<{NAMES[kind.name]}>({self.of(args[0], wanted=kind)}, {self.of(args[1], wanted=kind)})",
                ATOM,
            )
        positive = self.bounds.at_least(args[1], {(): 1})
        if positive and (not kind.signed or self._is_not_negative(args[0])):
            return (
                f"{self.of(args[0], PRODUCT, kind)} {'/' if name == '//' else '%'} {self.of(args[1], UNARY, kind)}",
                PRODUCT,
            )
        helper = f"{'floor' if kind.signed else 'whole'}_{'div' if name == '//' else 'mod'}"
        self.helpers.add(helper)
        return f"{helper}<{NAMES[kind.name]}>({self._both(args, kind)})", ATOM

    def _is_not_negative(self, node: Expr) -> bool:
        def without_cast(each: Expr) -> Expr:
            is_cast = isinstance(each, Call) and each.name == "i64" and self.type_of(each.args[0]).kind == "integer"
            return each.args[0] if is_cast and isinstance(each, Call) else each

        return self.bounds.at_least(rebuilt(node, without_cast), {})

    def _power(self, args: tuple[Expr, ...], kind: ElementType) -> tuple[str, int]:
        base, power = args
        match power:
            case Num(value=1):
                return self._text(base, kind)
            case Num(value=2):
                return self._function("square", (base,), kind), ATOM
            case Num(value=3) if kind.is_float:
                return self._function("cube", (base,), kind), ATOM
            case Num(value=0.5) if kind.is_float:
                return f"{self._library('sqrt', kind)}({self.of(base, wanted=kind)})", ATOM
            case Num(value=4) if kind.is_float:
                return self._function("square", (Call("square", (base,)),), kind), ATOM
            case Num(value=-1) if kind.is_float:
                return f"{literal(1, kind)} / {self._converted(base, kind, PRODUCT + 1)}", PRODUCT
        if kind.kind == "integer":
            self.helpers.add("whole_power")
            return f"whole_power<{NAMES[kind.name]}>({self._both(args, kind)})", ATOM
        if kind.kind == "complex":
            return f"thrust::pow({self._both(args, kind)})", ATOM
        return f"{self._library('pow', kind)}({self._both(args, kind)})", ATOM

    def _both(self, args: tuple[Expr, ...], kind: ElementType) -> str:
        return ", ".join(self.of(each, wanted=kind) for each in args)

    @staticmethod
    def _library(name: str, kind: ElementType) -> str:
        return f"{name}f" if kind.name != "f64" else name

    def _function(self, name: str, args: tuple[Expr, ...], kind: ElementType) -> str:
        if name in ("real", "imag"):
            return f"{self.of(args[0], ATOM, kind)}.{name}()"
        if name == "complex":
            whole = "c128" if kind.bits == 64 else "c64"
            self.types.add(whole)
            return f"{NAMES[whole]}({self._both(args, kind)})"
        if name == "conj":
            return f"thrust::conj({self.of(args[0], wanted=kind)})"
        if kind.kind == "complex":
            if name == "square":
                self.helpers.add("square")
                return f"square({self.of(args[0])})"
            return f"thrust::{name}({', '.join(self.of(each, wanted=kind) for each in args)})"
        if name in ("uniform", "normal"):
            self.helpers.add(name)
            return f"{name}({', '.join(self.of(each, wanted=TYPES['i64']) for each in args)})"
        if name in ("isnan", "isinf", "isfinite"):
            return f"{name}({self._converted(args[0], kind if kind.is_float else TYPES['f32'], TERNARY)})"
        if name in ("popc", "clz"):
            return f"__{name}{'ll' if kind.bits == 64 else ''}({self.of(args[0])})"
        if kind.kind in ("integer", "bool"):
            return self._of_integers(name, args, kind)
        alone = len(args) == 1
        texts = [self._converted(each, kind, TERNARY) if alone else self._exact(each, kind) for each in args]
        if name == "abs":
            return f"{self._library('fabs', kind)}({texts[0]})"
        if name == "rcp":
            return f"({literal(1, kind)} / {self._converted(args[0], kind, PRODUCT + 1)})"
        if name == "clamp":
            self.helpers |= {"max_of", "min_of"}
            value, low, high = (self._exact(each, kind) for each in args)
            return f"min_of({high}, max_of({low}, {value}))"
        if name in ("max", "min"):
            self.helpers.add(f"{name}_of")
            return f"{name}_of({', '.join(self._exact(each, kind) for each in args)})"
        if name in _HELPERS:
            self.helpers.add(name)
            return f"{name}({self._exact(args[0], kind)})"
        return f"{self._library(_MATH[name], kind)}({', '.join(texts)})"

    def _exact(self, node: Expr, kind: ElementType) -> str:
        """As an argument of a template, which wants one type."""
        text = self._converted(node, kind, TERNARY)
        own = self.type_of(node)
        if not isinstance(node, Num) and own.kind == "float" and own != kind:
            return f"static_cast<{NAMES[kind.name]}>({text})"
        return text

    def _of_integers(self, name: str, args: tuple[Expr, ...], kind: ElementType) -> str:
        whole = [self._whole(each, kind) for each in args]
        if name in ("max", "min", "fmax", "fmin"):
            return f"{name.removeprefix('f')}({whole[0]}, {whole[1]})"
        if name == "clamp":
            return f"min({whole[2]}, max({whole[1]}, {whole[0]}))"
        if name == "abs":
            return f"{'llabs' if kind.bits == 64 else 'abs'}({whole[0]})" if kind.signed else whole[0]
        if name in ("floor", "ceil", "round", "trunc"):
            return whole[0]
        if name == "fma":
            return f"({whole[0]} * {whole[1]} + {whole[2]})"
        if name == "fmod":
            return f"({whole[0]} % {whole[1]})"
        self.helpers.add(name)  # square, relu or sign
        return f"{name}({whole[0]})"

    def _whole(self, node: Expr, kind: ElementType) -> str:
        """As an argument that has to be of that type exactly."""
        own = self.type_of(node)
        if isinstance(node, Num):
            suffix = {"i64": "LL", "u64": "ULL", "u32": "u"}.get(kind.name, "")
            return f"{literal(node.value, kind).rstrip('u')}{suffix}"
        text = self.of(node, wanted=kind)
        # A dimension has the type of the kernel's index, which `own` does not know.
        return text if own == kind and isinstance(node, Load) else f"static_cast<{NAMES[kind.name]}>({text})"


def _whose_errors_round_away(node: Expr) -> frozenset[Expr]:
    """The functions behind which nothing makes a relative error larger before the value is stored: one far below the
    rounding to 16 bits is lost in it. A difference behind them could leave nothing but their errors."""
    inside: set[Expr] = set()
    elsewhere: set[Expr] = set()

    def visit(each: Expr) -> None:
        if not isinstance(each, Call):
            return
        if each.name in _FAST:
            inside.add(each)
            elsewhere.update(node for arg in each.args for node in walk(arg))
        elif each.name in _KEEPS_RELATIVE_ERRORS:
            for arg in each.args:
                visit(arg)
        elif each.name == "select":
            elsewhere.update(walk(each.args[0]))
            visit(each.args[1])
            visit(each.args[2])
        else:
            elsewhere.update(walk(each))

    visit(node)
    return frozenset(inside - elsewhere)


def _is_within(node: Expr, kind: ElementType) -> bool:
    """Whether the value is clamped to what a small type of whole numbers holds."""
    if kind.kind != "integer" or kind.bits >= 32:
        return False
    low, high = limits(kind)
    match node:
        case Call(name="clamp", args=(_, least, Num(value=most))) if most <= high:
            match least:
                case Num(value=number) | Call(name="neg", args=(Num(value=number),)):
                    return (number if isinstance(least, Num) else -number) >= low
    return False
