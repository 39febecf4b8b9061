"""Which compositions are trained on, and which are kept for evaluation.

A pair that is held out stands in no training example: of an operator and what is applied before or after it, of a
family and a layout, of a family and a type; in formulas that are drawn, of their kind and what stands in them. Two
families are held out whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from warpwright_upskill.data.requests.compose import Parts
from warpwright_upskill.data.requests.spelled.sketch import Sketch
from warpwright_upskill.examples import DEV, HELD_OUT, TRAIN

FAMILIES_HELD_OUT = ("complex", "resampling")
HELD_OUT_PERCENT, DEV_PERCENT = 8, 3
SPELLED_PERCENT = 2
"""Of the pairs of what stands in a formula that is drawn, of which each has many."""
USUAL = {"f32", "row"}
"""Type and layout that every family is trained with."""


def side_of(parts: Parts) -> str:
    """The side of the split that all requests for a formula stand on."""
    if parts.operator.family in FAMILIES_HELD_OUT:
        return HELD_OUT
    if any(percent(pair) < HELD_OUT_PERCENT for pair in pairs(parts)):
        return HELD_OUT
    return DEV if percent(parts.structure + str(sorted(parts.features.items()))) < DEV_PERCENT else TRAIN


def side_of_sketch(sketch: Sketch) -> str:
    """The side of a formula that is drawn: the same for all that are made of the same."""
    if any(percent(pair) < SPELLED_PERCENT for pair in sketch_pairs(sketch)):
        return HELD_OUT
    return DEV if percent(f"{sketch.structure} {sketch.features}") < DEV_PERCENT else TRAIN


def sketch_pairs(sketch: Sketch) -> Iterator[str]:
    """What stands together in a formula that is drawn: its kind and features, two by two."""
    features = sketch.features
    for at, feature in enumerate(features):
        yield f"{sketch.kind} + {feature}"
        for other in features[at + 1 :]:
            yield f"{feature} + {other}"


def pairs(parts: Parts) -> Iterator[str]:
    """What stands together in a formula, each pair as a text."""
    name, family = parts.operator.name, parts.operator.family
    clauses = [*(f"before {each.name}" for each in parts.before), *(f"after {each.name}" for each in parts.after)]
    for at, clause in enumerate(clauses):
        yield f"{name} + {clause}"
        for other in clauses[at + 1 :]:
            yield f"{min(clause, other)} + {max(clause, other)}"
    for kind in {parts.type, parts.layout} - USUAL:
        yield f"{family} x {kind}"


def percent(text: str) -> int:
    """A number from 0 to 99 that is the same on every machine."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) % 100
