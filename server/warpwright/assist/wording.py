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
        said.result = Array(found[1], shape_in(found[2] or ""))
        comment = comment[found.end() :]
    items = _items(_JOINED.sub(" ", comment).rstrip(". "), {*names, *([said.result.name] if said.result else [])})
    return said if items is not None and _Reader(items, said).read() else None


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
            found.append(_Item("name", token["name"], shape_in(token["shape"] or "")))
            at += 1
        elif phrase is not None and not any(each["shape"] for each in tokens[at : end - 1]):
            found.append(_Item(phrase.what, phrase.value, operation=phrase.operation))
            if (shape := shape_in(tokens[end - 1]["shape"] or "")) and phrase.what == "noun":
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


def shape_in(text: str) -> tuple[str, ...]:
    """
    >>> shape_in("[rows][cols]"), shape_in("(R x 4)"), shape_in("[B, T]")
    (('rows', 'cols'), ('R', '4'), ('B', 'T'))
    """
    return tuple(re.findall(r"[^\s\[\],()x×]\w*|x\w+", text)) if text else ()


@dataclass(slots=True)
class _Reader:
    """Puts items into `said`, one after the other. What takes an item says whether it has its place there."""

    items: list[_Item]
    said: Said
    at: int = 0
    last: str = ""  # what stood before, without what means nothing
    is_argued: bool = False  # what the operations are applied to has been named

    def read(self) -> bool:
        """Whether each item has its place."""
        while self.at < len(self.items):
            item = self.items[self.at]
            if not self._take(item):
                return False
            if item.what == "and" and self._following().what == "operation":
                self.last = "then"
            elif item.what not in ("empty", "noun", "type", "axis"):
                self.last = item.what
            self.at += 1
        return bool(self.said.before)

    def _following(self) -> _Item:
        return self.items[self.at + 1] if self.at + 1 < len(self.items) else _Item("end")

    def _take(self, item: _Item) -> bool:
        said = self.said
        match item.what:
            case "operation":
                assert item.operation is not None
                return self._take_operation(item.operation)
            case "name" | "shape":
                return self._take_operand(item)
            case "noun":
                self._take_noun(item.text)
            case "axis" | "row" | "column":
                return self._take_axis(item)
            case "bias" | "residual" | "times" | "over" | "eps" | "into":
                return self._take_with_next(item.what)
            case "and" | "then" | "with" | "epilogue" | "of":
                return self._take_joint(item.what)
            case "type":
                if said.type not in ("", item.text):
                    return False
                said.type = item.text
            case "affine":
                said.is_affine = True
            case "in place":
                said.in_place = True
            case "number":
                return False
        return True

    def _take_operation(self, operation: Operation) -> bool:
        said, last = self.said, self.last
        if operation.kind == "infix":
            is_between = last == "name" and self._following().what in ("name", "noun")
            if not is_between or said.before or len(said.operands) != 1:
                return False
            said.before.append(operation)
        elif said.operands or self.is_argued or last in ("then", "with"):
            if operation.kind != "map" or last not in ("then", "with") or not said.before:
                return False
            said.after.append(("map", operation.name))
        elif said.before and last != "of":
            return False  # `relu squared of x` is no relu of squares
        else:
            said.before.append(operation)
        return True

    def _take_operand(self, item: _Item) -> bool:
        said = self.said
        is_further = item.what == "name" and self.last in ("and", "operation", "of") and not said.after
        if said.operands and not is_further:
            return False
        said.operands.append(Array(item.text, item.shape))
        return True

    def _take_noun(self, text: str) -> None:
        said = self.said
        self.is_argued = bool(said.before)
        rank, _, count = text.partition(" ")
        if said.rank and int(rank) not in (0, said.rank):
            said.rank = -1  # of arrays of several ranks, which an operation of its own may have
        elif int(rank):
            said.rank = int(rank)
        said.count = 2 if count else said.count

    def _take_axis(self, item: _Item) -> bool:
        if self.said.axis:
            return False
        if item.what != "axis":
            following = self._following().operation
            if following is None or following.kind != "reduce":
                return False
        self.said.axis = item.text if item.what == "axis" else _AXIS_OF[item.what]
        return True

    def _take_with_next(self, what: str) -> bool:
        """What is of the name or the number behind it."""
        said, following = self.said, self._following()
        is_named = following.what == "name" or (following.what == "number" and what in ("times", "over", "eps"))
        if what == "into":
            if said.result is not None or not is_named:
                return False
            said.result = Array(following.text, following.shape)
        elif what in ("bias", "residual"):
            said.after.append((what, following.text if is_named else ""))
        elif what in ("times", "over"):
            if not is_named or (not said.operands and not said.before):
                return False
            said.after.append((what, following.text))
        elif is_named:
            said.eps = following.text
        self.at += is_named
        return True

    def _take_joint(self, what: str) -> bool:
        """What joins the item behind it to what stands before."""
        said, following = self.said, self._following()
        if what == "and":
            return bool(said.after) if following.what == "operation" else following.what not in ("and", "number", "end")
        if what == "then":
            return bool(said.operands or said.before)
        if what == "epilogue":
            return bool(said.after)
        if what == "with":
            if following.what == "name" and not _weights(self.items, self.at, said):
                return False
            while self._following().what in ("name", "and") and said.weights:
                self.at += 1
            return True
        of = next((each for each in self.items[self.at + 1 :] if each.what not in ("empty", "type")), _Item("end"))
        # Else, as in `gelu of activations`, it is of what is said by a word that means nothing else here.
        return of.what not in ("end", "then", "and", "with", "into")


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
