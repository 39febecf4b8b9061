"""Worked examples for a request: of many (comment, formula) pairs the one whose words are nearest.

Words that few comments have weigh more (BM25), so that "softmax" decides and "of each row" does not.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

_WORD = re.compile(r"[a-z]+|\d+")
_SATURATION, _LENGTH = 1.2, 0.5


class Examples:
    """An index over pairs of a comment and a formula."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self.pairs: Sequence[tuple[str, str]] = list(dict.fromkeys(pairs))
        counts = [Counter(words(comment)) for comment, _ in self.pairs]
        self.lengths = [each.total() for each in counts]
        self.mean = sum(self.lengths) / len(counts) if counts else 1.0
        self.places: dict[str, list[tuple[int, int]]] = {}
        for number, count in enumerate(counts):
            for word, times in count.items():
                self.places.setdefault(word, []).append((number, times))

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
        scores: dict[int, float] = {}
        for word in sorted(set(words(comment))):
            found = self.places.get(word, [])
            weight = math.log(1 + (len(self.pairs) - len(found) + 0.5) / (len(found) + 0.5))
            for number, times in found:
                length = 1 - _LENGTH + _LENGTH * self.lengths[number] / self.mean
                share = times * (_SATURATION + 1) / (times + _SATURATION * length)
                scores[number] = scores.get(number, 0.0) + weight * share
        best = sorted(scores, key=lambda number: (-scores[number], number))[:count]
        return [self.pairs[number] for number in best]


def words(comment: str) -> list[str]:
    """The words of a comment, in small letters and without the s of a plural.

    >>> words("Sums of x_in's rows, 2x")
    ['sum', 'of', 'x', 'in', 's', 'row', '2', 'x']
    """
    found = _WORD.findall(comment.lower())
    return [each[:-1] if len(each) > 3 and each[-1] == "s" and each[-2] != "s" else each for each in found]


def _pairs(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        example = json.loads(line)
        if example["task"] == "formula":
            yield example["problem"], example["formula"]
