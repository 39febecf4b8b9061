"""The baseline without a model: of a corpus the formula whose problem is worded most alike, in the prompt's names.

Words weigh by how rare they are (TF-IDF); words that name an operation count more, under one name ("cumsum" as "scan").
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from warpwright.formulas.lexer import FormulaError, tokens_of
from warpwright.formulas.model import Formula
from warpwright.formulas.parser import parse
from warpwright.formulas.printer import printed_in_one_line
from warpwright.formulas.resolve import formula_of
from warpwright.formulas.tree import Declaration
from warpwright.formulas.variants import in_type

from warpwright_upskill.evaluation.signature import Parameter, parameters, plain_name

_OPERATION_WEIGHT = 3.0
_OPERATIONS = {
    "softmax": "softmax", "logsoftmax": "logsoftmax", "logsumexp": "logsumexp", "sum": "sum", "total": "sum", "add":
    "add", "plus": "add", "mean": "mean", "average": "mean", "avg": "mean", "max": "max", "maximum": "max", "largest":
    "max", "biggest": "max", "min": "min", "minimum": "min", "smallest": "min", "argmax": "argmax", "argmin": "argmin",
    "variance": "var", "var": "var", "std": "std", "deviation": "std", "layernorm": "layernorm", "layer_norm":
    "layernorm", "rmsnorm": "rmsnorm", "rms": "rmsnorm", "batchnorm": "batchnorm", "groupnorm": "groupnorm", "norm":
    "norm", "normalize": "normalise", "normalise": "normalise", "normalization": "normalise", "l2": "l2", "l1": "l1",
    "relu": "relu", "gelu": "gelu", "silu": "silu", "swish": "silu", "sigmoid": "sigmoid", "tanh": "tanh", "exp": "exp",
    "log": "log", "sqrt": "sqrt", "softplus": "softplus", "clamp": "clamp", "clip": "clamp", "abs": "abs", "absolute":
    "abs", "transpose": "transpose", "permute": "transpose", "transposed": "transpose", "conv": "conv", "convolution":
    "conv", "conv2d": "conv", "conv1d": "conv", "stencil": "stencil", "laplacian": "stencil", "blur": "stencil", "pool":
    "pool", "pooling": "pool", "maxpool": "pool", "avgpool": "pool", "scan": "scan", "cumsum": "scan", "cumulative":
    "scan", "prefix": "scan", "running": "scan", "histogram": "histogram", "bincount": "histogram", "counts":
    "histogram", "gather": "gather", "lookup": "gather", "embedding": "gather", "index": "gather", "scatter": "scatter",
    "matmul": "matmul", "gemm": "matmul", "product": "matmul", "multiply": "mul", "times": "mul", "dot": "dot", "gemv":
    "gemv", "attention": "attention", "mask": "mask", "masked": "mask", "causal": "causal", "dropout": "dropout",
    "segment": "segment", "csr": "segment", "offsets": "segment", "rope": "rope", "rotary": "rope", "outer": "outer",
    "difference": "sub", "subtract": "sub", "minus": "sub", "divide": "div", "quantize": "quantise", "int8": "quantise",
    "dequantize": "dequantise", "upsample": "resize", "resize": "resize", "bilinear": "resize", "nearest": "resize",
    "cross": "cross", "entropy": "entropy", "loss": "loss", "mse": "loss", "huber": "loss", "adam": "adam", "adamw":
    "adam", "sgd": "sgd", "momentum": "momentum", "distance": "distance", "distances": "distance", "pairwise":
    "pairwise", "row": "row", "rows": "row", "column": "column", "columns": "column", "reverse": "reverse", "flip":
    "reverse", "shift": "shift", "roll": "shift", "pad": "pad", "concat": "concat", "any": "any", "all": "all",
}  # fmt: skip
_TYPES = (("f16", r"half|fp16|f16|float16"), ("bf16", r"bf16|bfloat16"), ("f64", r"doubles?|fp64|f64|float64|real\*8"))


def terms_of(words: str) -> Counter[str]:
    """What a problem is found by: its words, and its operations once more.

    >>> sorted(terms_of("cumsum of each row"))
    ['+row', '+scan', 'cumsum', 'each', 'of', 'row']
    """
    found: Counter[str] = Counter()
    for word in re.findall(r"[a-z][a-z0-9_]*|\d[\d.e-]*", words.lower()):
        found[word] += 1
        if word in _OPERATIONS:
            found[f"+{_OPERATIONS[word]}"] += 1
    return found


class Nearest:
    """Problems with their formulas, found by their words."""

    def __init__(self, problems: Iterable[tuple[str, str]]) -> None:
        self._formulas: list[str] = []
        self._places: dict[str, list[tuple[int, float]]] = defaultdict(list)
        counted = []
        for words, formula in problems:
            self._formulas.append(formula)
            counted.append(terms_of(words))
        seen = Counter(term for each in counted for term in each)
        self._rarity = {term: math.log(1 + len(counted) / count) for term, count in seen.items()}
        for number, each in enumerate(counted):
            for term, weight in self._weighted(each).items():
                self._places[term].append((number, weight))

    def __len__(self) -> int:
        return len(self._formulas)

    def _weighted(self, terms: Mapping[str, int]) -> dict[str, float]:
        weights = {
            term: (1 + math.log(count)) * self._rarity[term] * (_OPERATION_WEIGHT if term[0] == "+" else 1.0)
            for term, count in terms.items()
            if term in self._rarity
        }
        length = math.sqrt(sum(each * each for each in weights.values())) or 1.0
        return {term: each / length for term, each in weights.items()}

    def formulas(self, comment: str, given: str) -> Iterator[str]:
        """Formulas in the names and types of a signature, no two the same, those of the nearest problems first.

        >>> index = Nearest([("sum of each row", "s[r] = sum[c] x[r, c]"), ("double it", "y[i] = 2 * x[i]")])
        >>> next(index.formulas("add up each row", "const float* in, float* total, int n, int m"))
        'total[r] = sum[c] in[r, c]'
        """
        scores: dict[int, float] = {}
        for term, weight in self._weighted(terms_of(comment)).items():
            for number, other in self._places[term]:
                scores[number] = scores.get(number, 0.0) + weight * other
        seen: set[str] = set()
        for number in sorted(scores, key=lambda each: -scores[each]):
            text = adapted(self._formulas[number], comment, given)
            if text not in seen:
                seen.add(text)
                yield text


def adapted(text: str, comment: str, given: str) -> str:
    """A formula in the names and types of a signature; without one, in the type that the comment names, else f32. As it
    is where that makes no formula."""
    try:
        signature = parameters(given)
        if any(each.pointer for each in signature):
            made = _typed(_renamed(text, _names(formula_of(text), signature)), signature)
        else:
            kinds = [kind for kind, words in _TYPES if re.search(rf"\b({words})\b", comment, re.IGNORECASE)]
            made = _in_floats(text, kinds[0] if kinds else "f32")
        formula_of(made)
        return printed_in_one_line(parse(made))
    except FormulaError:
        return text


def _names(formula: Formula, signature: tuple[Parameter, ...]) -> dict[str, str]:
    """For each array and number of the formula the name of a parameter: the same, else the next of its kind."""
    outputs = list(dict.fromkeys(each.name.partition(".")[0] for each in formula.outputs))
    inputs = list(dict.fromkeys(each.array for each in formula.inputs if each.array not in outputs))
    pointers = [each.name for each in signature if each.pointer]
    writable = [each.name for each in signature if each.pointer and not each.constant]
    # Where all may be written, the last ones are the results.
    targets = writable if len(writable) < len(pointers) else writable[-len(outputs) :]
    sources = [each for each in pointers if each not in targets] or targets
    numbers = [each.name for each in signature if not each.pointer and each.type.startswith(("f", "b"))]
    named: dict[str, str] = {}
    for wanted, offered in ((inputs, sources), (outputs, targets), (list(formula.scalars), numbers)):
        same = {plain_name(each): each for each in offered}
        named |= {each: same[plain_name(each)] for each in wanted if plain_name(each) in same}
        left = [each for each in offered if each not in named.values() or offered is targets is sources]
        rest = [each for each in wanted if each not in named]
        named |= dict(zip(rest, left, strict=False))
    primes = {named.get(each) for each in inputs}
    return {old: f"{new}'" if old in outputs and new in primes else new for old, new in named.items()}


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
