"""What words tell of the arrays around an operation: their shapes, types and names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random

from warpwright.formulas.model import Formula

from warpwright_upskill.data.requests.compose import Parts
from warpwright_upskill.data.requests.given import Array, arrays, shape_of
from warpwright_upskill.data.requests.vocabulary import TYPE_NAMES, TYPE_WORDS

_ANY = (
    "{x} is [{shape}]", "{x}: ({shape})", "{x} ({shape})", "{x} is {by}", "{x} has shape [{shape}]", "{x}: {by}",
    "{x} of shape ({shape})", "{x} of size {by}", "{x} [{shape}]", "{x} is ({shape})", "{x} with shape [{shape}]",
    "{x}.shape = ({shape})", "{x} comes as [{shape}]", "dims of {x}: {by}",
)  # fmt: skip
_OF_RANK: dict[int, tuple[str, ...]] = {
    1: (
        "{x} has {0} elements", "{x} of length {0}", "{x} is a vector of {0}", "{x}[{0}]", "{0} entries in {x}",
        "{x} holds {0} values", "{x} is {0} long", "{x} with {0} entries",
    ),
    2: (
        "{x} is a {0} by {1} matrix", "{x} has {0} rows and {1} columns", "{x}: {0} by {1}", "{0} x {1} matrix {x}",
        "{x} = {0} x {1} matrix", "{x} is {0} rows of {1}", "{x}[{0}][{1}]",
    ),
    3: ("{x} is a {0} x {1} x {2} tensor", "{x}[{0}][{1}][{2}]", "{x} = {by} tensor"),
    4: ("{x} is a {0} x {1} x {2} x {3} tensor", "{x} is 4d, {by}"),
}  # fmt: skip
_TYPED = ("{x} <is|are> {type}", "{x} in {type}", "{type} {x}", "{x}: {type}", "{x} stored as {type}", "{x} ({type})")
_RESULT_TYPED = (
    *_TYPED, "output is {type}", "{type} output", "the result is stored as {type}", "result in {type}", "{type} out",
    "write {type}", "cast the result to {type}", "returns {type}", "{x} has type {type}", "{x} must be {type}",
)  # fmt: skip
_EVERYTHING = re.compile(r"\b(in and out|in/out|all|everything|i/o|tensors)\b")
"""Words for a type that are of results, too."""


def shapes_told(parts: Parts, sizes: Mapping[str, str], chance: Random, results: bool = True) -> str:
    """`x is [B, T, C], w is [C]`: of some arrays, the widest among them; "" where there is nothing to tell."""
    listed = [each for each in arrays(parts.formula) if each.extents and (results or each.role != "out")]
    if not listed:
        return ""
    widest = max(listed, key=lambda each: len(each.extents))
    some = [each for each in listed if each is widest or chance.random() < 0.6]
    shapes = {each.name: shape_of(each, sizes) for each in some}
    if len({tuple(each) for each in shapes.values()}) == 1 and len(some) > 1 and chance.random() < 0.6:
        shape = next(iter(shapes.values()))
        names = _listed([each.name for each in some], chance)
        ways = ("{} are [{}]", "{} all [{}]", "{}: [{}]", "{} have shape ({})", "{} are both [{}]")
        return chance.choice(ways[: 5 if len(some) == 2 else 4]).format(names, ", ".join(shape))
    way = chance.choice(_ANY)
    told = [_shape(each, shapes[each.name], way, parts, chance) for each in some]
    return chance.choice((", ", ", ", "; ", " and ")).join(told)


def _shape(each: Array, shape: Sequence[str], way: str, parts: Parts, chance: Random) -> str:
    if each.fields == ("x", "y", "z") and chance.random() < 0.4:
        return chance.choice(("{1} points in 3d in {0}", "{0} has {1} points")).format(each.name, shape[0])
    if [*shape[-2:]] == ["H", "W"] and len(shape) == 2 and chance.random() < 0.6:
        return chance.choice(("{0} is an H x W image", "{0}: H x W image", "{0}, H rows of W pixels")).format(each.name)
    if chance.random() < 0.3 and len(shape) in _OF_RANK:
        way = chance.choice(_OF_RANK[len(shape)])
    text = way.replace("{x}", each.name).replace("{shape}", ", ".join(shape)).replace("{by}", " x ".join(shape))
    for at, size in enumerate(shape):
        text = text.replace(f"{{{at}}}", size)
    if len(shape) > 1 and not (each.name == parts.names.get("x") and parts.layout != "row") and chance.random() < 0.1:
        text += chance.choice((" row-major", ", row-major", " (row-major)"))
    return text


def types_told(parts: Parts, given: str, said: str, chance: Random) -> list[str]:
    """Clauses for the types that neither what is given nor the words say."""
    clauses = []
    known = bool(given)
    if parts.type != "f32" and not _says(parts.type, said):
        if not known or chance.random() < 0.3:
            clauses += _type_told(parts, chance)
    elif all(each.type == "f32" for each in arrays(parts.formula)) and chance.random() < 0.06:
        clauses.append(chance.choice(TYPE_WORDS["f32"]))
    results = {each.name for each in parts.formula.tensors.values() if each.role == "out"}
    groups: dict[tuple[str, bool], list[str]] = {}
    for name, type_ in parts.typed.items():
        if not re.search(rf"\b{re.escape(name)}\b", given) or chance.random() < 0.25:
            groups.setdefault((type_, name in results), []).append(name)
    for (type_, result), names in groups.items():
        way = chance.choice(_RESULT_TYPED if result and len(results) == 1 else _TYPED)
        clauses.append(_typed(way, names, type_, chance))
    return clauses


def _says(type_: str, words: str) -> bool:
    """Whether the words name a type: a `half` or a `double` alone may be a factor."""
    among = {*TYPE_WORDS.get(type_, ())} - {"half", "double"}
    return any(re.search(rf"\b{re.escape(each)}\b", words) for each in among)


def _type_told(parts: Parts, chance: Random) -> list[str]:
    """The type that most arrays have."""
    every = {each.name: each.type for each in arrays(parts.formula)}
    words = [each for each in TYPE_WORDS.get(parts.type, (parts.type,)) if each]
    if {*every.values()} != {parts.type}:
        words = [each for each in words if not _EVERYTHING.search(each)]
    if not parts.typed and chance.random() < 0.75:
        return [chance.choice(words)]
    of = [each.name for each in arrays(parts.formula) if each.role != "out" and each.type == parts.type]
    if parts.in_place or parts.adds or not of:
        return [chance.choice(words)]
    return [_typed(chance.choice(_TYPED), of, parts.type, chance)]


def _typed(way: str, names: Sequence[str], type_: str, chance: Random) -> str:
    way = way.replace("<is|are>", "is" if len(names) == 1 else "are")
    return way.replace("{x}", _listed(names, chance)).replace("{type}", chance.choice(TYPE_NAMES.get(type_, (type_,))))


def _listed(names: Sequence[str], chance: Random) -> str:
    if len(names) == 1:
        return names[0]
    last = chance.choice((" and ", " and ", ", ", " & "))
    return ", ".join(names[:-1]) + last + names[-1]


def names_told(formula: Formula, unsaid: Sequence[str], chance: Random) -> str:
    """The names that the words have not told."""
    results = {each.array for each in formula.tensors.values() if each.role != "in"}
    told = []
    for each in unsaid:
        ways = _RESULTS if each in results else _NUMBERS if each in formula.scalars else _INPUTS
        told.append(chance.choice(ways).format(each))
    return ", ".join(told)


_RESULTS = (
    "output {}", "result in {}", "write to {}", "store it in {}", "into {}", "{} is the output", "output goes to {}",
    "call the result {}", "the output array is {}", "save to {}", "out: {}", "result -> {}", "put it in {}",
    "returns {}", "{} receives the result", "-> {}", "results go into {}", "output buffer {}",
    "the result is called {}",
)  # fmt: skip
_NUMBERS = (
    "{} is a scalar", "scalar {}", "parameter {}", "{} is a number passed in", "{} comes as an argument", "arg {}",
    "{} is a plain number", "takes {} as a parameter", "number {}",
)  # fmt: skip
_INPUTS = (
    "input {}", "{} is the input", "read from {}", "array {}", "input array {}", "in: {}", "{} is an array", "reads {}",
    "the input is called {}", "data in {}", "takes {}", "{} as input",
)  # fmt: skip


_ROLES = (
    "inputs {read}, output {written}{numbers}", "takes {read}, writes {written}{numbers}",
    "in: {read}; out: {written}{numbers}", "arrays {read} in, {written} out{numbers}", "{read} -> {written}{numbers}",
    "reads {read} and writes {written}{numbers}",
    "given {read}, return {written}{numbers}", "buffers: {read} (read), {written} (written){numbers}",
)  # fmt: skip
_SCALARS = ("; {} <is a scalar|are scalars>", ", scalar<|s> {}", ", parameter<|s> {}", "; number<|s>: {}")


def roles_told(formula: Formula, chance: Random) -> str:
    """What is read, what is written, and which of the names are numbers."""
    listed = arrays(formula)
    read = [each.name for each in listed if each.role != "out"]
    written = [each.name for each in listed if each.role != "in"]
    numbers = ""
    if names := list(formula.scalars):
        one, more = re.split(r"[<>]", way := chance.choice(_SCALARS))[1].split("|")
        numbers = re.sub(r"<[^>]*>", one if len(names) == 1 else more, way).format(_listed(names, chance))
    if not read:
        return ""
    way = chance.choice(_ROLES)
    return way.format(read=_listed(read, chance), written=_listed(written, chance), numbers=numbers)
