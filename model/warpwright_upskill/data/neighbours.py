"""The example that a request for a formula shows: as a search by words finds it, mostly of the same structure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from random import Random

from warpwright_upskill.examples import FORMULA, TRAIN, Example

ASTRAY = 0.2
"""The share of shown examples that are of any structure: a search goes astray, and a model must not copy blindly."""
_DRAWS = 8


def neighbours(examples: Sequence[Example], share: float, seed: int = 0) -> list[Example | None]:
    """For each example the one that its prompt shows, None for most tasks and for all but a share of the formulas.

    What is shown is a training example, and never of the very same formula.
    """
    random = Random(seed)
    formulas = [each for each in examples if each.task == FORMULA and each.split == TRAIN]
    by_structure: dict[tuple[str, str], list[Example]] = defaultdict(list)
    for each in formulas:
        by_structure[each.provenance.family, each.provenance.structure].append(each)
    found: list[Example | None] = []
    for each in examples:
        shown: Example | None = None
        if each.task == FORMULA and random.random() < share:
            near = by_structure[each.provenance.family, each.provenance.structure]
            pool = formulas if random.random() < ASTRAY else near
            drawn = [random.choice(pool) for _ in range(_DRAWS)] if pool else []
            shown = next((other for other in drawn if other.formula != each.formula), None)
        found.append(shown)
    return found
