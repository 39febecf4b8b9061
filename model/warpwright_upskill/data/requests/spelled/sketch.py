"""A formula that is drawn: its text, what it is made of, and how its sizes are called."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from warpwright.formulas.lexer import FormulaError
from warpwright.formulas.model import Formula
from warpwright.formulas.parser import parse
from warpwright.formulas.printer import printed_in_one_line
from warpwright.formulas.resolve import resolve
from warpwright.formulas.tree import Call, Load, Num, Reduce, Written, walk

from warpwright_upskill.data.evaluated import is_finite
from warpwright_upskill.data.requests.spelled.frame import Frame
from warpwright_upskill.data.requests.spelled.frames import drawn

_KINDS = ("f32", "f16", "bf16", "f64")
_KIND_WEIGHTS = (72, 12, 9, 7)
_LONGEST = 330
"""Characters of a formula that a request may spell out."""


@dataclass(frozen=True, slots=True)
class Sketch:
    """`sizes` is what the extents of dimensions are called in words and signatures."""

    kind: str
    text: str
    written: Written
    formula: Formula
    sizes: dict[str, str]
    type: str

    @property
    def features(self) -> tuple[str, ...]:
        """What stands in the formula, apart from names and numbers."""
        return tuple(sorted({*_features(self.written)} | ({f"type {self.type}"} if self.type != "f32" else set())))

    @property
    def structure(self) -> str:
        """What the formula is composed of, in rough words."""
        coarse = (each.replace(" ", "=") for each in self.features if not each.startswith(("function", "type")))
        return " ".join((self.kind, f"rank={_rank(self.written)}", *coarse))


def sketched(seed: str) -> Sketch:
    """The formula of a seed: it resolves, reads every array that it has, and is finite."""
    for trial in range(200):
        chance = Random(f"{seed}/{trial}")
        kind, frame = drawn(chance)
        try:
            found = _sketch(kind, frame, chance)
        except FormulaError:
            continue
        if found is not None:
            return found
    raise AssertionError(f"{seed}: nothing that is drawn is a formula")


def _sketch(kind: str, frame: Frame, chance: Random) -> Sketch | None:
    body = " ".join((*frame.results, *(["where", ", ".join(frame.stages)] if frame.stages else [])))
    read = [each for each in dict.fromkeys(frame.floats) if re.search(rf"\b{each}\b", body)]
    type_ = chance.choices(_KINDS, _KIND_WEIGHTS)[0]
    types = {name: each for name, each in frame.types.items() if re.search(rf"\b{name}\b", body)}
    types = {name: each for name, each in types.items() if each not in ("f32",)}
    if type_ != "f32":
        mixed = len(read) > 1 and chance.random() < 0.15
        types |= {each: type_ for at, each in enumerate(read) if not (mixed and at)}
    if len(read) > 1 and type_ == "f32" and chance.random() < 0.06:
        types[read[-1]] = chance.choice(("i32", "i32", "u8", "i8"))
    lines = " ".join(f"{name}: {each}" for name, each in types.items() if not _is_default(name, each, body))
    written = parse(f"{lines} {body}")
    text = printed_in_one_line(written)
    formula = resolve(text, written)
    results = {each.name: each.type for each in formula.outputs}
    if any(types.get(each) in ("u8", "i8") for each in read) and not all(
        each.startswith("f") for each in results.values()
    ):
        return None
    told = []
    for name, each in results.items():
        declared = name in types
        if not declared and each in ("f16", "bf16") and chance.random() < 0.2:
            told.append(f"{name}: f32")
        elif not declared and each == "f32" and type_ in ("f16", "bf16") and chance.random() < 0.5:
            told.append(f"{name}: {type_}")
        elif not declared and each == "i64" and chance.random() < 0.6:
            told.append(f"{name}: i32")
    if type_ == "f64":
        told += [f"{each}: f64" for each in formula.scalars if formula.scalars[each] == "f32"]
    if told:
        text = printed_in_one_line(parse(f"{lines} {' '.join(told)} {body}"))
        written = parse(text)
        formula = resolve(text, written)
    if len(text) > _LONGEST or not is_finite(formula) or _silly(formula, written):
        return None
    return Sketch(kind, text, written, formula, frame.names.sizes, type_)


def _is_default(name: str, kind: str, body: str) -> bool:
    """Whether an index array of 32 bits is one without being declared."""
    uses = re.findall(rf"\b{name}\b[^;]", body)
    return kind == "i32" and not re.search(rf"[<>=] {name}\b|\b{name}\[[^\]]*\] *[<>=!]", body) and bool(uses)


def _silly(formula: Formula, written: Written) -> bool:
    """Whether nothing is computed, or the same is taken from itself."""
    if not formula.inputs:
        return True
    for equation in written.equations:
        if isinstance(equation.value, Load) and not equation.combine and equation.value.index == equation.index:
            return True
        if any(_says_nothing(node) for node in walk(equation.value) if isinstance(node, Call)):
            return True
    return False


def _says_nothing(node: Call) -> bool:
    """Whether an operation has nothing to decide or to change: `x - x`, `abs(exp(x))`, `exp(x) > 0`."""
    first = node.args[0]
    positive = isinstance(first, Call) and first.name in ("abs", "exp", "sigmoid")
    match node.name:
        case "select":
            return node.args[1] == node.args[2]
        case "+" | "-" | "/" | "max" | "min" | ">" | "<":
            return first == node.args[1] or (positive and node.name in (">", "<", "max") and node.args[1] == Num(0))
        case "abs" | "relu":
            return positive
        case ">=":
            return positive and node.args[1] == Num(0)
    return False


def _rank(written: Written) -> int:
    nodes = (node for equation in written.equations for node in walk(equation.value))
    return max((len(node.index) for node in nodes if isinstance(node, Load)), default=0)


def _features(written: Written) -> Iterator[str]:
    for equation in written.equations:
        if equation.temporary:
            yield "stage"
        if equation.combine or equation.primed:
            yield f"update {equation.combine or 'new'}"
        for node in walk(equation.value):
            match node:
                case Reduce(op=op, ranges=ranges):
                    yield f"reduce {op}"
                    if any(each.lower is not None or each.upper is not None for each in ranges):
                        yield "range part"
                case Call(name="select"):
                    yield "select"
                case Call(name=name) if name.isalnum() and name not in ("neg",):
                    yield f"function {name}"
                case Load(outside=outside, index=index):
                    if outside is not None:
                        yield f"outside {outside if isinstance(outside, str) else 'number'}"
                    if any(isinstance(part, Load) for each in index for part in walk(each)):
                        yield "gather"
    if sum(not each.temporary for each in written.equations) > 1:
        yield "results two"
