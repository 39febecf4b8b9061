"""Which of a formula's inputs stands for which of a reference's: by name where the signature or the comment names them,
else by type and rank, in every order.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from warpwright.assist.signature import Parameter, plain_name
from warpwright.formulas.model import Formula, Tensor
from warpwright.formulas.types import TYPES, ElementType

from warpwright_upskill.evaluation.prompt_inputs import Input
from warpwright_upskill.prompts import Prompt

Kind = Literal["right", "no formula", "inputs", "types", "shapes", "values", "limits", "reference"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong with an answer, by kind and in one sentence. "limits": it took too long or too much memory;
    "reference": the prompt's own reference failed."""

    kind: Kind
    reason: str = ""

    @property
    def right(self) -> bool:
        return self.kind == "right"


@dataclass(frozen=True, slots=True)
class Operand:
    """One array of a formula: a tensor, or the fields of a packed one."""

    name: str
    fields: tuple[Tensor, ...]

    @property
    def rank(self) -> int:
        return len(self.fields[0].extents) + (len(self.fields) > 1)


@dataclass(frozen=True, slots=True)
class Assignment:
    """For each array of the formula an input of the reference and how its dimensions are merged (the number of them
    in each group); for each number an input, or an extent as it is written."""

    arrays: Mapping[Operand, tuple[Input, tuple[int, ...]]]
    numbers: Mapping[str, Input | ast.expr]


def arrays_of(formula: Formula) -> list[Operand]:
    groups: dict[str, list[Tensor]] = {}
    for each in formula.inputs:
        groups.setdefault(each.array, []).append(each)
    return [Operand(name, tuple(fields)) for name, fields in groups.items()]


def assignments(
    prompt: Prompt, formula: Formula, signature: Sequence[Parameter], verdicts: list[Verdict]
) -> Iterator[Assignment]:
    """Ways to assign the inputs, the likeliest first. Those whose types do not agree are left out, and a verdict says
    so."""
    arrays = arrays_of(formula)
    inputs = [each for each in prompt.inputs if each.extents is not None]
    declared = {plain_name(each.name): each for each in signature}
    said = {plain_name(word) for word in re.findall(r"[A-Za-z_]\w*", prompt.comment)} | declared.keys()
    named = {each.name: each for each in inputs} | {plain_name(each.name): each for each in inputs}
    options: list[list[tuple[Input, tuple[int, ...]]]] = []
    for array in arrays:
        own = named.get(array.name) or named.get(plain_name(array.name))
        fixed = own is not None and plain_name(own.name) in said
        if own is None and plain_name(array.name) in declared:
            verdicts.append(Verdict("inputs", f"{array.name} is read, and it is no input."))
            return
        some = [own] if fixed and own else sorted(inputs, key=lambda each: each is not own)
        ways = []
        for each in some:
            if not _type_fits(TYPES[array.fields[0].type], each, declared, prompt.comment):
                kinds = f"{array.name} is {array.fields[0].type}, and {each.kind.name} is asked for"
                verdicts.append(Verdict("types", f"{kinds}."))
                continue
            ways += [(each, groups) for groups in _merges(len(each.extents or ()), array)]
        if not ways:
            verdicts.append(Verdict("inputs", f"No input has the type and the rank of {array.name}."))
            return
        options.append(ways)
    for numbers in _numbers(prompt, formula, declared, verdicts):
        for chosen in _distinct(options):
            yield Assignment(dict(zip(arrays, chosen, strict=True)), numbers)


def _distinct(
    options: Sequence[Sequence[tuple[Input, tuple[int, ...]]]], taken: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[Input, tuple[int, ...]], ...]]:
    """One way for each array, no input twice."""
    if len(taken) == len(options):
        yield ()
        return
    for each in options[len(taken)]:
        if each[0].name not in taken:
            for rest in _distinct(options, (*taken, each[0].name)):
                yield (each, *rest)


def _merges(rank: int, array: Operand) -> Iterator[tuple[int, ...]]:
    """Ways to take neighbouring dimensions of an input together so that the array's rank is left."""
    wanted = array.rank
    if rank == wanted:
        yield (1,) * rank
    elif wanted < rank and len(array.fields) == 1 and array.fields[0].strides is None:
        if wanted == 0:
            return
        yield from sorted(_cuts(rank, wanted), key=lambda each: -each[0])


def _cuts(rank: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (rank,)
        return
    for first in range(1, rank - parts + 2):
        for rest in _cuts(rank - first, parts - 1):
            yield (first, *rest)


def _type_fits(kind: ElementType, asked: Input, declared: Mapping[str, Parameter], comment: str) -> bool:
    """Whether an input of that type may stand for the one that is asked for. A signature fixes a type, and so does
    any type but the usual ones; of whole numbers and truth values the words must say it."""
    if kind.name == asked.kind.name:
        return True
    own = declared.get(plain_name(asked.name))
    if own is not None and own.type:
        return kind.name == own.type
    whole = ("integer", "bool")
    if kind.kind not in whole or asked.kind.kind not in whole:
        return False
    return not re.search(r"\b(u?int(8|16|32|64)\w*|u8|i8|byte|bytes|8[- ]bit|long|short|bool\w*)\b", comment, re.I)


def _numbers(
    prompt: Prompt, formula: Formula, declared: Mapping[str, Parameter], verdicts: list[Verdict]
) -> Iterator[dict[str, Input | ast.expr]]:
    """For each number of the formula an input of the reference: by name, else by order. One that is left may be an
    extent, if it is whole or no signature says that it is."""
    left = [each for each in prompt.inputs if each.extents is None]
    found: dict[str, Input | ast.expr] = {}
    for name in formula.scalars:
        own = next((each for each in left if plain_name(each.name) == plain_name(name)), None)
        if own is not None:
            left.remove(own)
            found[name] = own
    for name in (each for each in formula.scalars if each not in found and plain_name(each) not in declared):
        if left:
            found[name] = left.pop(0)
    for name, each in found.items():
        kind, own_type = TYPES[formula.scalars[name]], declared.get(plain_name(name))
        other = isinstance(each, Input) and (kind.kind == "integer") != (each.kind.kind == "integer")
        if isinstance(each, Input) and other and (own_type is not None or kind.kind == "integer"):
            verdicts.append(Verdict("types", f"{name} is {kind.name}, and {each.kind.name} is asked for."))
            return
    rest = [each for each in formula.scalars if each not in found]
    for name in rest:
        if plain_name(name) in declared and TYPES[formula.scalars[name]].kind != "integer":
            verdicts.append(Verdict("types", f"{name} is {formula.scalars[name]}, and a whole number is asked for."))
            return
    extents = {ast.unparse(part): part for each in prompt.inputs for part in each.extents or ()}
    if rest and not extents:
        verdicts.append(Verdict("inputs", f"The number {rest[0]} is no input."))
    for chosen in product(extents.values(), repeat=len(rest)):
        yield found | dict(zip(rest, chosen, strict=True))
