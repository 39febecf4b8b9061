"""Worked examples for a request: of many (comment, formula) pairs the ones whose words are nearest.

Words that few comments have weigh more (TF-IDF), so that "softmax" decides and "of each row" does not; words that name
an operation weigh more again, under one name ("cumsum" as "scan"). Names of one letter and small words say nothing.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

_WORD = re.compile(r"[a-z][a-z0-9_]*|(?:\d+(?:\.\d+)?|(?<![\w.])\.\d+)(?:e[-+]?\d+)?")
_JOINED = re.compile(
    r"\b(layer|rms|batch|group|instance|arg|soft|cum|log[ _-]?soft|log[ _-]?sum|leaky|max|avg|mat)[ _-]"
    r"(norm\w*|max|min|sum|exp|relu|pool\w*|mul)\b"
)
_SMALL = frozenset(
    ("the", "an", "of", "and", "is", "to", "in", "on", "for", "with", "by", "as", "it", "its", "be", "that", "this",
     "each", "every", "all", "into", "from")
)  # fmt: skip
_OPERATION_WEIGHT = 2.0
_OPERATIONS = {
    "softmax": "softmax", "logsoftmax": "logsoftmax", "logsumexp": "logsumexp", "sum": "sum", "total": "sum",
    "summed": "sum", "add": "add", "added": "add", "plus": "add", "mean": "mean", "average": "mean", "avg": "mean",
    "averaging": "mean", "max": "max", "amax": "max", "maximum": "max", "maxima": "max", "largest": "max",
    "biggest": "max", "min": "min", "amin": "min", "minimum": "min", "minima": "min", "smallest": "min",
    "argmax": "argmax", "argmin": "argmin", "variance": "var", "var": "var", "std": "std", "deviation": "std",
    "layernorm": "layernorm", "layer_norm": "layernorm", "rmsnorm": "rmsnorm", "rms": "rmsnorm", "batchnorm":
    "batchnorm", "groupnorm": "groupnorm", "instancenorm": "instancenorm", "norm": "norm", "normalize": "normalise",
    "normalise": "normalise", "normalization": "normalise", "normalisation": "normalise", "relu": "relu", "leakyrelu":
    "leakyrelu", "gelu": "gelu", "silu": "silu", "swish": "silu", "swiglu": "swiglu", "sigmoid": "sigmoid", "logistic":
    "sigmoid", "tanh": "tanh", "exp": "exp", "exponential": "exp", "log": "log", "logarithm": "log", "sqrt": "sqrt",
    "rsqrt": "rsqrt", "square": "square", "squared": "square", "power": "pow", "pow": "pow", "sin": "sin", "cos": "cos",
    "softplus": "softplus", "clamp": "clamp", "clip": "clamp", "saturate": "clamp", "abs": "abs", "absolute": "abs",
    "transpose": "transpose", "permute": "transpose", "transposed": "transpose", "conv": "conv", "convolution": "conv",
    "convolve": "conv", "conv1d": "conv", "conv2d": "conv", "conv3d": "conv", "depthwise": "depthwise", "stencil":
    "stencil", "laplacian": "laplacian", "sobel": "sobel", "blur": "blur", "pool": "pool", "pooling": "pool", "maxpool":
    "pool", "avgpool": "pool", "maxpooling": "pool", "avgpooling": "pool", "scan": "scan", "cumsum": "scan",
    "cumulative": "scan", "prefix": "scan", "running": "scan", "histogram": "histogram", "bincount": "histogram",
    "gather": "gather", "lookup": "gather", "embedding": "embedding", "scatter": "scatter", "scatter_add": "scatter",
    "index_add": "scatter", "matmul": "matmul", "gemm": "matmul", "multiply": "mul", "times": "mul", "dot": "dot",
    "gemv": "gemv", "attention": "attention", "mask": "mask", "masked": "mask", "causal": "causal", "dropout":
    "dropout", "segment": "segment", "csr": "csr", "rope": "rope", "rotary": "rope", "outer": "outer", "difference":
    "sub", "subtract": "sub", "minus": "sub", "divide": "div", "divided": "div", "quantize": "quantise", "quantise":
    "quantise", "dequantize": "dequantise", "dequantise": "dequantise", "upsample": "upsample", "upsampling":
    "upsample", "bilinear": "bilinear", "entropy": "entropy", "loss": "loss", "mse": "mse", "huber": "huber", "adam":
    "adam", "adamw": "adam", "sgd": "sgd", "momentum": "momentum", "distance": "distance", "pairwise": "pairwise",
    "row": "row", "column": "column", "reverse": "reverse", "flip": "reverse", "shift": "shift", "roll": "shift", "pad":
    "pad", "concat": "concat", "concatenate": "concat", "any": "any", "diagonal": "diagonal", "lower": "lower", "upper":
    "upper", "tril": "lower", "triu": "upper",
}  # fmt: skip


class Examples:
    """An index over pairs of a comment and a formula."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self.pairs: Sequence[tuple[str, str]] = list(dict.fromkeys(pairs))
        counts = [terms(comment) for comment, _ in self.pairs]
        seen = Counter(term for each in counts for term in each)
        self.rarity = {term: math.log(1 + len(counts) / count) for term, count in seen.items()}
        self.places: dict[str, list[tuple[int, float]]] = {}
        for number, each in enumerate(counts):
            for term, weight in self._weighted(each).items():
                self.places.setdefault(term, []).append((number, weight))

    def _weighted(self, counted: Mapping[str, int]) -> dict[str, float]:
        weights = {
            term: (1 + math.log(count)) * self.rarity[term] * (_OPERATION_WEIGHT if term[0] == "+" else 1.0)
            for term, count in counted.items()
            if term in self.rarity
        }
        length = math.sqrt(sum(each * each for each in weights.values())) or 1.0
        return {term: each / length for term, each in weights.items()}

    @staticmethod
    def read(path: Path) -> Examples:
        """The examples of the task formula in a file of JSON lines. Raises OSError and ValueError."""
        with path.open(encoding="utf-8") as lines:
            return Examples(_pairs(lines))

    def nearest(self, comment: str, count: int = 1) -> list[tuple[str, str]]:
        """The pairs whose comments are nearest, the nearest first; none that has no word of the comment.

        >>> examples = Examples([("softmax of each row", "..."), ("sum of each row", "y[r] = sum[c] x[r, c]")])
        >>> examples.nearest("the sum of rows")
        [('sum of each row', 'y[r] = sum[c] x[r, c]')]
        """
        return [self.pairs[number] for number, _ in self.scored(comment)[:count]]

    def scored(self, comment: str) -> list[tuple[int, float]]:
        """The numbers of pairs and how near their comments are, from 0 to 1, the nearest first."""
        scores: dict[int, float] = {}
        for term, weight in sorted(self._weighted(terms(comment)).items()):
            for number, other in self.places.get(term, []):
                scores[number] = scores.get(number, 0.0) + weight * other
        return sorted(scores.items(), key=lambda each: (-each[1], each[0]))


