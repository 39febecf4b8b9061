"""Which answer of a model may be what a request means: one that fits the signature and has what the words name."""

from __future__ import annotations

import re

from warpwright.assist.formula_examples import operations
from warpwright.assist.formula_task import FormulaRequest
from warpwright.assist.signature import Parameter, parameters
from warpwright.assist.worded_formula import fits
from warpwright.formulas.functions import FUNCTIONS, REDUCTIONS
from warpwright.formulas.lexer import FormulaError
from warpwright.formulas.model import Formula
from warpwright.formulas.parser import parse
from warpwright.formulas.printer import printed_in_one_line
from warpwright.formulas.resolve import formula_of
from warpwright.formulas.tree import Load, Name, Num, Reduce, walk

_NUMBER = re.compile(r"(?<![\w.])(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?!\w)")
_INDEXED = re.compile(r"\b([A-Za-z_]\w*)\s*\[")
_EXTENTS = re.compile(r"\b([A-Za-z_]\w*)\s?((?:\[\s*\w+\s*\])+|\[\s*\w+(?:\s*,\s*\w+)+\s*\])")
_COPIED = re.compile(
    r"=|->|\u2190|\b(?:cop(?:y|ies|ied)|cast|conver|assign|store|load|move|fill|set|zero|ones|init|clear|broadcast|repeat|expand|replicat|identity|"
    r"unchanged|dup|widen|narrow|clone|gather|look|take|pick|select|keep|every|split|pack|unpack|slice|crop|part|reshape|"
    r"concat|stack|interleav|to\b)",
    re.IGNORECASE,
)
"""What says that something is only written elsewhere."""
_NAMES_OF_SEVERAL_WORDS = re.compile(
    r"\b(?:exponential(?:ly weighted)? |weighted |simple )?(?:moving|running) averages?\b"
    r"|\bexponential (?:decay|backoff)\b|\bmax(?:imum)?[ _]norm\b|\b(?:no|without) (?:bias|mask|norm\w*)\b",
    re.IGNORECASE,
)
"""Names with words in them that elsewhere are functions: an exponential moving average has neither exp nor a mean."""
_SAID_BY = {
    "sum": ("sum", "mean", "logsumexp"),
    "mean": ("mean", "sum"),
    "exp": ("exp", "expm1", "logsumexp"),
    "log": ("log", "log2", "log10", "log1p", "logsumexp"),
    "clamp": ("clamp", "relu", "max", "min"),
    "max": ("max", "fmax", "relu", "clamp"),
    "min": ("min", "fmin", "clamp"),
    "sqrt": ("sqrt", "rsqrt", "std"),
    "gelu": ("gelu", "gelu_tanh", "erf", "tanh", "sigmoid"),
    "silu": ("silu", "sigmoid"),
    "sigmoid": ("sigmoid", "silu"),
}  # fmt: skip
"""Functions that compute what a word names, for words that several may say; else the function of that name does."""
_IN_WORDS = {
    "half": 0.5, "halved": 0.5, "quarter": 0.25, "three": 3, "third": 3, "cube": 3, "cubed": 3, "four": 4, "fourth": 4,
    "five": 5, "six": 6, "eight": 8, "nine": 9, "ten": 10, "sixteen": 16, "hundred": 100, "relu6": 6,
}  # fmt: skip
_USUAL = (0.0, 0.5, 1.0, 2.0)
_LARGEST_EPSILON = 1e-4
_PART = re.compile(
    r"<|>|\b(run|cum|pref|scan|caus|prev|earl|befor|aft|until|till|up to|so far|past|futur|first|last|low|up|belo|abov|"
    r"tri|windo|neighb|segm|offs|csr|ptr|exclu|inclu|since|from|rang|begin|start|end|rest|follow|left|right)",
    re.IGNORECASE,
)
"""What says that a part of a dimension is reduced."""


def meant(formula: Formula, request: FormulaRequest) -> Formula | None:
    """The formula with the types of the signature where it names none; None where it cannot be what is asked for.

    >>> request = FormulaRequest("double x", "const half* x, half* y, int n")
    >>> meant(formula_of("y[i] = 2 * x[i]"), request).text
    'x: f16, y: f16, y[i] = 2 * x[i]'
    >>> meant(formula_of("y[i] = 2 * z[i]"), request) is None
    True
    """
    signature = parameters(request.given)
    try:
        found = _typed(formula, signature) if signature else formula
    except FormulaError:
        return None
    if {each.array for each in found.inputs} & sizes_said(request.comment) - {each.name for each in signature}:
        return None
    if _is_copy(found) and not _COPIED.search(request.comment):
        return None
    is_named = _fits_whole(found, signature) if signature else _names_are_said(found, request.comment)
    return found if is_named and is_said(found, f"{request.comment} {request.given}") else None


