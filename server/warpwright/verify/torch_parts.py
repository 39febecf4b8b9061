"""The formulas of a plan as CUDA, each compared with itself at sizes that the emulator gets through, and the memory
that all of them take in turn."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from warpwright.formulas.aten.plan import FormulaPart, Plan
from warpwright.formulas.aten.texts import Array
from warpwright.formulas.extents import at_sizes
from warpwright.formulas.loosened import loosened
from warpwright.formulas.model import Formula
from warpwright.formulas.resolve import formula_of
from warpwright.formulas.tree import Num, product
from warpwright.formulas.types import TYPES
from warpwright.progress import IsCancelled, Progress
from warpwright.verify.formulas import Asked, Written, written_and_checked
from warpwright.verify.limits import workspace_bytes
from warpwright.writer.coverage import sizes_of
from warpwright.writer.launch import arrays
from warpwright.writer.names import function_name


@dataclass(frozen=True, slots=True)
class Part:
    """One formula of a plan. `written` is shared by formulas that differ in names alone: `arrays` are the plan's in the
    order of its launch function's parameters, `sizes` the numbers that it is launched with."""

    name: str
    text: str
    written: Written
    arrays: tuple[str, ...]
    sizes: Mapping[str, int]

    @property
    def call(self) -> str:
        """The launch as it is read by people, without workspace and stream."""
        said = [*self.arrays, *map(str, self.sizes.values())]
        return f"{self.written.code.name}({', '.join(said)})"


def written_parts(plan: Plan, name: str, arch: str, progress: Progress, is_cancelled: IsCancelled) -> list[Part]:
    """The formulas of a plan of fixed sizes, in the order in which they are run. What the emulator does not get through
    is written for any sizes, and compared at smaller ones. Raises FormulaNotWrittenError."""
    from warpwright.emulator.formula_check import shapes_for

    names = _size_names(plan)
    made: dict[str, Written] = {}
    parts: list[Part] = []
    for each in plan.formulas:
        formula, sizes = formula_of(each.text), dict[str, int]()
        if not shapes_for(formula, {}):
            formula, sizes = loosened(formula, names)
        key = _with_plain_names(formula)
        if key not in made:

            def said(message: str, share: float | None, of: str = each.name) -> None:
                progress(f"{message} of {of}", share)

            own_name = name if len(plan.formulas) == 1 else f"{name}_{each.name}"
            asked = Asked(function_name(own_name), arch, sizes)
            made[key] = written_and_checked(formula, asked, said, is_cancelled)
        if is_cancelled():
            break
        own = made[key]
        places = {one.name: one.array for one in (*each.reads, *each.writes)}
        handed = tuple(places[array] for array, _, _ in arrays(formula))
        at = dict(zip(own.formula.sizes, (sizes[size] for size in formula.sizes), strict=True))
        parts.append(Part(each.name, each.text, own, handed, at))
    return parts


def held_by_parts(plan: Plan, parts: Iterable[Part]) -> dict[str, int]:
    """The arrays that are in memory while most is: those that the caller hands over or gets back all the time, one
    between two parts until it is last read; and the workspace of the part that runs."""
    own = {each.name: _bytes(each.name, plan) for each in plan.inputs}
    own |= {each.array: _bytes(each.array, plan) for each in plan.results}
    formulas = plan.formulas
    last = {one.array: number for number, each in enumerate(formulas) for one in each.reads}
    most: dict[str, int] = {}
    between: dict[str, int] = {}
    for number, (each, part) in enumerate(zip(formulas, parts, strict=True)):
        between |= {one.array: _bytes(one.array, plan) for one in each.writes if one.array not in own}
        workspace = workspace_bytes(part.written.code, sizes_of(part.written.code, part.written.formula, part.sizes))
        held = {**own, **between, **({"workspace": workspace} if workspace else {})}
        most = max(most, held, key=lambda names: sum(names.values()))
        between = {name: size for name, size in between.items() if last.get(name, -1) > number}
    return most


def _bytes(array: str, plan: Plan) -> int:
    """Of an array of the plan, whatever extents it is read with."""
    given = next((each.shape for each in plan.inputs if each.name == array), None)
    if given is not None:
        return at_sizes(product([*given.extents]), {}) * TYPES[given.type].bits // 8
    found = next(one for each in plan.formulas for one in each.writes if one.array == array)
    return at_sizes(product([*found.extents]), {}) * TYPES[found.type].bits // 8


def _size_names(plan: Plan) -> dict[int, str]:
    """What each extent is called: after the first array that has it."""
    given = ((each.name, each.shape.extents) for each in plan.inputs)
    others = ((one.array, one.extents) for each in plan.formulas for one in _arrays_of(each))
    found: dict[int, str] = {}
    for name, extents in (*given, *others):
        for place, extent in enumerate(extents):
            if isinstance(extent, Num):
                found.setdefault(int(extent.value), f"{name}_size{place}")
    return found


def _arrays_of(part: FormulaPart) -> tuple[Array, ...]:
    return (*part.reads, *part.writes)


def _with_plain_names(formula: Formula) -> str:
    """The text with the names of arrays, stages and sizes by their order."""
    names = [*formula.tensors, *(each.name for each in formula.stages), *formula.sizes]
    order = {name: f"v{number}" for number, name in enumerate(dict.fromkeys(names))}
    return re.sub(r"[A-Za-z_]\w*", lambda found: order.get(found[0], found[0]), formula.text)
