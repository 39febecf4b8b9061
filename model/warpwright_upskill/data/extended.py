"""Written requests with a step more: the formula does something before or after, and the words say so.

A teacher's request says one thing well. What users ask for is that and something else, so each request also stands with
steps of `steps.toml` in its formula, its signature and its words, in other types, for a batch, or with its result
transposed. What comes of it is read again and evaluated as any written request is.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from warpwright.assist.formula_task import read_formula
from warpwright.formulas.model import Formula
from warpwright.formulas.parser import parse
from warpwright.formulas.printer import printed_in_one_line
from warpwright.formulas.tree import Declaration, Equation, Expr, Load, Name, Written, rebuilt, walk

from warpwright_upskill.data.requests.names import pool

_C_TYPES = {"f32": "float", "f64": "double", "f16": "half", "bf16": "__nv_bfloat16", "i32": "int", "bool": "bool"}
_JOINED = (", ", ", ", ", ", "; ", "; ", ". ", " - ", ", and ", ", then: ")
_SLOTS = {"m": "other", "w": "w", "u": "w", "k": "mask", "i": "mask", "a": "alpha", "b": "beta"}
_NUMBERS = ("a", "b")
_LIKELY_STEPS = ((1, 0.55), (2, 0.35), (3, 0.1))
_BATCHED = (
    "for each {b} of a batch",
    "batched: all arrays get a leading batch dimension",
    "do this for every element of a batch; each array has the batch as its first dimension",
    "with a leading batch dimension on every array",
    "independently for every batch item (first dimension of all arrays)",
)
_TRANSPOSED = (
    "store the result transposed",
    "{y} is written transposed",
    "output transposed",
    "and write the transpose of that into {y}",
    "with the two dimensions of the output swapped",
)
_TYPES = {
    "f16": ("half", "__half", "all arrays in half", "fp16 in and out", "everything fp16", "half precision arrays"),
    "bf16": ("__nv_bfloat16", "nv_bfloat16", "bfloat16 arrays", "all in bf16", "bf16 in and out"),
    "f64": ("double", "double", "in double precision", "doubles everywhere", "all arrays are double", "float64"),
}
_INPUT_TYPES = {
    "f16": ("fp16 in, float out", "half inputs, the result in float", "inputs are half, output float32"),
    "bf16": ("bf16 in, float out", "inputs in bfloat16, the result in float"),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A request under way: its formula's tree, its signature, and its words with what was said behind and before."""

    written: Written
    given: str
    words: str
    first: str = ""


def extended(formula: str, given: str, words: str, chance: Random) -> tuple[str, str, str] | None:
    """Formula, signature and words with one step or more; None where none could be taken.

    >>> found = extended("y[i] = x[i] + 1", "const float* x, float* y, int n", "x plus 1", Random(7))
    >>> for each in found: print(each)
    y[i] = (x[i] + 1) * silu(rhs[i])
    const float* x, float* y, const float* rhs, int n
    x plus 1, then: times silu(rhs) elementwise
    """
    asked: Asked | None = Asked(parse(formula), given, words)
    wanted = chance.choices([n for n, _ in _LIKELY_STEPS], [share for _, share in _LIKELY_STEPS])[0]
    kinds = chance.choices((_after, _before, _typed, _batched, _transposed), (60, 25, 10, 6, 5), k=wanted)
    taken = 0
    # Of two steps before, the words would not tell which is the first.
    once = [each for at, each in enumerate(kinds) if each is _after or each not in kinds[:at]]
    for kind in sorted(once, key=_ORDER.index):
        found = kind(asked, chance) if asked else None
        if found is not None and isinstance(read_formula(text_of(found)), Formula):
            asked, taken = found, taken + 1
    if not taken or asked is None:
        return None
    said = asked.words
    if asked.first:
        said = f"{asked.first[0].upper()}{asked.first[1:]}{chance.choice((': ', '. ', ', then '))}{said}"
    return text_of(asked), asked.given, said


def text_of(asked: Asked) -> str:
    return printed_in_one_line(asked.written)


