"""Reductions over pairs: each element of a result meets all of other arrays, as bodies that attract each other, points
and centres, or places and charges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from warpwright.formulas.model import Formula, Stage, Tensor
from warpwright.formulas.normal import tensors_of
from warpwright.formulas.tree import Load, Name, Reduce, walk
from warpwright.formulas.types import TYPES
from warpwright.schedules.access import along
from warpwright.schedules.windows import fixed_extent


@dataclass(frozen=True, slots=True)
class Pairs:
    """A thread computes `bodies` results; tiles of the others pass through shared memory, and `parts` groups of threads
    share a tile."""

    bodies: int = 4
    parts: int = 8


@dataclass(frozen=True, slots=True)
class AllPairs:
    """`own` is the dimension of the results that threads run over, `other` the one that is reduced. `locals` are
    intermediates of a pair in their order, `tiles` the loads along `other`, `held` those of the result's own."""

    own: str
    other: str
    batch: tuple[str, ...]
    reductions: tuple[Stage, ...]
    after: tuple[Stage, ...]
    locals: tuple[Stage, ...]
    tiles: tuple[tuple[Tensor, Load], ...]
    held: tuple[Load, ...]


def all_pairs(formula: Formula, dims: tuple[str, ...], stages: Sequence[Stage]) -> AllPairs | str:
    """The stages as a reduction over pairs, or why they are none."""
    reductions = tuple(each for each in stages if isinstance(each.value, Reduce))
    after = tuple(each for each in stages if not isinstance(each.value, Reduce))
    if not reductions or not dims or any(each.combine or each.primed or each.index for each in stages):
        return "Nothing is reduced, or results go to computed places."
    ranges = {each.value.ranges for each in reductions if isinstance(each.value, Reduce)}
    first = next(iter(ranges))
    if len(ranges) > 1 or len(first) > 1 or first[0].lower is not None or first[0].upper is not None:
        return "Pairs are reduced over one whole dimension."
    own, other = dims[-1], first[0].name
    if fixed_extent(formula, other) or any(TYPES[each.type].kind == "complex" for each in stages):
        return "What is reduced is of fixed extent, or complex."
    names = {each.name for each in reductions}
    if any(n.tensor in names for s in reductions for n in walk(s.value) if isinstance(n, Load)):
        return "A reduction reads another one."
    named = _with_names(formula, reductions, (*dims, other))
    locals_, reductions = named if named is not None else ((), reductions)
    arrays = tensors_of(formula)
    inner = {each.name for each in locals_}
    bodies = [each.value for each in (*locals_, *reductions)]
    loads = dict.fromkeys(n for b in bodies for n in walk(b) if isinstance(n, Load) and n.tensor not in inner)
    tiles, held = [], []
    for load in loads:
        used = {n.name for each in load.index for n in walk(each) if isinstance(n, Name)}
        if other not in used:
            held += [load] if own in used else []
            continue
        if own in used or along(arrays[load.tensor], load, (other,), formula.dims) is None:
            return f"{load.tensor} is not an array of the other elements alone."
        if load.index[-1] != Name(other):
            return f"{load.tensor} is not read along {other}."
        tiles.append((arrays[load.tensor], load))
    if not tiles or not held:
        return "Nothing is read of the one or of the other of a pair."
    return AllPairs(own, other, dims[:-1], tuple(reductions), after, locals_, tuple(tiles), tuple(held))


def _with_names(
    formula: Formula, reductions: Iterable[Stage], dims: tuple[str, ...]
) -> tuple[tuple[Stage, ...], tuple[Stage, ...]] | None:
    """The intermediates of a pair that the reductions name, and the reductions as the formula says them; None where one
    is read at another pair."""
    by_name = {each.name: each for each in formula.stages if not each.primed}
    found: dict[str, Stage] = {}

    def needs(stage: Stage) -> bool:
        for load in (n for n in walk(stage.value) if isinstance(n, Load)):
            made = by_name.get(load.tensor)
            if made is None or not made.temporary or isinstance(made.value, Reduce) or made.name in found:
                continue
            if load.index != tuple(map(Name, made.dims)) or load.outside is not None or not set(made.dims) <= set(dims):
                return False
            if not needs(made):
                return False
            found[made.name] = made
        return True

    said = []
    for each in reductions:
        whole = by_name.get(each.name)
        if whole is None or not needs(whole):
            return None
        said.append(replace(each, value=whole.value))
    return tuple(found.values()), tuple(said)
