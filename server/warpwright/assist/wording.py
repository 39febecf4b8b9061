"""What the words of a comment ask for, where every one of them is understood: operations, arrays, axis, type, clauses.

No word may be left: one that is not understood may change what is meant, so that nothing is read at all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from warpwright.assist.wording_table import Operation, Phrase, operations, phrases

_TOKEN = re.compile(
    r"(?P<name>[A-Za-z_]\w*)(?P<shape>\s?(?:\[\s*\w+(?:\s*,\s*\w+)*\s*\])+|\s?\(\s*\w+(?:\s*[x×]\s*\w+)+\s*\))?"
    r"|(?P<number>\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)(?!\w)|(?P<sign>->|=>|\S)"
)
_RESULT = re.compile(r"^\s*([A-Za-z_]\w*)(\s?(?:\[[^\[\]]*\])+)?\s*=(?!=)\s*(?=\S)")
_LEAD = re.compile(r"^\s*(?:todo|fixme|note|kernel|cuda kernel|gpu kernel|task)\s*:\s*", re.IGNORECASE)
_JOINED = re.compile(r"(?<=[A-Za-z])-(?=[A-Za-z])|\b(?:torch|F|np|nn\.functional)\.(?=[a-z])")
"""What is no part of a word: hyphens, and the modules of functions."""
_USUAL = frozenset(
    ("out", "dst", "dest", "res", "src", "logits", "scores", "probs", "gamma", "beta", "weight", "weights", "bias",
     "residual", "target", "targets", "pred", "preds", "labels", "bins", "ids", "indices", "table", "hidden")
)  # fmt: skip
"""Words that are names of arrays where they are nothing else."""
_NUMBERED = re.compile(r"(?:[A-Za-z]{1,2}|out|vec|mat|src)\d")
_ARRAYS = _USUAL | {*"xyzuvwpqabABCXYZ"}
"""Names that stand for arrays beside a sign, where a number may stand as well."""
_LONGEST = 7
MOST_WORDS = 40
_AXIS_OF = {"row": "last", "column": "first"}


@dataclass(frozen=True, slots=True)
class Array:
    """An array that words name, with what stands in its brackets."""

    name: str
    shape: tuple[str, ...] = ()


@dataclass(slots=True)
class Said:
    """What words say. `before` are applied to the operands from the last to the first, `after` to the result in order:
    an operation, "bias", "residual", "times" or "over" with what it is of."""

    before: list[Operation] = field(default_factory=list)
    operands: list[Array] = field(default_factory=list)
    after: list[tuple[str, str]] = field(default_factory=list)
    weights: list[str] = field(default_factory=list)
    is_affine: bool = False
    axis: str = ""
    type: str = ""
    rank: int = 0
    count: int = 0
    eps: str = ""
    result: Array | None = None
    in_place: bool = False


@dataclass(frozen=True, slots=True)
class _Item:
    what: str
    text: str = ""
    shape: tuple[str, ...] = ()
    operation: Operation | None = None


def said_in(comment: str, names: Sequence[str] = ()) -> Said | None:
    """What a comment says; None where a word of it is not understood. `names` are those of a signature.

    >>> said = said_in("row-wise softmax of x[rows][cols]")
    >>> [each.name for each in said.before], said.operands, said.axis
    (['softmax'], [Array(name='x', shape=('rows', 'cols'))], 'last')
    >>> said_in("softmax of the neighbours of x") is None
    True
    """
    said = Said()
    comment = _LEAD.sub("", comment.strip())
    if found := _RESULT.match(comment):
        said.result = Array(found[1], _shape(found[2] or ""))
        comment = comment[found.end() :]
    items = _items(_JOINED.sub(" ", comment).rstrip(". "), {*names, *([said.result.name] if said.result else [])})
    return said if items is not None and _read(items, said) else None


def _items(comment: str, names: set[str]) -> list[_Item] | None:
    tokens = [each for each in _TOKEN.finditer(comment) if each["shape"] or each[0].lower() not in ("the", "an")]
    if len(tokens) > MOST_WORDS:
        return None
    words = [_word(each) for each in tokens]
    known = phrases()
    found: list[_Item] = []
    at = 0
    while at < len(tokens):
        end = next((end for end in range(min(len(tokens), at + _LONGEST), at, -1) if tuple(words[at:end]) in known), at)
        phrase = known.get(tuple(words[at:end]))
        token = tokens[at]
        is_array = token["name"] is not None and (bool(token["shape"]) or _is_name(token["name"], words, at, names))
        if is_array and (
            phrase is None or (end == at + 1 and _gives_way(phrase, token["name"], bool(token["shape"]), names))
        ):
            found.append(_Item("name", token["name"], _shape(token["shape"] or "")))
            at += 1
        elif phrase is not None and not any(each["shape"] for each in tokens[at : end - 1]):
            found.append(_Item(phrase.what, phrase.value, operation=phrase.operation))
            if (shape := _shape(tokens[end - 1]["shape"] or "")) and phrase.what == "noun":
                found.append(_Item("shape", shape=shape))
            elif shape:
                return None
            at = end
        elif token["number"]:
            found.append(_Item("number", token["number"]))
            at += 1
        elif words[at] == "a":
            at += 1
        else:
            return None
    return found


def _gives_way(phrase: Phrase, name: str, has_shape: bool, names: set[str]) -> bool:
    """Whether a word that is a phrase, too, is rather a name."""
    return has_shape or (name in names and phrase.what in ("noun", "empty", "row", "column", "into"))


_NO_NOUN = frozenset({
    "", "+", "-", "*", "/", ",", ";", "->", "=", "^", "and", "or", "over", "along", "across", "per", "by", "of", "in",
    "into", "from", "to", "with", "at", "plus", "minus", "times", "divided", "then", "where", "is", "are",
})  # fmt: skip
"""What no article stands before, "" the end: an "a" there is an array."""


def _is_name(name: str, words: Sequence[str], at: int, names: set[str]) -> bool:
    if name == "a" and "a" not in names:
        following = words[at + 1] if at + 1 < len(words) else ""
        return following in _NO_NOUN
    return name in names or len(name) == 1 or name in _USUAL or "_" in name or bool(_NUMBERED.fullmatch(name))


def _word(token: re.Match[str]) -> str:
    word = str(token["name"] or token["number"] or token["sign"]).lower()
    return (
        word[:-1]
        if len(word) > 3 and word[-1] == "s" and word[-2] not in "su" and word not in ("abs", "bias")
        else word
    )


def _shape(text: str) -> tuple[str, ...]:
    """
    >>> _shape("[rows][cols]"), _shape("(R x 4)"), _shape("[B, T]")
    (('rows', 'cols'), ('R', '4'), ('B', 'T'))
    """
    return tuple(re.findall(r"[^\s\[\],()x×]\w*|x\w+", text)) if text else ()


def _read(items: list[_Item], said: Said) -> bool:
    """Puts items into `said`; whether each has its place."""
    at = 0
    last = ""  # what stood before, without what means nothing
    is_argued = False  # what the operations are applied to has been named

    def peek(step: int = 1) -> _Item:
        return items[at + step] if at + step < len(items) else _Item("end")

    while at < len(items):
        item = items[at]
        match item.what:
            case "operation":
                assert item.operation is not None
                if item.operation.kind == "infix":
                    if last != "name" or peek().what not in ("name", "noun") or said.before or len(said.operands) != 1:
                        return False
                    said.before.append(item.operation)
                elif said.operands or is_argued or last in ("then", "with"):
                    if item.operation.kind != "map" or last not in ("then", "with") or not said.before:
                        return False
                    said.after.append(("map", item.operation.name))
                elif said.before and last != "of":
                    return False  # `relu squared of x` is no relu of squares
                else:
                    said.before.append(item.operation)
            case "name":
                if said.operands and last not in ("and", "operation", "of"):
                    return False
                if said.operands and said.after:
                    return False
                said.operands.append(Array(item.text, item.shape))
            case "shape":
                if said.operands:
                    return False
                said.operands.append(Array("", item.shape))
            case "axis":
                if said.axis:
                    return False
                said.axis = item.text
            case "row" | "column":
                following = peek()
                if said.axis or following.operation is None or following.operation.kind != "reduce":
                    return False
                said.axis = _AXIS_OF[item.what]
            case "type":
                if said.type not in ("", item.text):
                    return False
                said.type = item.text
            case "noun":
                is_argued = bool(said.before)
                rank, _, count = item.text.partition(" ")
                if said.rank and int(rank) not in (0, said.rank):
                    said.rank = -1  # of arrays of several ranks, which an operation of its own may have
                elif int(rank):
                    said.rank = int(rank)
                said.count = 2 if count else said.count
            case "into":
                if said.result is not None or peek().what != "name":
                    return False
                at += 1
                said.result = Array(items[at].text, items[at].shape)
            case "bias" | "residual":
                name = ""
                if peek().what == "name":
                    at += 1
                    name = items[at].text
                said.after.append((item.what, name))
            case "times" | "over":
                if peek().what not in ("number", "name") or (not said.operands and not said.before):
                    return False
                at += 1
                said.after.append((item.what, items[at].text))
            case "eps":
                if peek().what in ("number", "name"):
                    at += 1
                    said.eps = items[at].text
            case "affine":
                said.is_affine = True
            case "in place":
                said.in_place = True
            case "and" if peek().what == "operation":
                if not said.after:
                    return False
                last = "then"
                at += 1
                continue
            case "and":
                if peek().what in ("and", "number", "end"):
                    return False
            case "then":
                if not (said.operands or said.before):
                    return False
            case "with":
                if peek().what == "name" and not _weights(items, at, said):
                    return False
                while peek().what in ("name", "and") and said.weights:
                    at += 1
            case "epilogue":
                if not said.after:
                    return False
            case "of":
                of = next((each for each in items[at + 1 :] if each.what not in ("empty", "type")), _Item("end"))
                if of.what in ("end", "then", "and", "with", "into"):
                    return False  # `gelu of activations`: of what is said by a word that means nothing else here
            case "number":
                return False
        if item.what not in ("empty", "noun", "type", "axis"):
            last = item.what
        at += 1
    return bool(said.before)


def is_of_arrays(said: Said) -> bool:
    """Whether what stands beside a sign must be arrays: by its names or its brackets."""
    infix = any(each.kind == "infix" for each in said.before)
    return not infix or all(each.shape or each.name in _ARRAYS for each in said.operands)


def _weights(items: list[_Item], at: int, said: Said) -> bool:
    """Reads the names behind a "with" as those of weights, where the operation has some."""
    takes = [each for each in said.before if each.weights]
    if not takes or said.weights:
        return False
    for item in items[at + 1 :]:
        if item.what == "name":
            said.weights.append(item.text)
        elif item.what != "and":
            break
    return len(said.weights) <= len(takes[0].weights)


def operation(name: str) -> Operation:
    return operations()[name]