def _after(asked: Asked, chance: Random) -> Asked | None:
    """Something done with the value of an output."""
    equation = _one_output(asked.written)
    formula = read_formula(text_of(asked))
    if equation is None or not isinstance(formula, Formula):
        return None
    plain = _is_plain(equation)
    step = chance.choice(_steps()["after"])
    needs_place = re.search(r"\{[mwuki]\}", step.get("value", ""))
    if formula.tensors[equation.name].type not in ("f32", "f16", "bf16", "f64") or (needs_place and not plain):
        return None
    if len(equation.index) < step.get("rank", 0) or (equation.index == () and needs_place):
        return None
    says = step["says"]
    if len(equation.index) == 2 and "columns" in step:
        says = step["columns"]
    if "combine" in step:
        if equation.combine or equation.primed or not plain or formula.tensors[equation.name].array in _inputs(formula):
            return None
        if any(each.name == equation.name for each in asked.written.declarations if each.extents is not None):
            return None
        changed = replace(equation, combine=step["combine"])
        return _said(_with(asked, changed), chance.choice(says), {"y": equation.name}, chance)
    names = _named(asked, step, chance)
    value = _filled(step, names, {"V": equation.value}, equation.index)
    found = _declared(_with(asked, replace(equation, value=value)), step, names, formula, equation)
    return found and _said(found, chance.choice(says), {**names, "y": equation.name}, chance)


def _before(asked: Asked, chance: Random) -> Asked | None:
    """Something done with each element of an input."""
    formula = read_formula(text_of(asked))
    if not isinstance(formula, Formula):
        return None
    said = f"{asked.words} {asked.given}"
    floats = [
        each.name
        for each in formula.inputs
        if each.type in ("f32", "f16", "bf16", "f64") and re.search(rf"\b{re.escape(each.name)}\b", said)
    ]
    if not floats or any(each.primed or each.combine for each in asked.written.equations):
        return None
    array = chance.choice(floats)
    step = chance.choice(_steps()["before"])
    names = _named(asked, step, chance)

    def change(node: Expr) -> Expr:
        if isinstance(node, Load) and node.tensor == array and node.outside is None:
            return _filled(step, names, {"X": node}, ())
        return node

    if any(isinstance(each, Load) and each.tensor == array and each.outside for each in _nodes(asked.written)):
        return None
    equations = tuple(replace(each, value=rebuilt(each.value, change)) for each in asked.written.equations)
    found = replace(asked, written=replace(asked.written, equations=equations))
    grown = _declared(found, step, names, formula, None)
    if grown is None:
        return None
    return _around(grown, chance.choice(step["says"]).format(**names, x=array), chance)


def _typed(asked: Asked, chance: Random) -> Asked | None:
    """Other element types."""
    formula = read_formula(text_of(asked))
    if not isinstance(formula, Formula) or asked.written.declarations or "Tensor" in asked.given:
        return None
    if any(each.type != "f32" for each in formula.tensors.values()):
        return None
    written = {each.name for each in formula.outputs}
    of_inputs = chance.random() < 0.3
    kind = chance.choice(sorted(_INPUT_TYPES if of_inputs else _TYPES))
    names = sorted({each.array for each in formula.tensors.values() if not (of_inputs and each.name in written)})
    if of_inputs and {formula.tensors[each].array for each in written} & set(names):
        return None
    spelled = chance.choice(_TYPES[kind][:2])
    parts = asked.given.split(",")
    for at, part in enumerate(parts):
        found = re.fullmatch(r"(.*?)\bfloat\b(.*?(\w+)\s*(?:\[.*)?)", part, re.DOTALL)
        is_array = "*" in part or "[" in part
        if found and (found[3] in names if is_array else kind == "f64"):
            parts[at] = f"{found[1]}{spelled}{found[2]}"
    declarations = tuple(Declaration(name, kind) for name in names)
    given = ",".join(parts)
    result = replace(asked, written=replace(asked.written, declarations=declarations), given=given)
    if asked.given and chance.random() < 0.7:
        return result if given != asked.given else None
    says = _INPUT_TYPES[kind] if of_inputs else _TYPES[kind][2:]
    return _joined(result, chance.choice(says), chance)


