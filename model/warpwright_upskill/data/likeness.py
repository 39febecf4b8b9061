"""Whether two examples say nearly the same."""

from __future__ import annotations

import hashlib
import re

from warpwright.formulas.resolve import formula_of

from warpwright_upskill.examples import Example


def likeness(example: Example) -> str:
    """A key that examples share whose formulas differ in names alone, and whose words differ in names, order, small
    words and punctuation alone."""
    formula = formula_of(example.formula)
    names = list(dict.fromkeys([*(each.array for each in formula.tensors.values()), *formula.scalars]))
    places = {name: f"#{number}" for number, name in enumerate(names)}

    def plain(text: str) -> str:
        return re.sub(r"\w+", lambda found: places.get(found[0], found[0]), text)

    words = sorted(
        set(re.findall(r"[#\w]+", plain(example.problem).lower())) - {"the", "a", "an", "of", "and", "is", "to"}
    )
    has_given = "given" if example.given else ""
    return hashlib.sha256("\0".join([plain(example.formula), has_given, *words]).encode()).hexdigest()[:20]