def sizes_said(comment: str) -> set[str]:
    """Names that stand in the brackets of one array beside others, alone in those of another one, and nowhere have some
    of their own: they are sizes.

    >>> sizes_said("add bias[cols] to every row of x[rows][cols]")
    {'cols'}
    >>> sizes_said("out[p[i]] = x[p[i]]"), sizes_said("y = table[ids]")
    (set(), set())
    """
    shapes = {(array, tuple(re.findall(r"\w+", brackets))) for array, brackets in _EXTENTS.findall(comment)}
    alone = {(array, shape[0]) for array, shape in shapes if len(shape) == 1}
    beside = {(array, each) for array, shape in shapes if len(shape) > 1 for each in shape}
    found = {name for array, name in alone if any(each == name and other != array for other, each in beside)}
    return found - {*_INDEXED.findall(comment)}


def _is_copy(formula: Formula) -> bool:
    """Whether nothing is computed, and no element has another place or type than it had."""
    types = {each.type for each in formula.tensors.values()}
    return len(types) == 1 and all(
        isinstance(each.value, Num)
        or (isinstance(each.value, Load) and each.value.index == tuple(map(Name, each.dims)) == each.own_index)
        for each in formula.stages
    )


def _fits_whole(formula: Formula, signature: tuple[Parameter, ...]) -> bool:
    """Whether the signature fits, and each size that it hands over is one of the formula."""
    whole = [each for each in signature if each.is_size]
    sizes = [each for each in whole if each.name not in formula.scalars]
    return fits(formula, signature) and len(sizes) <= len(formula.sizes)


def _typed(formula: Formula, signature: tuple[Parameter, ...]) -> Formula:
    """The formula with a declaration for what has another type there and is not declared. Raises FormulaError."""
    declared = {each.name for each in parse(formula.text).declarations}
    types = {each.array: each.type for each in formula.tensors.values()} | dict(formula.scalars)
    others = (each for each in signature if each.type and types.get(each.name, each.type) != each.type)
    said = "".join(f"{each.name}: {each.type}, " for each in others if each.name not in declared)
    return formula_of(printed_in_one_line(parse(said + formula.text))) if said else formula


def _names_are_said(formula: Formula, comment: str) -> bool:
    """Whether inputs have the comment's names, or any where it names none of them; what it indexes is there."""
    said = {*re.findall(r"[A-Za-z_]\w*", comment)}
    inputs = {each.array for each in formula.inputs}
    names = {*inputs, *(each.name for each in formula.stages)}
    return (inputs <= said or not inputs & said) and {*_INDEXED.findall(comment)} <= names


def is_said(formula: Formula, words: str) -> bool:
    """Whether a formula has the numbers and the functions that words name, and no other numbers or ranges.

    >>> mean = formula_of("y[r] = mean[c] x[r, c]")
    >>> is_said(mean, "mean of each row of x"), is_said(mean, "mean of each row of x, times 3")
    (True, False)
    >>> is_said(formula_of("y[r] = 3 * mean[c] x[r, c]"), "mean of each row of x")
    False
    """
    numbers = {abs(float(each)) for each in _NUMBER.findall(formula.text)}
    said = {float(each) for each in _NUMBER.findall(words)}
    if not said <= numbers:
        return False
    known = said | {_IN_WORDS[each] for each in re.findall(r"[a-z]+6?", words.lower()) if each in _IN_WORDS}
    if any(each not in known and each not in _USUAL and each > _LARGEST_EPSILON for each in numbers):
        return False
    if _reduces_a_part(formula) and not _PART.search(words):
        return False
    names = {*re.findall(r"[A-Za-z_]\w*", formula.text)}
    named = operations(_NAMES_OF_SEVERAL_WORDS.sub(" ", words)) & {*FUNCTIONS, *REDUCTIONS}
    return all(names & {*_SAID_BY.get(each, (each,))} for each in named)


def _reduces_a_part(formula: Formula) -> bool:
    """Whether a reduction ends where another dimension or an array says."""
    reductions = (node for stage in formula.stages for node in walk(stage.value) if isinstance(node, Reduce))
    ends = (end for each in reductions for over in each.ranges for end in (over.lower, over.upper))
    return any(end is not None and not isinstance(end, Num) for end in ends)
