"""Whether two examples say nearly the same."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

from warpwright.formulas.resolve import formula_of

from warpwright_upskill.examples import Example


def likeness(example: Example) -> str:
    """A key that examples share whose formulas differ in names alone, and whose words differ in names, order, small
    words and punctuation alone."""
    places = _places(example.formula)

    def plain(text: str) -> str:
        return re.sub(r"\w+", lambda found: places.get(found[0], found[0]), text)

    words = sorted(
        set(re.findall(r"[#\w]+", plain(example.problem).lower())) - {"the", "a", "an", "of", "and", "is", "to"}
    )
    has_given = "given" if example.given else ""
    return hashlib.sha256("\0".join([plain(example.formula), has_given, *words]).encode()).hexdigest()[:20]


@lru_cache(maxsize=1 << 18)
def _places(text: str) -> dict[str, str]:
    """A number for each array and number of a formula, in the order in which it names them."""
    formula = formula_of(text)
    names = dict.fromkeys([*(each.array for each in formula.tensors.values()), *formula.scalars])
    return {name: f"#{number}" for number, name in enumerate(names)}
