"""A formula made to fit a request: in the names and types of its signature, with the numbers of its words; and how well
a formula fits a signature at all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise, product

from warpwright.assist.formula_examples import words
from warpwright.assist.signature import Parameter, parameters, plain_name
from warpwright.formulas.lexer import FormulaError, tokens_of
from warpwright.formulas.model import Formula
from warpwright.formulas.parser import parse
from warpwright.formulas.printer import printed_in_one_line
from warpwright.formulas.resolve import formula_of
from warpwright.formulas.tree import Declaration, Name
from warpwright.formulas.types import TYPES
from warpwright.formulas.variants import in_type

_TYPES = (("f16", r"half|fp16|f16|float16"), ("bf16", r"bf16|bfloat16"), ("f64", r"doubles?|fp64|f64|float64|real\*8"))


@dataclass(frozen=True, slots=True)
class Argument:
    """An array or a number: its name, "float", "whole" or "complex" ("" where nothing says it), its rank or None."""

    name: str
    kind: str
    rank: int | None


@dataclass(frozen=True, slots=True)
class Shape:
    """What a formula takes and gives. An array that is changed in place is among both. `sizes` counts those of
    dimensions."""

    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    numbers: tuple[Argument, ...]
    sizes: int


@lru_cache(maxsize=1 << 16)
def shape_of(text: str) -> Shape:
    """Raises FormulaError."""
    formula = formula_of(text)
    inputs = {each.array: each.name for each in formula.inputs}
    outputs = {each.name.partition(".")[0]: each.name for each in formula.outputs}
    return Shape(
        tuple(_argument(formula, *each) for each in inputs.items()),
        tuple(_argument(formula, *each) for each in outputs.items()),
        tuple(Argument(name, _kind(kind), None) for name, kind in formula.scalars.items()),
        sum(Name(each) in formula.dims.values() for each in formula.sizes),
    )


def _argument(formula: Formula, shown: str, name: str) -> Argument:
    return Argument(shown, _kind(formula.type_of(name).name), len(formula.extents_of(name)))


def _kind(type_name: str) -> str:
    kind = TYPES[type_name].kind if type_name else ""
    return "whole" if kind in ("integer", "bool") else kind


@dataclass(frozen=True, slots=True)
class Slots:
    """The places of a signature that a formula of some shape is to fill: what is read, written, and the numbers."""

    read: tuple[Argument, ...]
    written: tuple[Argument, ...]
    numbers: tuple[Argument, ...]


def slots_of(shape: Shape, signature: Sequence[Parameter]) -> Slots:
    """Where nothing says which arrays are written, the last ones are, or none where there are no more than are read.
    What is written is read as well where there are too few others."""
    arrays = [each for each in signature if each.pointer]
    written = [each for each in arrays if not each.constant]
    if len(written) == len(arrays):
        is_tensors = any(each.tensor for each in arrays)
        written = [] if is_tensors and len(arrays) <= len(shape.inputs) else written[-len(shape.outputs) :]
    read = [each for each in arrays if each not in written]
    if len(read) < len(shape.inputs):
        read += written

    def made(some: Sequence[Parameter]) -> tuple[Argument, ...]:
        return tuple(Argument(each.name, _kind(each.type), each.rank) for each in some)

    return Slots(made(read), made(written), made([each for each in signature if not each.pointer]))


def misfits(shape: Shape, signature: Sequence[Parameter]) -> int:
    """How many arrays and numbers of a formula a signature does not hold, or holds otherwise, and the reverse.

    >>> given = parameters("const float* x, const int* ids, float* y, int n")
    >>> misfits(shape_of("y[i] = x[ids[i]]"), given), misfits(shape_of("y[i] = x[i] + z[i]"), given)
    (0, 1)
    """
    if not any(each.pointer for each in signature):
        return 0
    slots = slots_of(shape, signature)
    found = abs(len(slots.read) - len(shape.inputs))
    if slots.written:
        found += abs(len(slots.written) - len(shape.outputs))
        found += abs(_in_both(slots.read, slots.written) - _in_both(shape.inputs, shape.outputs))
    floats = [sum(each.kind == "float" for each in some) for some in (slots.numbers, shape.numbers)]
    found += abs(floats[0] - floats[1])
    for wanted, offered in ((shape.inputs, slots.read), (shape.outputs, slots.written)):
        for what in ("kind", "rank"):
            own, other = (Counter(getattr(each, what) for each in some) for some in (wanted, offered))
            if offered and other.keys().isdisjoint({"", None}):
                found += min((own - other).total(), (other - own).total())
    return found


def _in_both(read: Sequence[Argument], written: Sequence[Argument]) -> int:
    return len({each.name for each in read} & {each.name for each in written})


def adapted(text: str, comment: str, given: str, problem: str = "") -> str:
    """A formula in the names and types of a signature; without one, in the type that the comment names, else f32. The
    numbers that `problem`, which it was found by, says are those of the comment. As it is where that makes no formula.
    """
    try:
        signature = parameters(given)
        made = with_numbers(text, problem, comment)
        if any(each.pointer for each in signature):
            made = _typed(_renamed(made, _names(shape_of(text), signature)), signature)
        else:
            kinds = [kind for kind, said in _TYPES if re.search(rf"\b({said})\b", comment, re.IGNORECASE)]
            made = _in_floats(made, kinds[0] if kinds else "f32")
        formula_of(made)
        return printed_in_one_line(parse(made))
    except FormulaError:
        return text


# Numbers


def with_numbers(text: str, problem: str, comment: str) -> str:
    """The formula with the numbers of one wording replaced by those of another: what stands beside the same words
    answers to each other, and of what is left as many numbers, in order. A window of 5 may be written as 4 or 2.

    >>> with_numbers("y[i] = max[i - 15 <= j <= i] x[j]", "trailing maximum, window 16", "maximum over a window of 4")
    'y[i] = max[i - 3 <= j <= i] x[j]'
    """
    told, asked = list(_numbers(problem)), list(_numbers(comment))
    new = {}
    for mine in list(told):
        same = next((each for each in asked if each[0] == mine[0]), None) or next(
            (each for each in asked if each[1] and each[1] == mine[1]), None
        )
        if same:
            told.remove(mine)
            asked.remove(same)
            new[float(mine[0])] = float(same[0])
    if len(told) == len(asked):
        new |= {float(mine[0]): float(other[0]) for mine, other in zip(told, asked, strict=True)}
    parts, end = [], 0
    for token in tokens_of(text):
        parts.append(text[end : token.at])
        parts.append(_other(token.text, new) if token.kind == "number" else token.text)
        end = token.at + len(token.text)
    return "".join(parts)


def _numbers(said: str) -> Iterator[tuple[str, str]]:
    """The numbers of a text, each with the word before it."""
    for before, each in pairwise(["", *words(said)]):
        if each[0].isdigit():
            yield each, before if before[:1].isalpha() else ""


def _other(literal: str, new: Mapping[float, float]) -> str:
    if not re.fullmatch(r"[\d.e+-]+", literal):
        return literal
    value = float(literal)
    if value in new:
        return literal if new[value] == value else f"{new[value]:g}"
    for old, other in new.items():
        if old > 2 and old.is_integer() and other.is_integer() and value in (old - 1, old // 2):
            return f"{other - 1 if value == old - 1 else other // 2:g}"
    return literal


# Names and types


def _names(shape: Shape, signature: Sequence[Parameter]) -> dict[str, str]:
    """For each array and number of the formula the name of a parameter."""
    slots = slots_of(shape, signature)
    outputs = {each.name for each in shape.outputs}
    inputs = [each for each in shape.inputs if each.name not in outputs]
    results = _matched(shape.outputs, slots.written)
    in_place = {new for old, new in results.items() if any(each.name == old for each in shape.inputs)}
    read = [each for each in slots.read if each.name not in in_place]
    numbers = [each for each in slots.numbers if each.kind == "float" or each.name in {n.name for n in shape.numbers}]
    named = results | _matched(inputs, read) | _matched(shape.numbers, numbers)
    primes = {named.get(each.name) for each in inputs}
    return {old: f"{new}'" if old in outputs and new in primes else new for old, new in named.items()}


def _matched(wanted: Sequence[Argument], offered: Sequence[Argument]) -> dict[str, str]:
    """A name for each: the same, else of what is alike in kind and rank one that begins alike, else the next."""

    def alikeness(pair: tuple[Argument, Argument]) -> tuple[bool, bool, bool, bool]:
        one, other = plain_name(pair[0].name), plain_name(pair[1].name)
        kind, rank = pair[0].kind == pair[1].kind, pair[0].rank == pair[1].rank
        return one == other and kind, kind, rank, one[0] == other[0]

    found: dict[str, str] = {}
    for mine, other in sorted(product(wanted, offered), key=alikeness, reverse=True):
        if mine.name not in found and other.name not in found.values():
            found[mine.name] = other.name
    return found


def _renamed(text: str, names: Mapping[str, str]) -> str:
    """The text with names replaced; what else has one of the new names gets another."""
    tokens = tokens_of(text)
    used = {each.text for each in tokens if each.kind == "name"}
    new = {each.rstrip("'") for each in names.values()}
    others = {each: f"{each}_{number}" for number, each in enumerate(sorted((used - names.keys()) & new), 2)}
    every = {**names, **others}
    parts, end = [], 0
    for token in tokens:
        parts.append(text[end : token.at])
        stem, dot, field = token.text.partition(".")
        parts.append(every.get(stem, stem) + dot + field if token.kind == "name" else token.text)
        end = token.at + len(token.text)
    return "".join(parts)


def _in_floats(text: str, kind: str) -> str:
    """The formula with arrays of one type of floating point."""
    written = parse(text)
    floats = [name for name, _ in _TYPES]
    plain = [replace(each, type="f32") if each.type in floats else each for each in written.declarations]
    return in_type(printed_in_one_line(replace(written, declarations=tuple(plain))), kind)


def _typed(text: str, signature: tuple[Parameter, ...]) -> str:
    """The formula with the element types of a signature."""
    written, formula = parse(text), formula_of(text)
    declared = {each.name for each in written.declarations}
    own = {**{each.array: each.type for each in formula.tensors.values()}, **formula.scalars}
    kinds = {each.name: each.type for each in signature if each.type and own.get(each.name, each.type) != each.type}
    old = [replace(each, type=kinds.get(each.name, each.type)) for each in written.declarations]
    new = [Declaration(name, kind) for name, kind in kinds.items() if name not in declared]
    return printed_in_one_line(replace(written, declarations=(*new, *old)))
