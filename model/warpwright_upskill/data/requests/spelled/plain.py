"""Formulas in plain words: what is taken, and what is done with it, a step after the other."""

from __future__ import annotations

from random import Random

from warpwright.formulas.tree import Call, Equation, Expr, Load, Name, Num, Reduce, walk

from warpwright_upskill.data.requests.phrases import chosen
from warpwright_upskill.data.requests.spelled.axes import Axes, UnsayableError, axes_of, element_dims, running_over
from warpwright_upskill.data.requests.spelled.notation import Notation

_FUNCTIONS = {
    "exp": "<exponentiate|take exp|take the exponential>",
    "log": "<take the log|take the natural log|take the logarithm>",
    "tanh": "<apply tanh|take tanh>",
    "sigmoid": "<apply the sigmoid|apply a sigmoid|sigmoid it>",
    "relu": "<apply relu|clip at zero from below|relu it>",
    "abs": "<take the absolute value|take its magnitude|take abs>",
    "sqrt": "<take the square root|take sqrt|square-root it>",
    "rsqrt": "<take the reciprocal square root|take one over its square root|rsqrt it>",
    "sin": "<take the sine|take sin>",
    "cos": "<take the cosine|take cos>",
    "floor": "<round down|take the floor>",
    "round": "<round to nearest even|round to the nearest integer>",
    "neg": "<negate|flip the sign|negate it>",
}
_OPERATIONS = {
    "+": "<add {y}|plus {y}|add {y} to it>",
    "-": "<subtract {y}|minus {y}>",
    "*": "<multiply by {y}|times {y}|scale by {y}>",
    "/": "<divide by {y}|divided by {y}|divide it by {y}>",
    "max": "<take the larger of that and {y}|max with {y}|bound it from below by {y}>",
    "min": "<take the smaller of that and {y}|min with {y}|cap it at {y}>",
}
_SWAPPED = {"-": "<subtract that from {y}|take {y} minus that>", "/": "<divide {y} by that|take {y} over that>"}
_NOUNS = {
    "+": "<the sum of {x} and {y}|{x} plus {y}|{x} + {y}>",
    "-": "<the difference of {x} and {y}|{x} minus {y}|{x} - {y}>",
    "*": "<the product of {x} and {y}|{x} times {y}|{x} * {y}>",
    "/": "<the ratio of {x} to {y}|{x} over {y}|{x} divided by {y}|{x} / {y}>",
    "max": "<the larger of {x} and {y}|the maximum of {x} and {y}|max({x}, {y})>",
    "min": "<the smaller of {x} and {y}|the minimum of {x} and {y}|min({x}, {y})>",
}
_REDUCTIONS = {
    "sum": "<sum {over}|add up {over}|total it {over}>",
    "mean": "<average {over}|take the mean {over}>",
    "max": "<take the maximum {over}|take the largest {over}|max-reduce {over}>",
    "min": "<take the minimum {over}|take the smallest {over}>",
    "prod": "<multiply everything {over}|take the product {over}>",
    "argmax": "<take the index of the largest {over}|argmax {over}>",
    "argmin": "<take the index of the smallest {over}|argmin {over}>",
    "logsumexp": "<take logsumexp {over}|take the log of the sum of exponentials {over}>",
    "var": "<take the variance (divided by n) {over}|take the population variance {over}>",
}
_RUNNING = {
    "sum": "<take the running sum along {over}|cumulative sum along {over}|inclusive prefix sum along {over}>",
    "prod": "<take the running product along {over}|cumulative product along {over}>",
    "max": "<take the running maximum along {over}|cumulative max along {over}>",
    "min": "<take the running minimum along {over}|cumulative min along {over}>",
    "mean": "<take the running mean along {over} (of all elements so far)|average of all so far along {over}>",
}