def _batched(asked: Asked, chance: Random) -> Asked | None:
    """A dimension more, the first of every array."""
    text = text_of(asked)
    if "Tensor" in asked.given or any(each.extents is not None for each in asked.written.declarations):
        return None
    if "batch" in f"{asked.words} {asked.given}".lower():
        return None
    used = set(re.findall(r"\w+", f"{text} {asked.given} {asked.words}".lower()))
    name = next((each for each in ("b", "n", "s", "g", "bi") if each not in used), None)
    formula = read_formula(text)
    if name is None or not isinstance(formula, Formula) or not all(map(_is_plain, asked.written.equations)):
        return None
    read_whole = {each.name for each in asked.written.equations}
    arrays = {*formula.tensors, *read_whole}

    def change(node: Expr) -> Expr:
        if isinstance(node, Load) and node.tensor in arrays:
            return replace(node, index=(Name(name), *node.index))
        if isinstance(node, Name) and node.name in read_whole:
            return Load(node.name, (Name(name),))
        return node

    equations = tuple(
        replace(each, index=(Name(name), *each.index), value=rebuilt(each.value, change))
        for each in asked.written.equations
    )
    size = chance.choice([each for each in ("batch", "B", "nbatch", "batch_size") if each.lower() not in used])
    given = _inserted(asked.given, f"int {size}") if asked.given else ""
    found = replace(asked, written=replace(asked.written, equations=equations), given=given)
    return _around(found, chance.choice(_BATCHED).format(b=name), chance)


def _transposed(asked: Asked, chance: Random) -> Asked | None:
    """The result with its two dimensions swapped."""
    equation = _one_output(asked.written)
    if equation is None or len(equation.index) != 2 or not _is_plain(equation) or equation.primed or equation.combine:
        return None
    if "Tensor" in asked.given or any(each.extents is not None for each in asked.written.declarations):
        return None
    changed = _with(asked, replace(equation, index=equation.index[::-1]))
    return _said(changed, chance.choice(_TRANSPOSED), {"y": equation.name}, chance)


_ORDER = (_before, _after, _typed, _batched, _transposed)


@cache
def _steps() -> dict[str, list[dict[str, Any]]]:
    return tomllib.loads((Path(__file__).parent / "steps.toml").read_text(encoding="utf-8"))


def _one_output(written: Written) -> Equation | None:
    """The equation of the only output, which nothing reads."""
    outputs = [each for each in written.equations if not each.temporary]
    if len(outputs) != 1:
        return None
    name = outputs[0].name
    is_read = any(isinstance(each, Load) and each.tensor == name for each in _nodes(written))
    return None if is_read and not outputs[0].primed else outputs[0]


def _nodes(written: Written) -> Iterator[Expr]:
    for each in written.equations:
        yield from walk(each.value)


def _inputs(formula: Formula) -> set[str]:
    return {each.array for each in formula.inputs}


def _is_plain(equation: Equation) -> bool:
    """Whether it writes each place once: its indices are dimensions, each once."""
    names = [each.name for each in equation.index if isinstance(each, Name)]
    return len(names) == len(equation.index) == len(set(names))


def _with(asked: Asked, changed: Equation) -> Asked:
    equations = tuple(
        changed if each.name == changed.name and not each.temporary else each for each in asked.written.equations
    )
    return replace(asked, written=replace(asked.written, equations=equations))


def _named(asked: Asked, step: dict[str, Any], chance: Random) -> dict[str, str]:
    """A name that nothing has for each array and number of a step, and its constants."""
    used = set(re.findall(r"\w+", f"{text_of(asked)} {asked.given} {asked.words}"))
    used |= {each.lower() for each in used} | {each.upper() for each in used}
    names = {}
    for slot in re.findall(r"\{(\w+)\}", step["value"]):
        if slot in _SLOTS and slot not in names:
            names[slot] = chance.choice([each for each in pool(_SLOTS[slot]) if each not in used] or [f"{slot}_in"])
            used.add(names[slot])
    if constants := step.get("c"):
        first, *more = chance.choice(constants).split()
        names |= {"lo": first, "hi": more[0]} if more else {"c": first}
    return names


