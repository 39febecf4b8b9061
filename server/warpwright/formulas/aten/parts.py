"""Which stages make one formula: a product with what is computed of its elements, rows with all that is read of them,
elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from warpwright.formulas.aten.values import Builder, Made
from warpwright.formulas.tree import Expr, Load, Name, Reduce, walk

MOST_STAGES = 24
"""Of one formula."""


@dataclass
class _Part:
    stages: list[Made] = field(default_factory=list)

    @property
    def names(self) -> set[str]:
        return {each.name for each in self.stages}

    def of(self, *kinds: str) -> list[Made]:
        return [each for each in self.stages if each.kind in kinds]


def parted(items: Sequence[Any], b: Builder) -> list[Any]:
    """The stages as lists of those that make one formula, in an order in which they can be run; other items as they
    are."""
    done: list[Any] = []
    place: dict[str, int] = {}
    for item in items:
        if not isinstance(item, Made):
            done.append(item)
            place.update(dict.fromkeys(item.writes, len(done) - 1))
            continue
        least = 0
        for load in loads(item):
            aliased = load.tensor in b.aliases
            name = b.aliases[load.tensor][0] if aliased else load.tensor
            if name in place:
                least = max(least, place[name] + aliased)
        joined = next(
            (
                n for n in range(len(done) - 1, least - 1, -1)
                if isinstance(done[n], _Part) and _fits(item, done[n])
            ),
            None,
        )  # fmt: skip
        if joined is None:
            done.append(_Part())
            joined = len(done) - 1
        done[joined].stages.append(item)
        place[item.name] = joined
    return [each.stages if isinstance(each, _Part) else each for each in done]


def loads(stage: Made) -> Iterator[Load]:
    """Every load of a stage."""
    return (node for part in (stage.value, *stage.index) for node in walk(part) if isinstance(node, Load))


def _fits(stage: Made, part: _Part) -> bool:
    labels = {each.together for each in part.stages}
    if stage.together or labels != {""}:
        return stage.together in labels
    if len(part.stages) >= MOST_STAGES or stage.kind in ("product", "scatter", "scan") or part.of("scatter"):
        return False
    read = [load for load in loads(stage) if load.tensor in part.names]
    whole = part.of("product", "scan")
    if whole or not part.of("rows"):
        if stage.kind == "map":
            own = tuple(map(Name, stage.dims))
            return bool(read) and all(each.index == own and each.outside is None for each in read)
        return not whole and bool(read) and _rows_of(stage, part.stages)
    if not all(each.outside is None and all(isinstance(i, Name) for i in each.index) for each in read):
        return False
    rows = {each.dims for each in part.of("rows")}
    if stage.kind == "map":
        return bool(read) and any(set(each) <= set(stage.dims) for each in rows)
    ranged = {_ranges(each.value) for each in part.of("rows")}
    return stage.dims in rows and (bool(read) or _ranges(stage.value) in ranged)


def _rows_of(stage: Made, maps: Sequence[Made]) -> bool:
    """Whether the stage reduces rows of what the maps compute."""
    dims = {*stage.dims, *_ranges(stage.value)}
    return all(set(each.dims) == dims for each in maps) and all(
        isinstance(i, Name) for load in loads(stage) for i in load.index
    )


def _ranges(value: Expr) -> tuple[str, ...]:
    return tuple(each.name for each in value.ranges) if isinstance(value, Reduce) else ()
