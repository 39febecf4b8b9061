"""Equations in an order in which each comes after what it reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warpwright.formulas.lexer import FormulaError
from warpwright.formulas.tree import Equation, Load, walk


def ordered(text: str, equations: Sequence[Equation]) -> list[Equation]:
    """Each equation after what it reads, else in the order in which they are written. Raises FormulaError."""
    left = sorted(equations, key=lambda each: not each.temporary)
    done: list[Equation] = []
    while left:
        names = {each.name for each in left if not each.primed and not each.combine}
        ready = next((e for e in left if not any(x.tensor in names for x in loads_of(e))), None)
        if ready is None:
            own = next((e for e in left if any(x.tensor == e.name for x in loads_of(e))), None)
            if own is not None:
                load = next(x for x in loads_of(own) if x.tensor == own.name)
                hint = f"a running value is a reduction over j <= i, a new value of an array is {own.name}'"
                raise FormulaError(text, load.at, f"{own.name} is defined by itself: {hint}.")
            raise FormulaError(text, left[0].at, f"{' and '.join(_circle(left, names))} are defined by each other.")
        left.remove(ready)
        done.append(ready)
    return done


def _circle(left: list[Equation], names: set[str]) -> list[str]:
    """Those of `names` that are defined by each other, where each of `left` reads one of them."""
    reads = {each.name: {load.tensor for load in loads_of(each)} for each in left}
    name, seen = left[0].name, list[str]()
    while name not in seen:
        seen.append(name)
        name = min(reads[name] & names)
    return sorted(seen[seen.index(name) :])


def loads_of(each: Equation) -> Iterator[Load]:
    """Every load of an equation."""
    return (node for part in (*each.index, each.value) for node in walk(part) if isinstance(node, Load))
