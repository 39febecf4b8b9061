"""Formulas of what words say, in the names and types of a signature where there is one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from warpwright.assist.code_expression import equation_in, in_code, is_called_in, name_in_code, said_in_code
from warpwright.assist.signature import Parameter, parameters
from warpwright.assist.worded_names import DIMS, Names, UnfitError
from warpwright.assist.worded_rows import rows_asked, rows_text
from warpwright.assist.wording import Array, Said, is_of_arrays, operation, said_in
from warpwright.assist.wording_table import Operation
from warpwright.formulas.lexer import FormulaError
from warpwright.formulas.model import Formula
from warpwright.formulas.parser import parse
from warpwright.formulas.printer import printed_in_one_line
from warpwright.formulas.resolve import formula_of

_EXTENT = re.compile(
    r"(?:n|num|no|nr|total)?_?(?:row|col|column|line|batch|batche|channel|head|height|width|depth|elem|element|seq|"
    r"sequence|len|length|size|dim|token|feature|hidden|vocab|class|classe|item|point|frame|sample|image|img|pixel)s?"
    r"(?:_?(?:n|num|count|size|len|length|dim))?\d?|(?:n|num)?_?[a-z]\d?",
    re.IGNORECASE,
)
"""Names of parameters that are extents."""


@dataclass(slots=True)
class _Value:
    """An expression over dimensions, with the stages that it reads and the arrays, each with its rank."""

    text: str
    dims: tuple[str, ...]
    stages: list[str]
    arrays: dict[str, int]
    index: str | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """A formula that words may mean, and what a function that computes it may be called, "" where nothing says it.
    `votes` says how many of a model's samples mean it, "5 of 8": a guess; "" where it is certain."""

    formula: Formula
    name: str = ""
    votes: str = ""


def worded(comment: str, given: str = "") -> list[Reading]:
    """What a comment may mean, the likeliest first; nothing where a word of it is not understood, or where a signature
    does not fit.

    >>> (found,) = worded("row sums of x, then relu")
    >>> found.formula.text, found.name
    ('y[r] = relu(sum[c] x[r, c])', 'sum_relu')
    >>> worded("add a and b", "const half* a, const half* b, half* out, int n")[0].formula.text
    'a: f16, b: f16, out[i] = a[i] + b[i]'
    """
    signature = parameters(given)
    found: dict[str, Reading] = {}
    name, texts = _in_code(comment, signature) or _of_rows(comment, signature) or _in_words(comment, signature)
    for made in texts:
        try:
            text = made()
            formula = formula_of(printed_in_one_line(parse(_results_typed(text, formula_of(text), signature) + text)))
        except (UnfitError, FormulaError):
            continue
        if fits(formula, signature):
            found.setdefault(formula.text, Reading(formula, name))
    return list(found.values())


_Texts = tuple[str, list[Callable[[], str]]]
"""A name, and what makes the texts of the formulas that may be meant: it may raise UnfitError."""


def _of_rows(comment: str, signature: Sequence[Parameter]) -> _Texts | None:
    asked = rows_asked(comment)
    return ("", [partial(rows_text, asked, signature)]) if asked is not None else None


def _in_words(comment: str, signature: Sequence[Parameter]) -> _Texts:
    said = said_in(comment, [each.name for each in signature])
    if said is None or not (signature or is_of_arrays(said)):
        return "", []
    name = "_".join([*(each.name for each in reversed(said.before)), *(of for what, of in said.after if what == "map")])
    return name, [partial(_text, said, *choice, signature) for choice in _choices(said, signature)]


def _in_code(comment: str, signature: Sequence[Parameter]) -> _Texts | None:
    equation = equation_in(comment, signature)
    if not equation and not is_called_in(comment):
        return None
    comment = equation or comment
    if (found := said_in_code(comment)) is None:
        return None
    said, rank = found
    whole = sum(each.is_size for each in signature)
    ranks = [max(rank, min(whole, len(DIMS))) or 1]
    return name_in_code(comment), [partial(in_code, comment, Names(said, signature), rank) for rank in ranks]


def _results_typed(text: str, formula: Formula, signature: Sequence[Parameter]) -> str:
    """Declarations of the results that have another type in a signature."""
    kinds = {each.name: each.type for each in signature if each.pointer}
    outputs = [each for each in formula.outputs if kinds.get(each.name, each.type) not in ("", each.type)]
    return "".join(f"{each.name}: {kinds[each.name]}, " for each in outputs if f"{each.name}: " not in text)


