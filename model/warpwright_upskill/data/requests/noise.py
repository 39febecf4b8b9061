"""Words as they are typed: lower case, left-out words, slips of the fingers, other words for the same."""

from __future__ import annotations

import re
from collections.abc import Collection
from random import Random

SYNONYMS = {
    "compute": ("calculate", "get", "find", "evaluate"),
    "elementwise": ("element-wise", "pointwise", "per element", "element wise"),
    "matrix": ("mat", "2d array", "matrix"),
    "multiply": ("mul", "scale", "multiply"),
    "divide": ("div", "divide"),
    "maximum": ("max", "maximum"),
    "minimum": ("min", "minimum"),
    "average": ("mean", "avg"),
    "mean": ("average", "mean"),
    "normalise": ("normalize", "normalise"),
    "normalize": ("normalise",),
    "largest": ("biggest", "max"),
    "smallest": ("lowest", "min"),
    "kernel": ("kernel", "cuda kernel", "function"),
    "vector": ("array", "vec", "vector"),
    "elements": ("entries", "values", "elements"),
    "element": ("entry", "value", "element"),
    "then": ("and then", "afterwards", "then", "followed by"),
    "squared": ("^2", "squared"),
    "variance": ("var", "variance"),
    "gradient": ("grad", "gradient"),
    "dimension": ("dim", "axis", "dimension"),
    "embedding": ("emb", "embedding"),
    "bias": ("bias",),
    "quantise": ("quantize",),
    "each": ("every", "each"),
    "every": ("each", "every"),
    "with": ("w/", "with", "using"),
    "over": ("along", "across", "over"),
    "along": ("over", "along", "across"),
    "sum": ("sum", "total", "sum"),
    "rows": ("rows",),
    "without": ("w/o", "no", "without"),
}
FOREIGN = {
    "the": ("a", "the", "this", ""),
    "a": ("the", "one", "a"),
    "each": ("every", "each of", "each single"),
    "add": ("please add", "add also"),
    "with": ("together with", "with"),
    "is": ("is", "are", "should be", "it is"),
    "are": ("is", "are"),
    "then": ("after", "afterwards", "and after"),
    "also": ("too", "as well also"),
    "only": ("just only", "only"),
    "must": ("has to", "must to"),
    "kernel": ("cuda kernel", "cernel", "kernell"),
    "compute": ("calculate", "make", "do", "compute out"),
    "multiply": ("multiplicate", "do multiplication of"),
    "over": ("on", "across", "over the"),
    "result": ("the result", "outcome"),
    "without": ("with no", "without any"),
    "where": ("there where", "where"),
    "output": ("the output", "out"),
}
"""Small words as people take them whose mother tongue is another: what is named and computed stays the same."""
DROPPED = ("the", "a", "an", "of", "is", "to", "for")
_WORD = re.compile(r"[A-Za-z]+")


def roughened(text: str, protected: Collection[str], chance: Random) -> tuple[str, tuple[str, ...]]:
    """The words after some of what people do to them, and what was done. Names, numbers and code stay."""
    how = []
    if chance.random() < 0.4:
        text = _replaced(text, protected, chance, 0.3, _synonym)
        how.append("synonyms")
    if chance.random() < 0.18:
        text = _replaced(text, protected, chance, 0.5, lambda word, _: "" if word.lower() in DROPPED else word)
        how.append("dropped")
    if chance.random() < 0.1:
        text = _replaced(text, protected, chance, 0.35, _foreign)
        how.append("foreign")
    if chance.random() < 0.12:
        text = _replaced(text, protected, chance, 0.12, _slipped)
        how.append("typing")
    style = chance.random()
    if style < 0.25 and not any(each != each.lower() for each in protected if each in text):
        text, how = _lowered(text, protected), [*how, "lower"]
    elif style < 0.5:
        text = text[:1].upper() + text[1:] if not _starts_with_name(text, protected) else text
    if chance.random() < 0.2:
        text += "."
    text = re.sub(r"\s+", " ", text)
    return re.sub(r"\s+([,;)]|\.(?!\d))", r"\1", text).strip(), tuple(how)


GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "eps": "ε", "epsilon": "ε", "sigma": "σ", "mu": "μ", "tau": "τ",
    "theta": "θ", "rho": "ρ", "phi": "φ", "lambda_": "λ", "omega": "ω", "eta": "η", "kappa": "κ", "psi": "ψ",
}  # fmt: skip


def greek(text: str, names: Collection[str]) -> str:
    """The text with Greek letters for those of the names that are called so.

    >>> greek("alpha * x, alpha_0", {"alpha", "x"})
    'α * x, alpha_0'
    """
    for each in names:
        if each in GREEK:
            text = re.sub(rf"\b{each}\b", GREEK[each], text)
    return text


def _starts_with_name(text: str, protected: Collection[str]) -> bool:
    first = _WORD.match(text)
    return first is None or first[0] in protected or not text.split(" ", 1)[0].isalpha()


def _lowered(text: str, protected: Collection[str]) -> str:
    """In lower case, apart from names, single letters and what is not ASCII: a sum sign is no sigma."""

    def one(found: re.Match[str]) -> str:
        word = found[0]
        return word if word in protected or len(word) == 1 or not word.isascii() else word.lower()

    return re.sub(r"\w+", one, text)


def _replaced(text: str, protected: Collection[str], chance: Random, share: float, change) -> str:  # type: ignore[no-untyped-def]
    """Plain words, which touch no punctuation of code, changed with a chance of `share`."""

    def one(found: re.Match[str]) -> str:
        word = found[0]
        if word in protected or len(word) < 2 or chance.random() >= share:
            return word
        return str(change(word, chance))

    return re.sub(r"(?<![\w.\[({'=*/+-])[A-Za-z]+(?![\w.\[(){'=*/+-]|\])", one, text)


def _synonym(word: str, chance: Random) -> str:
    others = SYNONYMS.get(word.lower())
    return chance.choice(others) if others else word


def _foreign(word: str, chance: Random) -> str:
    others = FOREIGN.get(word)
    return chance.choice(others) if others else word


def _slipped(word: str, chance: Random) -> str:
    """
    >>> _slipped("matrix", Random(1)) != "matrix"
    True
    """
    if len(word) < 5 or word.isupper():
        return word
    at = chance.randrange(1, len(word) - 2)
    slip = chance.randrange(3)
    if slip == 0:
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    if slip == 1:
        return word[:at] + word[at + 1 :]
    return word[:at] + word[at] + word[at:]