def _filled(step: dict[str, Any], names: dict[str, str], values: dict[str, Expr], place: Sequence[Expr]) -> Expr:
    """The expression of a step around values."""
    pattern = re.sub(r"\b[VX]\b", lambda found: f"old_{found[0]}", step["value"])
    loads = {names[slot]: index for slot, index in _places(place).items() if slot in names}

    def change(node: Expr) -> Expr:
        if isinstance(node, Name):
            if node.name.startswith("old_") and node.name[4:] in values:
                return values[node.name[4:]]
            if node.name in loads:
                return Load(node.name, loads[node.name])
        return node

    return rebuilt(parse(f"q = {pattern.format(**names)}").equations[0].value, change)


def _places(place: Sequence[Expr]) -> dict[str, tuple[Expr, ...]]:
    whole = tuple(place)
    return {"m": whole, "k": whole, "i": whole, "w": whole[-1:], "u": whole[:1]}


def _declared(
    asked: Asked, step: dict[str, Any], names: dict[str, str], formula: Formula, equation: Equation | None
) -> Asked | None:
    """With what a step reads in the declarations and in the signature; None where the signature cannot have it."""
    kind = formula.tensors[equation.name].type if equation else "f32"
    declarations, given = list(asked.written.declarations), asked.given
    for slot, name in names.items():
        if slot not in _SLOTS:
            continue
        own = {"k": "bool", "i": "i32"}.get(slot, kind if slot not in _NUMBERS else "")
        if own not in ("", "f32", "bool"):
            declarations.append(Declaration(name, own))
        if not given:
            continue
        if slot in _NUMBERS:
            is_double = re.search(r"\bdouble\b", given) and kind == "f64"
            number = f"{name}: float" if "Tensor" in given else f"{'double' if is_double else 'float'} {name}"
            given = _inserted(given, number)
        elif "Tensor" in given or "*" not in given:
            return None
        else:
            spelled = re.search(rf"([\w:]+)\s*\*[^,]*\b{equation.name}\b", given) if equation else None
            c_type = spelled[1] if spelled and own == kind else _C_TYPES[own]
            restrict = " __restrict__" if "__restrict__" in given else ""
            given = _inserted(given, f"{'const ' if 'const' in given else ''}{c_type}*{restrict} {name}")
    return replace(asked, written=replace(asked.written, declarations=tuple(declarations)), given=given)


def _inserted(given: str, parameter: str) -> str:
    """The signature with a parameter before its sizes.

    >>> _inserted("const float* x, float* y, int n", "float a")
    'const float* x, float* y, float a, int n'
    """
    parts = given.split(", ")
    sizes = (
        at
        for at, part in enumerate(parts)
        if re.match(r"(const )?(int|unsigned|size_t|long|uint\w*|int64_t)\b[^*\[]*$", part)
    )
    return ", ".join([*parts[: (at := next(sizes, len(parts)))], parameter, *parts[at:]])


def _said(asked: Asked, phrase: str, names: dict[str, str], chance: Random) -> Asked:
    return _joined(asked, phrase.format(**names), chance)


def _around(asked: Asked, phrase: str, chance: Random) -> Asked:
    """With a phrase before the words or behind them."""
    if chance.random() < 0.5 and not asked.first:
        return replace(asked, first=phrase)
    return _joined(asked, phrase, chance)


def _joined(asked: Asked, phrase: str, chance: Random) -> Asked:
    joint = chance.choice(_JOINED)
    if joint == ", and " and phrase.startswith("and "):
        joint = ", "
    is_name = re.split(r"\W", phrase)[0] in re.findall(r"\w+", f"{text_of(asked)} {asked.given}")
    if joint == ". " and not is_name:
        phrase = f"{phrase[0].upper()}{phrase[1:]}"
    return replace(asked, words=f"{asked.words.rstrip(' .;,')}{joint}{phrase}")