def fits(formula: Formula, signature: Sequence[Parameter]) -> bool:
    """Whether a signature hands over what the formula takes and nothing else, of the same types, and nothing that is
    written as constant."""
    pointers = {each.name: each for each in signature if each.pointer}
    if not pointers:
        return not signature
    tensors = {each.array: each for each in formula.tensors.values()}
    if tensors.keys() != pointers.keys():
        return False
    numbers = {each.name for each in signature if not each.pointer and each.type[:1] not in ("i", "u")}
    if {name for name, kind in formula.scalars.items() if kind[:1] not in ("i", "u")} != numbers:
        return False
    return all(
        pointers[name].type == each.type and not (pointers[name].constant and each.role != "in")
        for name, each in tensors.items()
    )


def _choices(said: Said, signature: Sequence[Parameter]) -> list[tuple[int, bool]]:
    """Ranks and whether weights are applied, the likeliest first."""
    inner = said.before[-1]
    shapes = [len(each.shape) for each in (*said.operands, said.result) if each is not None and each.shape]
    if len({*shapes}) > 1 and inner.kind not in ("own", "reduce") and not any(e.kind == "reduce" for e in said.before):
        return []
    own = [len(each.shape) for each in said.operands if each.shape]
    whole = [each for each in signature if each.is_size]
    if own:
        ranks = [own[0]]
    elif said.rank > 0:
        ranks = [said.rank]
    elif len(whole) > 1 and not all(_EXTENT.fullmatch(each.name) for each in whole):
        return []  # a number of blocks or a stride is none, and nothing says which they are
    elif len(whole) > 1 and not said.axis and any(each.kind == "reduce" for each in said.before):
        return []  # of each row, or of all
    elif whole:
        ranks = [min(4, len(whole))]
    elif said.axis in ("last", "first"):
        ranks = [2]
    elif any(each.kind == "rows" for each in said.before):
        ranks = [1, 2] if any(each.name.startswith(("cum", "excl")) for each in said.before) else [2, 1]
    else:
        ranks = [1]
    if not any(each.weights for each in said.before):
        return [(rank, False) for rank in ranks]
    affine = [True] if said.is_affine or said.weights else [False, True]
    return [(rank, each) for each in affine for rank in ranks]


def _text(said: Said, rank: int, is_affine: bool, signature: Sequence[Parameter]) -> str:
    names = Names(said, signature)
    inner = said.before[-1]
    prefix = said.before[:-1]
    if inner.kind == "own":
        value = _own(inner, said, names)
    elif inner.kind in ("two", "infix") or (inner.two and (len(said.operands) == 2 or said.count == 2)):
        value = _two(inner if inner.kind != "reduce" else operation(inner.two), said, rank, names)
    else:
        prefix = said.before
        value = _array(said, rank, names)
    if any(each.kind not in ("map", "rows", "reduce") for each in prefix):
        raise UnfitError
    if sum(each.kind in ("rows", "reduce") for each in prefix) > 1 or (
        inner.kind == "own" and prefix and not value.dims
    ):
        raise UnfitError
    if said.axis == "elements" and any(each.kind == "reduce" for each in prefix):
        raise UnfitError
    if said.axis in ("last", "first", "all") and not any(each.kind in ("rows", "reduce") for each in prefix):
        raise UnfitError
    if (said.eps or said.is_affine or said.weights) and not any(each.number for each in prefix):
        raise UnfitError
    for each in reversed(prefix):
        value = _applied(each, value, said, names, is_affine)
    for what, of in said.after:
        value = _after(what, of, value, names)
    if said.count == 2 and inner.kind not in ("own", "two", "infix") and not inner.two:
        raise UnfitError
    names.check()
    is_new = (value.index or "").startswith("'")
    index = value.index if value.index is not None else f"[{', '.join(value.dims)}]" if value.dims else ""
    result = names.result(inner.result.partition("[")[0].rstrip("'") or "y", value.arrays, is_new)
    declared = names.declarations(inner.declares)
    where = f" where {', '.join(value.stages)}" if value.stages else ""
    return f"{declared}{result}{index} = {value.text}{where}"


def _array(said: Said, rank: int, names: Names) -> _Value:
    if len(said.operands) > 1 or not 1 <= rank <= len(DIMS):
        raise UnfitError
    own = said.operands[0] if said.operands else Array("")
    dims = names.dims(rank, own.shape)
    name = names.operand(own.name, "x", 0)
    return _Value(f"{name}[{', '.join(dims)}]", dims, [], {name: rank})