def words(comment: str) -> list[str]:
    """The words and numbers of a comment, in small letters and without the s of a plural.

    >>> words("Layer norm of x_in's rows, eps 1.0e-05; 2x, conv2d")
    ['layernorm', 'x_in', 'row', 'eps', '1e-05', '2', 'conv2d']
    """
    found = _WORD.findall(_JOINED.sub(lambda pair: re.sub("[ _-]", "", pair[0]), comment.lower()))
    plain = (
        f"{float(each):g}" if each[0].isdigit() or each[0] == "." else _singular(each.rstrip("_")) for each in found
    )
    return [each for each in plain if each not in _SMALL and (len(each) > 1 or each.isdigit())]


def terms(comment: str) -> Counter[str]:
    """What a comment is found by: its words, and its operations once more.

    >>> sorted(terms("cumsum of the rows"))
    ['+row', '+scan', 'cumsum', 'row']
    """
    said = words(comment)
    return Counter([*said, *(f"+{_OPERATIONS[each]}" for each in said if each in _OPERATIONS)])


def operations(comment: str) -> set[str]:
    """The operations that a comment names.

    >>> sorted(operations("the average of the absolute values"))
    ['abs', 'mean']
    """
    return {_OPERATIONS[each] for each in words(comment) if each in _OPERATIONS}


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] not in "su" and word != "abs" else word


def _pairs(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        example = json.loads(line)
        if example["task"] == "formula":
            yield example["problem"], example["formula"]
