"""What a user says about a problem, which goes before what the text shows: from sample.toml or from directives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from warpwright.problems.shapes import Shape


@dataclass(slots=True)
class ArrayOverride:
    """The parts of an array that are said; None where they are left to the text."""

    extent: str | None = None
    role: str | None = None
    type: str | None = None
    values: str | None = None


@dataclass(slots=True)
class Overrides:
    """Everything said in one place. `origin` is "sample.toml" or "directive"."""

    origin: str
    arrays: dict[str, ArrayOverride] = field(default_factory=lambda: {})
    scalars: dict[str, str] = field(default_factory=lambda: {})
    grid: tuple[str, str, str] | None = None
    block: tuple[str, str, str] | None = None
    dynamic_shared_bytes: str | None = None
    shape: Shape | None = None
    check: list[Shape] = field(default_factory=lambda: [])
    time: list[Shape] = field(default_factory=lambda: [])
    profile: Shape | None = None
    reference: str | None = None


def merged(strong: Overrides, weak: Overrides) -> Mapping[str, ArrayOverride]:
    """The arrays of two sources, part by part; what `strong` says goes first."""
    result = dict(weak.arrays)
    for name, array in strong.arrays.items():
        under = result.get(name, ArrayOverride())
        result[name] = ArrayOverride(
            array.extent or under.extent,
            array.role or under.role,
            array.type or under.type,
            array.values or under.values,
        )
    return result
