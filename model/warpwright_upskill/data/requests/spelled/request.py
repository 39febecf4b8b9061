"""A request for a formula that is drawn: its mathematics in one notation, and what else must be known, in words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from warpwright.formulas.model import Formula
from warpwright.formulas.parser import parse
from warpwright.formulas.resolve import resolve
from warpwright.formulas.tree import Equation, Load, Name, Reduce, walk

from warpwright_upskill.data.requests.phrasebook import DEMANDS
from warpwright_upskill.data.requests.signatures import c_signature, torch_signature
from warpwright_upskill.data.requests.spelled.axes import UnsayableError
from warpwright_upskill.data.requests.spelled.loops import LOOPED, Code, loops
from warpwright_upskill.data.requests.spelled.notation import NOTATIONS, Latex, Notation, Subscripts
from warpwright_upskill.data.requests.spelled.numpy_like import Whole
from warpwright_upskill.data.requests.spelled.plain import Plain
from warpwright_upskill.data.requests.spelled.shapes import (
    Sizes,
    longer_words,
    outside_words,
    shape_words,
    sizes_of,
    type_words,
)
from warpwright_upskill.data.requests.spelled.sketch import Sketch

_LEADS = ("",) * 7 + (
    "compute ", "kernel for ", "kernel: ", "I need ", "implement ", "evaluate ", "CUDA kernel for ", "GPU version of ",
    "need a kernel that computes ", "write a kernel computing ", "// ", "what I want: ", "given the inputs compute ",
    "fused: ", "step: ", "we need ", "formula: ",
)  # fmt: skip
_LOOP_LEADS = ("",) * 4 + ("on the GPU: ", "port this loop: ", "same as ", "parallelise: ", "kernel for this loop: ")
_WEIGHTS = {
    "brackets": 24,
    "subscripts": 20,
    "functions": 8,
    "unicode": 11,
    "latex": 13,
    "loops": 14,
    "numpy": 30,
    "words": 60,
}
WHOLE = ("numpy", "words")
"""Without indices."""
_WORD_LEADS = ("",) * 6 + (
    "kernel: ",
    "need a kernel: ",
    "TODO: ",
    "// ",
    "cuda: ",
    "what I need: ",
    "one fused kernel: ",
)
_PLAIN_DIMS = ("i", "j", "k", "l", "m", "n", "p", "q")
_SPARE = "acc tot s0 s1 s2 part t0 t1"


@dataclass(frozen=True, slots=True)
class Said:
    """A request: the comment, what is given beside it, the constraints that it names, how it was made, and the formula
    with the dimensions that it names."""

    comment: str
    given: str
    constraints: tuple[str, ...]
    how: str
    formula: Formula


def said(sketch: Sketch, chance: Random) -> Said:
    """The request in other words for each state of `chance`."""
    sizes = sizes_of(sketch)
    form, statement = _first_that_can(sketch, sizes, chance)
    whole = form in WHOLE
    ranked = any(len(shape) > 1 for shape in sizes.arrays.values())
    declared = chance.choices(("c", "torch", "prose", "none"), (45, 12, 27, 16))[0]
    given, told = _given(sketch, sizes, declared, statement, chance)
    shaped = declared == "prose" or (form == "loops" and not given)
    shaped |= whole and ranked and not (declared == "torch" and "[" in given)
    shapes = shape_words(sizes, chance) if shaped else ""
    clauses = [*outside_words(sketch, chance), *type_words(sketch, told, chance), *_roles(sketch, chance)]
    if not shapes:
        clauses += longer_words(sketch, sizes, chance)
    if not shapes and declared != "torch" and (sized := _sizes_in_words(sketch, sizes, chance)):
        clauses.append(sized)
    constraints = tuple(chance.sample(DEMANDS, chance.choices((0, 1), (88, 12))[0]))
    clauses += constraints
    if chance.random() < 0.5:
        chance.shuffle(clauses)
    text = _led(form, statement, chance)
    if shapes:
        ways = [f"{text}. {shapes}", f"{text}; {shapes}", f"{text} ({shapes})"]
        ways += [f"{shapes}. {text}", f"{shapes}; {text}"] if not text.startswith("//") else []
        ways += [f"{text}, {shapes}"] if form != "words" else []
        if re.search(r" (is|are|has|have) ", shapes):
            ways.append(f"{text}, where {shapes}")
        elif not text.startswith("//"):
            ways.append(f"with {shapes}: {text}")
        text = chance.choice(ways)
    for each in clauses:
        text += chance.choice((", ", ", ", "; ", ". ")) + each if not each.startswith("(") else f" {each}"
    if chance.random() < 0.2:
        text += "."
    formula = sketch.formula
    if whole and "einsum" not in statement:
        formula = _renamed(sketch, sizes if shapes or declared == "torch" else None)
    return Said(_tidy(text), given, constraints, f"{form} {declared}", formula)


def _first_that_can(sketch: Sketch, sizes: Sizes, chance: Random) -> tuple[str, str]:
    """A notation that can say the formula, and the formula in it."""
    while True:
        form = chance.choices(tuple(_WEIGHTS), tuple(_WEIGHTS.values()))[0]
        try:
            return form, stated(sketch, sizes, form, chance)
        except UnsayableError:
            continue


def _led(form: str, statement: str, chance: Random) -> str:
    if form == "loops":
        return f"{chance.choice(_LOOP_LEADS)}{statement}"
    if form == "words":
        return f"{chance.choice(_WORD_LEADS)}{statement}"
    lead = "" if statement.startswith(("let ", "first ")) else chance.choice(_LEADS)
    return f"{lead}{statement}"


def _renamed(sketch: Sketch, sizes: Sizes | None) -> Formula:
    """The formula with dimensions that a request without indices lets one expect: those of its sizes, else i, j, k."""
    taken = {*sketch.formula.tensors, *sketch.formula.scalars, *(each.name for each in sketch.written.equations)}
    names: dict[str, str] = {}
    order = sorted(sketch.formula.dims, key=lambda each: list(sketch.sizes).index(each))
    for dim in order:
        size = sizes.dims[dim] if sizes else ""
        wanted = [size.lower()] if len(size) == 1 and size.isalpha() else []
        free = (
            each
            for each in (*wanted, *_PLAIN_DIMS)
            if each not in {*names.values()} and not {each, each.upper()} & taken
        )
        names[dim] = next(free)
    names |= {dim.upper(): name.upper() for dim, name in names.items()}
    text = re.sub(r"\b[A-Za-z]\b", lambda found: names.get(found[0], found[0]), sketch.text)
    return resolve(text, parse(text))


def stated(sketch: Sketch, sizes: Sizes, form: str, chance: Random) -> str:
    """All equations of the formula in one notation."""
    written = sketch.written
    results = [each for each in written.equations if not each.temporary]
    stages = [each for each in written.equations if each.temporary]
    if form == "loops":
        return _loops(sketch, sizes, (*stages, *results), chance)
    if form in WHOLE:
        return _whole(sketch, sizes, form, stages, results, chance)
    notation = {each.name: each for each in NOTATIONS}[form](sizes.dims, chance)
    names = [*sketch.formula.tensors, *(each.name for each in stages)]
    if (
        isinstance(notation, Subscripts)
        and not isinstance(notation, Latex)
        and any("_" in each for each in names)
        and not getattr(notation, "square_brackets", False)
    ):
        raise UnsayableError("an underscore beside subscripts")
    main = chance.choice((", ", "; ", " and ")).join(_one(notation, each, 0.12) for each in results)
    every = _for_all(results[0], sizes, chance)
    if stages:
        behind = chance.choice((", ", " and ", "; ")).join(_one(notation, each, 0.4) for each in stages)
        ways = (
            f"{main} where {behind}",
            f"{main}, with {behind}",
            f"let {behind}, then {main}",
            f"first {behind} (intermediate), then {main}",
            f"{main} where {behind}",
        )
        return chance.choice(ways)
    return f"{main}{every}"


def _one(notation: Notation, each: Equation, share: float) -> str:
    """An equation, now and then with its reduction in words."""
    in_words = notation.chance.random() < share and not isinstance(notation, Latex)
    return notation.worded(each) if in_words else notation.statement(each)


def _whole(
    sketch: Sketch, sizes: Sizes, form: str, stages: Sequence[Equation], results: Sequence[Equation], chance: Random
) -> str:
    """The equations without indices: as array expressions, or in words."""
    if len({*sizes.dims.values()} - {""}) < len({*map(str, sketch.formula.dims.values())}):
        raise UnsayableError("sizes of one name")
    if form == "words":
        words = Plain(sizes.dims, chance)
        return chance.choice((". ", "; then ", ". Then ")).join(words.statement(each) for each in (*stages, *results))
    if any(each.type in ("u8", "i8") for each in sketch.formula.tensors.values()):
        raise UnsayableError("bytes, which wrap around there")
    arrays = Whole(sizes.dims, chance)
    main = "; ".join(arrays.statement(each) for each in results)
    if not stages:
        return main
    behind = "; ".join(arrays.statement(each) for each in stages)
    return chance.choice((f"{behind}; {main}", f"{behind}; {main}", f"{main} where {behind}")) + (
        ""
        if len(results) > 1 or chance.random() < 0.3
        else f" ({' and '.join(each.name for each in stages)} temporary)"
    )


def _for_all(each: Equation, sizes: Sizes, chance: Random) -> str:
    dims = [part.name for part in each.index if isinstance(part, Name)]
    if len(dims) != len(each.index) or not dims or chance.random() < 0.7:
        return ""
    listed = ", ".join(dims)
    ways = [f" for all {listed}", f" for each {listed}"]
    if len(dims) == 1 and (size := sizes.dims[dims[0]]):
        ways += [f" for {listed} = 0..{size}-1", f", {listed} < {size}", f" for {listed} in [0, {size})"]
    return chance.choice(ways)


def _loops(sketch: Sketch, sizes: Sizes, equations: Sequence[Equation], chance: Random) -> str:
    nodes = [node for each in equations for node in walk(each.value)]
    if any(isinstance(node, Reduce) and node.op not in LOOPED for node in nodes) or not all(sizes.dims.values()):
        raise UnsayableError("loops without an end")
    for each in equations:
        outer = {part.name for part in each.index if isinstance(part, Name)}
        if any(outer & {part.name for part in node.ranges} for node in walk(each.value) if isinstance(node, Reduce)):
            raise UnsayableError("two loops of one name in each other")
    outside = {node.tensor for node in nodes if isinstance(node, Load) and node.outside is not None}
    flat = {
        name: shape
        for name, shape in sizes.arrays.items()
        if all(shape[1:]) and not any(" " in each for each in shape) and name not in outside
    }
    if not all(name in flat or len(shape) < 2 for name, shape in sizes.arrays.items()) or any(
        each.temporary and len(each.index) > 1 for each in equations
    ):
        flat = {}
    code = Code(sizes.dims, chance, flat)
    used = {*re.findall(r"\w+", sketch.text), *sizes.dims.values()}
    text = loops(equations, sizes.dims, code, [each for each in _SPARE.split() if each not in used], chance)
    temporary = [each.name for each in equations if each.temporary]
    return (
        f"{text} ({' and '.join(temporary)} {'are' if len(temporary) > 1 else 'is'} temporary)" if temporary else text
    )


def _given(sketch: Sketch, sizes: Sizes, form: str, words: str, chance: Random) -> tuple[str, frozenset[str]]:
    """What stands beside the request, and the names whose types it tells."""
    formula = sketch.formula
    if form == "c":
        return c_signature(formula, chance, sizes.symbols, words=words), frozenset((*formula.tensors, *formula.scalars))
    if form == "torch":
        text = torch_signature(formula, chance, sizes.symbols, words=words)
        return text, frozenset(name for name in formula.tensors if re.search(rf"\b{name}\b", text))
    return "", frozenset()


def _roles(sketch: Sketch, chance: Random) -> list[str]:
    """What else must be known of results: that they are added to, begin with 0, or take an input's place."""
    said = []
    for each in sketch.written.equations:
        scattered = any(isinstance(part, Load) for part in each.index)
        if each.primed and not each.combine:
            said.append(chance.choice(_IN_PLACE).format(each.name))
        elif scattered and not each.combine:
            said.append(chance.choice(_FROM_ZERO).format(each.name))
        elif scattered:
            said.append(chance.choice(_SCATTERED).format(each.name))
        elif each.combine and chance.random() < 0.5:
            said.append(
                chance.choice(("{} is read and written", "accumulates into {}", "updates {}")).format(each.name)
            )
    outputs = [each.name for each in sketch.formula.outputs]
    if len(outputs) > 1 and chance.random() < 0.6:
        both = " and ".join(outputs)
        said.append(
            chance.choice((f"outputs {both}", f"two outputs: {', '.join(outputs)}", f"{both} are both written"))
        )
    elif len(outputs) == 1 and chance.random() < 0.08 and outputs[0] != "output":
        said.append(chance.choice(("{} is the output", "output {}", "write to {}")).format(outputs[0]))
    return said


_IN_PLACE = ("in place", "in-place", "{} is updated in place", "overwrites {}", "write the result back to {}")
_FROM_ZERO = ("{} starts at zero", "{} begins with 0", "where nothing lands {} is 0", "initialise {} to 0")
_SCATTERED = ("several may hit the same place", "use atomics", "{} holds values already", "duplicates are possible")


def _sizes_in_words(sketch: Sketch, sizes: Sizes, chance: Random) -> str:
    """What a size stands for that the formula takes as a number."""
    names = {node.name for each in sketch.written.equations for node in walk(each.value) if isinstance(node, Name)}
    said = []
    for dim, size in sizes.dims.items():
        if dim.upper() in names and size:
            said.append(
                chance.choice((f"{dim} runs over {size}", f"{size} is the size of {dim}", f"{dim} = 0..{size}-1"))
            )
    return ", ".join(said)


def _tidy(text: str) -> str:
    text = re.sub(r" +", " ", text)
    return re.sub(r"; ?[;,.](?= |$)", ";", text).strip()
