"""What a caller hands over for a formula, and what the sizes of its arrays are called: the ground of signatures and of
shapes in words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from warpwright.formulas.model import Formula, Role, Tensor
from warpwright.formulas.printer import shown
from warpwright.formulas.tree import Expr, Name

from warpwright_upskill.data.requests.vocabulary import SIZES

_WORD = re.compile(r"[A-Za-z_]\w*")
_OF_ALL = r"\b(?:all|are|tensors|shape|arrays|both|layout|as) "
"""What stands before a shape that is that of several arrays."""


@dataclass(frozen=True, slots=True)
class Array:
    """An array of the caller; `fields` are those of an array of structs, in their order."""

    name: str
    type: str
    role: Role
    extents: tuple[Expr, ...]
    fields: tuple[str, ...] = ()


def arrays(formula: Formula, words: str = "") -> list[Array]:
    """Each array that is handed over, inputs first, and those first that come first in the words."""
    found: dict[str, list[Tensor]] = {}
    for each in sorted(formula.tensors.values(), key=lambda each: each.role == "out"):
        found.setdefault(each.array, []).append(each)
    listed = [_array(name, tensors) for name, tensors in found.items()]
    at = {each: match.start() for each in found if (match := re.search(rf"\b{re.escape(each)}\b", words))}
    return sorted(listed, key=lambda each: (each.role == "out", at.get(each.name, len(words))))


def _array(name: str, tensors: list[Tensor]) -> Array:
    roles = {each.role for each in tensors}
    role: Role = roles.pop() if len(roles) == 1 else "in-out"
    behind = sorted((each for each in tensors if each.base), key=lambda each: each.offset)
    fields = tuple(each.name.removeprefix(f"{name}.") for each in behind)
    return Array(name, tensors[0].type, role, tensors[0].extents, fields)


def names_of(formula: Formula) -> list[str]:
    """What callers hand over: arrays and numbers."""
    return [*dict.fromkeys(each.array for each in formula.tensors.values()), *formula.scalars]


def sizes_called(formula: Formula, chance: Random, words: str = "", own: bool = False) -> dict[str, str]:
    """What each size of a formula is called: as the words have it (`A [M, K]`), else by its own name where `own`, else
    as people do. No size is called as something that the caller hands over is."""
    taken = {*names_of(formula)}
    told = sizes_told(formula, words)
    called = {size: name for size, name in told.items() if name not in taken}
    taken |= {*called.values()}
    for size in formula.sizes:
        if size in called:
            continue
        pool = [size] if own and len(size) == 1 else list(SIZES.get(size, ()))
        if size == "H" and not own:
            pool += ["height", "img_h"] if "W" in formula.sizes else ["heads", "n_heads"]
        if not pool:
            pool = ["vocab", "V", "num_entries", "table_rows"] if re.search(r"_size\d*$", size) else [size]
        free = [name for name in pool if name not in taken]
        called[size] = chance.choice(free) if free else f"num_{size.lower()}"
        taken.add(called[size])
    return called


def sizes_told(formula: Formula, words: str) -> dict[str, str]:
    """The names that shapes in the words give to sizes: those of named arrays, then those of all of a rank."""
    told: dict[str, str] = {}
    every = [each for each in arrays(formula) if each.extents]
    for named in (True, False):
        for each in every:
            more = len(each.extents) - 1
            whose = rf"\b{re.escape(each.name)}(?: is| has shape| of shape|:)? ?" if named else _OF_ALL
            capitals = rf"\[([A-Z\d]\w*(?:, ?[A-Z\d]\w*){{{more}}})\]"
            small = rf"|\(([a-z](?:, [a-z]){{{more}}})\)" if named else ""
            shape = re.search(rf"{whose}(?:{capitals}{small})", words)
            if shape is None:
                continue
            letters = re.findall(r"\w+", shape[0].split("[" if "[" in shape[0] else "(")[-1].upper())
            for extent, letter in zip(each.extents, letters, strict=True):
                if isinstance(extent, Name) and not letter[0].isdigit():
                    told.setdefault(extent.name, letter)
    return told


def shape_of(array: Array, sizes: Mapping[str, str]) -> list[str]:
    """The extents of an array as they are called: `["B", "2*H"]`."""
    return [
        _WORD.sub(lambda found: sizes.get(found[0], found[0]), shown(each)).replace(" * ", "*")
        for each in array.extents
    ]