def _two(two: Operation, said: Said, rank: int, names: Names) -> _Value:
    if len(said.operands) not in (0, 2) or not 1 <= rank <= len(DIMS):
        raise UnfitError
    one, other = said.operands or (Array(""), Array(""))
    if one.shape and other.shape and one.shape != other.shape:
        raise UnfitError
    dims = names.dims(rank, one.shape or other.shape)
    a, b = names.operand(one.name, "a", 0), names.operand(other.name, "b", 1)
    index = f"[{', '.join(dims)}]"
    return _Value(two.value.format(a=f"{a}{index}", b=f"{b}{index}"), dims, [], {a: rank, b: rank})


def _own(own: Operation, said: Said, names: Names) -> _Value:
    if len(said.operands) not in (0, len(own.inputs)) or said.axis or said.in_place:
        raise UnfitError
    read: list[str] = []
    arrays = {}
    for number, each in enumerate(own.inputs):
        default, _, rest = each.rstrip("]").partition("[")
        own_dims = rest.split(", ")
        operand = said.operands[number] if said.operands else Array("")
        if operand.shape and (len(operand.shape) != len(own_dims) or any(each.isdigit() for each in operand.shape)):
            raise UnfitError
        read.append(names.operand(operand.name, default, number))
        arrays[read[-1]] = len(own_dims)
    if said.rank > 0 and said.rank not in {*arrays.values()}:
        raise UnfitError
    _, _, index = own.result.partition("[")
    dims = tuple(index.rstrip("]").split(", ")) if index else ()
    names.taken |= set(re.findall(r"\b[a-z]\b", own.value)) - set(read)
    if any("[" in each for each in dims):
        dims = ()
    is_new = own.result.partition("[")[0].endswith("'")
    shown = f"{chr(39) if is_new else ''}[{index}" if index else ""
    return _Value(own.value.format(*read), dims, [], arrays, shown.replace("bins", read[0]))


def _applied(each: Operation, value: _Value, said: Said, names: Names, is_affine: bool) -> _Value:
    inner = value.text if re.fullmatch(r"\w+(\[[^\[\]]*\])?", value.text) else f"({value.text})"
    if each.kind == "map":
        return _Value(each.value.format(v=inner), value.dims, value.stages, value.arrays, value.index)
    if not value.dims:
        raise UnfitError
    along = _along(each, said, value)
    kept = tuple(dim for dim in value.dims if dim not in along)
    if each.kind == "reduce":
        if each.places and len(along) > 1:
            raise UnfitError
        return _Value(each.value.format(c=", ".join(along), v=inner), kept, value.stages, value.arrays)
    if len(along) != 1:
        raise UnfitError
    (c,) = along
    row = f"[{', '.join(kept)}]" if kept else ""
    stages = list(value.stages)
    known = {"c": c, "v": inner, "vj": re.sub(rf"\b{c}\b", "j", inner), "eps": names.eps(said.eps)}
    for stage in each.where:
        name, _, text = stage.partition(" = ")
        free = names.free(name)
        stages.append(f"{free}{row} = {text.format(**known)}")
        known[name] = f"{free}{row}"
    text = each.value.format(**known)
    arrays = dict(value.arrays)
    if is_affine and each.weights:
        for number, role in enumerate(each.weights[: len(said.weights) or None]):
            weight = names.weight(said.weights[number] if said.weights else "", role)
            arrays[weight] = 1
            text = f"{text} * {weight}[{c}]" if role == "scale" else f"{text} + {weight}[{c}]"
    return _Value(text, value.dims, stages, arrays)


def _along(each: Operation, said: Said, value: _Value) -> tuple[str, ...]:
    if said.axis == "first":
        if len(value.dims) != 2:
            raise UnfitError
        return value.dims[:1]
    if said.axis == "all" or (each.kind == "reduce" and not said.axis):
        return value.dims
    if said.axis == "last" and len(value.dims) < 2:
        raise UnfitError
    return value.dims[-1:]


def _after(what: str, of: str, value: _Value, names: Names) -> _Value:
    inner = value.text if re.fullmatch(r"\w+(\[[^\[\]]*\])?", value.text) else f"({value.text})"
    arrays = dict(value.arrays)
    if what == "map":
        text = operation(of).value.format(v=inner)
    elif what in ("bias", "residual"):
        if not value.dims or (value.index or "").startswith("'"):
            raise UnfitError
        name = names.weight(of, what)
        index = value.dims[-1:] if what == "bias" else value.dims
        arrays[name] = len(index)
        text = f"{inner} + {name}[{', '.join(index)}]"
    else:
        number = of if re.fullmatch(r"[\d.eE+-]+", of) else names.number(of)
        text = f"{inner} {'*' if what == 'times' else '/'} {number}"
    return _Value(text, value.dims, value.stages, arrays, value.index)
