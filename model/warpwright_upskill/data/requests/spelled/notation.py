"""Expressions in the notations of mathematics and code: subscripts, brackets, functions, LaTeX, Unicode.

Each notation is made with a state of chance and keeps its habits (signs, ranges, powers) for a whole request.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random

from warpwright.formulas.printer import number
from warpwright.formulas.tree import Call, Equation, Expr, Load, Name, Num, Range, Reduce, children

CHOICE, OR, AND, NOT, COMPARISON, SUM, PRODUCT, SIGN, POWER, ATOM = 1, 2, 3, 4, 5, 10, 11, 12, 13, 14
_LEVELS = {"+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "and": AND, "or": OR}
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_NOUNS = {
    "sum": "sum", "mean": "mean", "max": "maximum", "min": "minimum", "prod": "product",
    "argmax": "index of the maximum", "argmin": "index of the minimum", "var": "population variance",
}  # fmt: skip
_FRESH = "b g q v z a f o"


class Notation:
    """Brackets, as in C or Python: what the other notations change."""

    name = "brackets"
    comparisons: Mapping[str, str] = {"==": "=="}
    functions: Mapping[str, str] = {}
    words: Mapping[str, str] = {"and": "and", "or": "or"}

    def __init__(self, dims: Mapping[str, str], chance: Random) -> None:
        self.dims = dims
        self.sizes = {each.upper(): size for each, size in dims.items()}
        self.chance = chance
        self.apart = chance.choice((", ", ", ", ","))
        self.nested = chance.random() < 0.3
        self.times = chance.choice((" * ", " * ", "*"))
        self.squared = chance.choice(("{0}^2", "{0}**2", "{0} ** 2", "{0}^2"))
        self.ranges = chance.randrange(4)
        self.choice = chance.randrange(3)
        self.bars = False

    # What notations differ in

    def load(self, name: str, index: Sequence[str]) -> str:
        return name + "".join(f"[{each}]" for each in index) if self.nested else f"{name}[{self.apart.join(index)}]"

    def divided(self, over: Expr, by: Expr) -> tuple[str, int]:
        return f"{self.expr(over, PRODUCT)} / {self.expr(by, SIGN)}", PRODUCT

    def powered(self, base: Expr, power: Expr) -> tuple[str, int]:
        if power == Num(2):
            return self.squared.format(self.expr(base, ATOM)), POWER
        sign = "**" if "**" in self.squared else "^"
        return f"{self.expr(base, ATOM)}{sign}{self.expr(power, ATOM)}", POWER

    def called(self, name: str, args: Sequence[Expr]) -> tuple[str, int]:
        said = self.functions.get(name, name)
        if name == "abs" and self.bars:
            return f"|{self.expr(args[0])}|", ATOM
        if name == "rsqrt" and said == "rsqrt" and self.choice != 0:
            return f"1/sqrt({self.expr(args[0])})", PRODUCT
        return f"{said}({', '.join(self.expr(each) for each in args)})", ATOM

    def reduced(self, op: str, ranges: Sequence[str], body: Expr) -> tuple[str, int]:
        inner = self.expr(body, SIGN if isinstance(body, Reduce) else PRODUCT)
        over = self.apart.join(ranges)
        match self.ranges:
            case 0:
                return f"{op} over {' and '.join(ranges)} of ({self.expr(body)})", SUM
            case 1 if op in ("sum", "prod"):
                return f"{op}_{{{over}}} {inner}" if len(over) > 1 else f"{op}_{over} {inner}", PRODUCT
            case 2:
                return f"{op}({over}: {self.expr(body)})", ATOM
        return f"{op}_{over}({self.expr(body)})" if over.isalnum() else f"{op}_{{{over}}}({self.expr(body)})", ATOM

    def selected(self, condition: Expr, then: Expr, otherwise: Expr) -> tuple[str, int]:
        asked = self.expr(condition)
        if self.choice == 0:
            return f"{self.expr(condition, OR)} ? {self.expr(then, OR)} : {self.expr(otherwise, OR)}", CHOICE
        if self.choice == 1:
            return f"{self.expr(then, OR)} if {asked} else {self.expr(otherwise, OR)}", CHOICE
        return f"({self.expr(then)} if {asked}, otherwise {self.expr(otherwise)})", ATOM

    def span(self, first: str, name: str, last: str, upto: str) -> str:
        """A dimension from `first` to `last`, which is the one before `upto`."""
        return (
            f"{name}={first}..{last}",
            f"{name} in {first}..{last}",
            f"{name} from {first} to {last}",
            f"{name}={first}..{last}",
        )[self.ranges]

    # What they have in common

    def expr(self, node: Expr, least: int = 0) -> str:
        text, level = self._text(node)
        return f"({text})" if level < least else text

    def _text(self, node: Expr) -> tuple[str, int]:
        match node:
            case Num(value=value):
                return self.number(value), SIGN if str(number(value)).startswith("-") else ATOM
            case Name(name=name):
                return self.sizes.get(name, name) if name not in self.dims else name, ATOM
            case Load(tensor=tensor, index=index):
                if not index:
                    return tensor, ATOM
                return self.load(tensor, [self.expr(each) for each in index]), ATOM
            case Reduce(op=op, ranges=ranges, body=body):
                return self.reduced(op, [self.range(each) for each in ranges], body)
            case Call(name="select", args=(condition, then, otherwise)):
                return self.selected(condition, then, otherwise)
            case Call(name="neg", args=(operand,)):
                return f"-{self.expr(operand, SIGN)}", SIGN
            case Call(name="not", args=(operand,)):
                return f"not {self.expr(operand, ATOM)}", NOT
            case Call(name="**", args=(base, power)):
                return self.powered(base, power)
            case Call(name="/", args=(over, by)):
                return self.divided(over, by)
            case Call(name=sign, args=(left, right)) if sign in _COMPARISONS:
                return f"{self.expr(left, SUM)} {self.comparisons.get(sign, sign)} {self.expr(right, SUM)}", COMPARISON
            case Call(name=sign, args=(left, right)) if sign in _LEVELS:
                return self._operation(sign, left, right)
            case Call(name=name, args=args):
                return self.called(name, args)
        raise AssertionError(node)

    def _operation(self, sign: str, left: Expr, right: Expr) -> tuple[str, int]:
        level = _LEVELS[sign]
        spaced = self.times if sign == "*" else f" {self.words.get(sign, sign)} "
        plain = isinstance(left, Name) and isinstance(right, Name) and sign != "*"
        first = ATOM if isinstance(left, Reduce) and sign in "*/" else level
        second = level + 1 if level != SUM else PRODUCT
        text = f"{self.expr(left, first)}{spaced}{self.expr(right, second)}"
        small = isinstance(right, Num) and isinstance(left, Name) and left.name in self.dims and not plain
        return text.replace(" ", "") if small and sign in "+-" and self.apart == "," else text, level

    def number(self, value: float) -> str:
        """
        >>> Notation({}, Random(1)).number(1e-05)
        '1e-5'
        """
        return number(value).replace("e-0", "e-")

    def range(self, each: Range) -> str:
        """A range, from what the tree says: `j`, `j <= i`, `k=0..4`."""
        name, lower, upper = each.name, each.lower, each.upper
        less, more = self.comparisons.get("<=", "<="), self.comparisons.get(">=", ">=")
        if lower is None and upper is None:
            if self.ranges == 3 and self.chance.random() < 0.4:
                return self.span("0", name, f"{self.dims[name]}-1", self.dims[name])
            return name
        if lower is None and isinstance(upper, Num):
            last = int(upper.value) - 1
            return f"{name}<{last + 1}" if self.ranges == 1 else self.span("0", name, str(last), str(last + 1))
        if upper is None and lower is not None:
            if isinstance(lower, Call) and lower.name == "+" and lower.args[1] == Num(1):
                return f"{name} > {self.expr(lower.args[0], SUM)}"
            return f"{name} {more} {self.expr(lower, SUM)}"
        assert upper is not None
        begin = "" if lower is None else f"{self.expr(lower, SUM)} {less} "
        return f"{begin}{name} {less if each.closed else '<'} {self.expr(upper, SUM)}"

    def statement(self, each: Equation) -> str:
        """An equation: what is computed at which place."""
        left = self.load(each.name, [self.expr(part) for part in each.index]) if each.index else each.name
        if each.combine in ("max", "min"):
            return f"{left} = {each.combine}({left}, {self.expr(each.value)})"
        if any(isinstance(part, Load) for part in each.index) and not each.combine and isinstance(each.value, Reduce):
            return self.gathered(each, each.value)
        return f"{left} {self.sign(each)} {self.expr(each.value)}"

    def worded(self, each: Equation) -> str:
        """An equation whose value is a reduction with that in words: `s_i is the mean of x_ij over j`."""
        left = self.load(each.name, [self.expr(part) for part in each.index]) if each.index else each.name
        total = each.value
        if not isinstance(total, Reduce) or total.op not in _NOUNS or each.combine or any(map(children, each.index)):
            return self.statement(each)
        over = " and ".join(self.range(part) for part in total.ranges)
        body = self.expr(total.body, PRODUCT)
        noun = _NOUNS[total.op]
        return self.chance.choice(
            (f"{left} is the {noun} of {body} over {over}", f"{left} is the {noun} over {over} of {body}")
        )

    def sign(self, each: Equation) -> str:
        return f"{each.combine}="

    def gathered(self, each: Equation, total: Reduce) -> str:
        """A scatter as what its place gets: h[b] = sum over i with ids[i] = b."""
        used = {*self.dims, each.name, *re.findall(r"\w+", self.expr(total.body))}
        place = next(letter for letter in _FRESH.split() if letter not in used)
        index = [place if isinstance(part, Load) else self.expr(part) for part in each.index]
        equal = self.comparisons.get("==", "==")
        conditions = [f"{self.expr(part)} {equal} {place}" for part in each.index if isinstance(part, Load)]
        over = [part.name for part in total.ranges]
        said = f"{', '.join(over)} with {conditions[0]}"
        return f"{self.load(each.name, index)} = sum over all {said} of {self.expr(total.body, PRODUCT)}"


class Subscripts(Notation):
    """y_i, x_{i-1}, w_{ij}"""

    name = "subscripts"
    comparisons: Mapping[str, str] = {"==": "="}

    def __init__(self, dims: Mapping[str, str], chance: Random) -> None:
        super().__init__(dims, chance)
        self.times = chance.choice((" * ", " ", " ", "*", " . "[0:1]))
        self.squared = "{0}^2"
        self.braces = chance.random() < 0.6
        self.commas = chance.random() < 0.5
        self.bars = chance.random() < 0.6
        self.choice = chance.choice((1, 2))
        self.ranges = chance.choice((0, 1, 1, 1, 3))

    def load(self, name: str, index: Sequence[str]) -> str:
        inside = (
            "".join(index)
            if all(len(each) == 1 for each in index) and not self.commas
            else ",".join(each.replace(" ", "") for each in index)
        )
        if len(index) == 1 and len(inside) == 1 and not self.braces:
            return f"{name}_{inside}"
        if not self.braces and inside.isalnum() and len(index) <= 2:
            return f"{name}_{inside}"
        return f"{name}_{{{inside}}}"


class Functions(Notation):
    """y(i) = a * x(i-1), as in papers and Fortran"""

    name = "functions"
    comparisons: Mapping[str, str] = {"==": "="}

    def __init__(self, dims: Mapping[str, str], chance: Random) -> None:
        super().__init__(dims, chance)
        self.bars = chance.random() < 0.5
        self.choice = chance.choice((1, 2))

    def load(self, name: str, index: Sequence[str]) -> str:
        return f"{name}({self.apart.join(index)})"


class Unicode(Subscripts):
    """y_i = Σ_j w_ij · x_j²"""

    name = "unicode"
    comparisons: Mapping[str, str] = {"==": "=", "<=": "≤", ">=": "≥", "!=": "≠"}
    functions: Mapping[str, str] = {"sigmoid": "σ", "sqrt": "√"}
    words: Mapping[str, str] = {"and": "∧", "or": "∨"}

    def __init__(self, dims: Mapping[str, str], chance: Random) -> None:
        super().__init__(dims, chance)
        self.times = chance.choice((" · ", "·", " × ", " * "))
        self.squared = "{0}²"
        self.braces = chance.random() < 0.25
        self.square_brackets = chance.random() < 0.4

    def load(self, name: str, index: Sequence[str]) -> str:
        return f"{name}[{self.apart.join(index)}]" if self.square_brackets else super().load(name, index)

    def reduced(self, op: str, ranges: Sequence[str], body: Expr) -> tuple[str, int]:
        sign = {"sum": "Σ", "prod": "Π"}.get(op, op)
        over = ",".join(ranges)
        over = over if over.isalnum() else f"{{{over}}}"
        if op in ("sum", "prod"):
            return f"{sign}_{over} {self.expr(body, SIGN if isinstance(body, Reduce) else PRODUCT)}", PRODUCT
        return f"{sign}_{over}({self.expr(body)})", ATOM

    def number(self, value: float) -> str:
        return "-∞" if value == float("-inf") else super().number(value)


_LATEX = {
    "tanh": "\\tanh", "exp": "\\exp", "log": "\\log", "sin": "\\sin", "cos": "\\cos", "sigmoid": "\\sigma",
    "max": "\\max", "min": "\\min", "relu": "\\mathrm{ReLU}", "clamp": "\\mathrm{clip}", "round": "\\mathrm{round}",
}  # fmt: skip
_LATEX_OPS = {
    "sum": "\\sum", "prod": "\\prod", "max": "\\max", "min": "\\min", "argmax": "\\arg\\max", "argmin": "\\arg\\min",
}  # fmt: skip
_GREEK = frozenset("alpha beta gamma tau mu sigma lambda rho phi psi omega nu kappa epsilon".split())  # noqa: SIM905


class Latex(Subscripts):
    name = "latex"
    comparisons: Mapping[str, str] = {"==": "=", "<=": "\\le", ">=": "\\ge", "!=": "\\ne"}
    words: Mapping[str, str] = {"and": "\\wedge", "or": "\\vee"}

    def __init__(self, dims: Mapping[str, str], chance: Random) -> None:
        super().__init__(dims, chance)
        self.times = chance.choice((" ", " \\cdot ", " \\cdot ", " \\, "))
        self.squared = "{0}^2"
        self.limits = chance.random() < 0.4
        self.dollars = chance.random() < 0.6
        self.cases = chance.random() < 0.6
        self.greek = chance.random() < 0.5

    def load(self, name: str, index: Sequence[str]) -> str:
        inside = (
            "".join(index)
            if all(len(each) == 1 for each in index) and not self.commas
            else ",".join(each.replace(" ", "") for each in index)
        )
        return f"{self.named(name)}_{inside}" if len(inside) == 1 else f"{self.named(name)}_{{{inside}}}"

    def named(self, name: str) -> str:
        if name in _GREEK and self.greek:
            return f"\\{name}"
        return name if len(name) == 1 else f"\\mathrm{{{name}}}".replace("_", "\\_")

    def _text(self, node: Expr) -> tuple[str, int]:
        if isinstance(node, Name) and node.name not in self.dims:
            return self.named(self.sizes.get(node.name, node.name)), ATOM
        if isinstance(node, Load) and not node.index:
            return self.named(node.tensor), ATOM
        return super()._text(node)

    def divided(self, over: Expr, by: Expr) -> tuple[str, int]:
        return f"\\frac{{{self.expr(over)}}}{{{self.expr(by)}}}", SIGN

    def powered(self, base: Expr, power: Expr) -> tuple[str, int]:
        inner = self.expr(base, ATOM)
        return f"{inner}^{{{self.expr(power)}}}" if power != Num(2) else f"{inner}^2", POWER

    def called(self, name: str, args: Sequence[Expr]) -> tuple[str, int]:
        match name:
            case "abs":
                return f"|{self.expr(args[0])}|", ATOM
            case "sqrt":
                return f"\\sqrt{{{self.expr(args[0])}}}", ATOM
            case "rsqrt":
                return f"\\frac{{1}}{{\\sqrt{{{self.expr(args[0])}}}}}", SIGN
            case "floor":
                return f"\\lfloor {self.expr(args[0])} \\rfloor", ATOM
            case "exp" if self.bars:
                return f"e^{{{self.expr(args[0])}}}", POWER
        return f"{_LATEX.get(name, name)}({', '.join(self.expr(each) for each in args)})", ATOM

    def range(self, each: Range) -> str:
        if each.lower is None and each.upper is None and self.limits:
            return f"{each.name}=0\0{self.named(self.dims[each.name])}-1"
        if each.lower is None and isinstance(each.upper, Num):
            return f"{each.name}=0\0{int(each.upper.value) - 1}"
        return super().range(each)

    def reduced(self, op: str, ranges: Sequence[str], body: Expr) -> tuple[str, int]:
        sign = _LATEX_OPS.get(op, f"\\mathrm{{{op}}}")
        inner = self.expr(body, SIGN if isinstance(body, Reduce) else PRODUCT)
        if op in ("sum", "prod") and all("\0" in each for each in ranges):
            said = " ".join(f"{sign}_{{{first}}}^{{{last}}}" for first, last in (each.split("\0") for each in ranges))
            return f"{said} {inner}", PRODUCT
        over = ",".join(each.replace("\0", ",\\ldots,") for each in ranges)
        if op in ("sum", "prod"):
            return f"{sign}_{{{over}}} {inner}", PRODUCT
        return f"{sign}_{{{over}}} \\left({self.expr(body)}\\right)", PRODUCT

    def selected(self, condition: Expr, then: Expr, otherwise: Expr) -> tuple[str, int]:
        yes, no = self.expr(then), self.expr(otherwise)
        if self.cases:
            return (
                f"\\begin{{cases}} {yes} & {self.expr(condition)} \\\\ {no} & \\text{{otherwise}} \\end{{cases}}",
                ATOM,
            )
        return f"({yes} \\text{{ if }} {self.expr(condition)} \\text{{ else }} {no})", ATOM

    def number(self, value: float) -> str:
        if abs(value) == float("inf"):
            return "\\infty" if value > 0 else "-\\infty"
        power = re.fullmatch(r"1e-0?(\d+)", number(value))
        return f"10^{{-{power[1]}}}" if power else number(value)

    def statement(self, each: Equation) -> str:
        text = super().statement(each)
        said = re.sub(r"sum over all (.*?) with (.*?) of", r"\\sum_{\1 : \2}", text)
        return f"${said}$" if self.dollars else said

    def sign(self, each: Equation) -> str:
        return "\\mathrel{+}=" if each.combine == "+" else f"{each.combine}="


NOTATIONS: tuple[type[Notation], ...] = (Notation, Subscripts, Functions, Unicode, Latex)