class Plain:
    """One request in words. Sizes name the axes: `sum over N`."""

    def __init__(self, dims: dict[str, str], chance: Random) -> None:
        self.dims = dims
        self.chance = chance
        self.notation = Notation(dims, chance)
        self.axes = Axes(())

    def statement(self, equation: Equation) -> str:
        self.axes = axes_of(equation)
        for node in walk(equation.value):
            if not isinstance(node, Call | Reduce | Load):
                continue
            sizes = [self.dims[each] for each in self.axes.of(node)]
            if len({*sizes}) < len(sizes):
                raise UnsayableError("two axes of one size")
        taken, steps = self.steps(equation.value)
        steps = [chosen(each, self.chance) for each in steps]
        name, add = equation.name, equation.combine
        if add not in ("", "+"):
            raise UnsayableError(add)
        into = (
            f"<add the result to {name}|accumulate into {name}>"
            if add
            else f"<store it in {name}|write it to {name}|that is {name}|the result is {name}|put it in {name}>"
        )
        if equation.temporary:
            into = f"<call that {name}|let {name} be that>"
        if len(steps) == 0:
            verb = f"{name} is {taken}" if not add else f"add {taken} to {name}"
            return chosen(verb, self.chance)
        style = self.chance.randrange(3)
        listed = ", ".join(steps[:-1]) + (
            f"{self.chance.choice((', then ', ' and then ', ', '))}{steps[-1]}" if len(steps) > 1 else steps[-1]
        )
        begin = self.chance.choice(("take ", "compute ", "start from ", "form "))
        if style == 0 and not add and not equation.temporary:
            return f"to get {name}, {begin}{taken}, {listed}"
        return f"{begin}{taken}, {listed}{self.chance.choice((', ', ' and ', '; '))}{chosen(into, self.chance)}"

    def steps(self, node: Expr) -> tuple[str, list[str]]:
        """What is taken first, and what is done with it."""
        if simple := self.noun(node):
            return simple, []
        match node:
            case Call(name="**", args=(base, Num(value=power))) if power in (2, 3):
                taken, before = self.steps(base)
                return taken, [
                    *before,
                    "<square it|square that|square>" if power == 2 else "<cube it|raise to the third power>",
                ]
            case Call(name=name, args=(operand,)) if name in _FUNCTIONS:
                taken, before = self.steps(operand)
                return taken, [*before, _FUNCTIONS[name]]
            case Call(name="clamp", args=(operand, low, high)) if self.atom(low) and self.atom(high):
                taken, before = self.steps(operand)
                limits = f"{self.atom(low)} and {self.atom(high)}"
                return taken, [*before, f"<clamp between {limits}|clip it to lie between {limits}>"]
            case Call(name=sign, args=(left, right)) if sign in _OPERATIONS:
                if small := self.inline(right):
                    taken, before = self.steps(left)
                    return taken, [*before, _OPERATIONS[sign].replace("{y}", small)]
                if small := self.inline(left):
                    taken, before = self.steps(right)
                    return taken, [*before, _SWAPPED.get(sign, _OPERATIONS[sign]).replace("{y}", small)]
            case Call(name="select", args=(condition, then, otherwise)) if self.inline(otherwise):
                asked, small = self._condition(condition), self.inline(otherwise)
                taken, before = self.steps(then)
                return taken, [
                    *before,
                    f"<keep it only where {asked}, else use {small}|set it to {small} unless {asked}>",
                ]
            case Reduce(op=op, ranges=ranges, body=body):
                taken, before = self.steps(body)
                if op not in _REDUCTIONS:
                    raise UnsayableError(op)
                over = self._over(node)
                if running_over(node):
                    return taken, [
                        *before,
                        _RUNNING[op].replace("{over}", self.dims[ranges[0].name]),
                    ] if op in _RUNNING else self._none()
                return taken, [*before, _REDUCTIONS[op].replace("{over}", over)]
        raise UnsayableError("an expression that is no chain")

    def _none(self) -> list[str]:
        raise UnsayableError("a running total")

    def _over(self, node: Reduce) -> str:
        inner = self.axes.of(node.body)
        names = [self.dims[each.name] for each in node.ranges]
        if not all(names):
            raise UnsayableError("a size without a name")
        if len(names) == len(inner):
            return self.chance.choice(
                ("over everything", "over all elements", "over the whole array", f"over {' and '.join(names)}")
            )
        ways = [
            f"over {' and '.join(names)}",
            f"over the {' and '.join(names)} ax{'es' if len(names) > 1 else 'is'}",
            f"along {' and '.join(names)}",
        ]
        if len(names) == 1 and node.ranges[0].name == inner[-1]:
            ways += ["over the last dimension", "along the last axis"]
            ways += ["over each row", "along each row", "over the columns"] if len(inner) == 2 else []
        elif len(names) == 1 and len(inner) == 2:
            ways += ["down the columns", "over the rows", "for each column"]
        elif len(names) == 1 and node.ranges[0].name == inner[0]:
            ways += ["over the first dimension", "along axis 0"]
        return self.chance.choice(ways)

    def noun(self, node: Expr) -> str:
        """What is small enough to be taken at once; "" for what is not."""
        if found := self.atom(node):
            return found
        match node:
            case Call(name="**", args=(base, Num(value=2))) if self.atom(base) and self.chance.random() < 0.6:
                return chosen(f"<the square of {self.atom(base)}|{self.atom(base)} squared>", self.chance)
            case Call(name="**", args=(Call(name="-", args=(one, other)), Num(value=2))) if self._both(one, other):
                pair = (self.atom(one), self.atom(other))
                ways = ("the squared difference of {} and {}", "the squared difference {} - {}", "({} - {})^2")
                return self.chance.choice(ways).format(*pair)
            case Call(name="abs", args=(Call(name="-", args=(one, other)),)) if self._both(one, other):
                return f"the absolute difference of {self.atom(one)} and {self.atom(other)}"
            case Call(name=sign, args=(left, right)) if sign in _NOUNS and self.atom(left) and self.atom(right):
                text = _NOUNS[sign].replace("{x}", self.atom(left)).replace("{y}", self.atom(right))
                return chosen(text, self.chance)
        return ""

    def _both(self, one: Expr, other: Expr) -> bool:
        return bool(self.atom(one) and self.atom(other))

    def inline(self, node: Expr) -> str:
        """A second operand: a name, a number, or a small expression in parentheses."""
        if found := self.atom(node):
            return found
        match node:
            case Call(name="+" | "-" | "*" | "/" as sign, args=(left, right)) if self.atom(left) and self.atom(right):
                return f"({self.atom(left)} {sign} {self.atom(right)})"
            case Call(name="**", args=(base, Num(value=2))) if self.atom(base):
                return f"{self.atom(base)}^2"
            case Call(name="+" | "-" as sign, args=(left, right)) if self._single(left) and self._single(right):
                return f"({self._single(left)} {sign} {self._single(right)})"
            case Call():
                return self._single(node)
        return ""

    def _single(self, node: Expr) -> str:
        """A function of a name, or a name."""
        match node:
            case Call(name="**", args=(base, Num(value=2))) if self.atom(base):
                return f"{self.atom(base)}^2"
            case Call(name="exp" | "abs" | "tanh" | "sigmoid" | "sqrt" as name, args=(inner,)) if self.atom(inner):
                return f"{name}({self.atom(inner)})"
        return self.atom(node)

    def atom(self, node: Expr) -> str:
        match node:
            case Load(tensor=tensor, index=index):
                dims = element_dims(node) if index else ()
                gathered = [each.tensor for each in index if isinstance(each, Load)]
                if gathered:
                    if not isinstance(index[0], Load) or len(gathered) > 1:
                        raise UnsayableError("a gathered index that is not the first")
                    return f"{tensor}[{gathered[0]}]"
                if self.axes.sorted(dims) != dims and len(self.axes.order) == 2:
                    return f"{tensor} transposed"
                return tensor
            case Num() | Name():
                self.axes.of(node)
                return self.notation.expr(node)
        return ""

    def _condition(self, node: Expr) -> str:
        match node:
            case Load(tensor=tensor):
                self.atom(node)
                return f"{tensor} is set"
            case Call(name=sign, args=(left, right)) if sign in _COMPARED and self.inline(left) and self.inline(right):
                return f"{self.inline(left)} {_COMPARED[sign]} {self.inline(right)}"
        raise UnsayableError("a condition")


_COMPARED = {"<": "is below", ">": "is above", "<=": "is at most", ">=": "is at least", "==": "equals", "!=": "is not"}
