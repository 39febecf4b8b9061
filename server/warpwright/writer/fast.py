"""A formula by the schedules that its shape suggests: stages that share rows together, the rest group by group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from warpwright.formulas.extents import at_sizes
from warpwright.formulas.model import Formula, Tensor
from warpwright.formulas.normal import tensors_of
from warpwright.formulas.tree import Call, Num, Reduce, product
from warpwright.formulas.types import TYPES
from warpwright.schedules.access import flat, offset
from warpwright.schedules.attention import FusedAttention
from warpwright.schedules.contraction import CoreProduct, TensorProduct
from warpwright.schedules.model import Bins, Columns, Pointwise, Rows, Scan, Schedule, Segments, Tile
from warpwright.schedules.pairs import Pairs
from warpwright.schedules.rules import default, legal
from warpwright.schedules.shape import RowShape, row_shape
from warpwright.schedules.windows import Windows
from warpwright.writer.attention_code import attention_code
from warpwright.writer.attention_parts import Attention
from warpwright.writer.bins import bins
from warpwright.writer.bins import vector_of as bins_vector
from warpwright.writer.code import Code, Kernel, Path, Step
from warpwright.writer.names import part_name
from warpwright.writer.packs import columns_of, packs, schedule_of
from warpwright.writer.pairs import pairs
from warpwright.writer.partition import Group, loads_of, partition
from warpwright.writer.parts import Part, parts
from warpwright.writer.pointwise import elements_each, pointwise
from warpwright.writer.products import products
from warpwright.writer.reduction import reduced
from warpwright.writer.reduction_rounds import Round, rounds
from warpwright.writer.row_paths import rows_path
from warpwright.writer.rows import WrittenRows, rows_kernel
from warpwright.writer.scan import apart, scan
from warpwright.writer.scatter import filling
from warpwright.writer.scatter_packs import scatter_packs
from warpwright.writer.segments import segments
from warpwright.writer.tile import tile
from warpwright.writer.window_launch import FEW
from warpwright.writer.windows import windows

MOST_DIMENSIONS = 5
"""Of which every order is tried."""
BLOCKS = 1024
"""Of threads that share a reduction: some for each multiprocessor of a large GPU."""


class ScheduleError(Exception):
    """A schedule that does not fit a formula: one sentence."""


@dataclass(frozen=True)
class Made:
    """The kernels and steps of a part, and the arrays that they hand on."""

    kernels: tuple[Kernel, ...]
    steps: tuple[Step, ...]
    temporaries: tuple[Tensor, ...] = ()


def made_code(formula: Formula, name: str, schedule: Schedule | None, sizes: Mapping[str, int] | None) -> Code:
    """The whole formula. Raises ScheduleError where a wanted schedule fits no part of it."""
    found = parts(formula)
    kernels: list[Kernel] = []
    steps: list[Step] = []
    temporaries: dict[str, Tensor] = {}
    writing = _Writing(schedule, sizes, len(found) > 1)
    arrays = tensors_of(formula)
    for number, part in enumerate(found):
        own = name if len(found) == 1 else part_name(name, part.formula.stages[-1])
        if any(each.name.startswith(own) for each in kernels):
            own = f"{own}_{number}"
        made = writing.part(part, own)
        kernels += made.kernels
        steps += made.steps
        crossing = [each for each in part.formula.stages if not each.temporary and each.name not in formula.tensors]
        temporaries.update({each.name: arrays[each.name] for each in crossing})
        temporaries.update({each.name: each for each in made.temporaries})
    if schedule is not None and not writing.taken:
        raise ScheduleError(writing.reason or "No part of the formula has that schedule.")
    return Code(name, formula, tuple(kernels), tuple(steps), tuple(temporaries.values()))


@dataclass
class _Writing:
    """`schedule` is what a caller wants; `taken` whether a part has it, `reason` why the last one has not."""

    schedule: Schedule | None
    sizes: Mapping[str, int] | None
    several: bool
    taken: bool = False
    reason: str = ""

    def part(self, part: Part, name: str) -> Made:
        if part.chain is not None and (
            self.schedule is None or isinstance(self.schedule, FusedAttention) or self.several
        ):
            return self._chain(part.chain, name)
        wants_rows = self.schedule is None or isinstance(self.schedule, Rows)
        if part.shape is not None and (wants_rows or self.several):
            return self._rows(part.formula, part.shape, name)
        if isinstance(self.schedule, Rows):
            found = row_shape(part.formula, part.formula.stages)
            self.reason = found if isinstance(found, str) else ""
        return self._groups(part.formula, name)

    def _chain(self, chain: Attention, name: str) -> Made:
        wanted = self.schedule if isinstance(self.schedule, FusedAttention) else None
        made = attention_code(chain, name, wanted)
        if isinstance(made, str):
            raise ScheduleError(made)
        self.taken = self.taken or wanted is not None
        return Made(made[0], (made[1],))

    def _rows(self, formula: Formula, shape: RowShape, name: str) -> Made:
        chosen = default(formula, shape, self.sizes)
        if isinstance(self.schedule, Rows):
            if reason := legal(formula, shape, self.schedule):
                raise ScheduleError(reason)
            self.taken = True
            chosen = (self.schedule, *(each for each in chosen if each.keep == "reload" and each != self.schedule))
        made: dict[tuple[str, bool, bool], WrittenRows] = {}
        paths: list[Path] = []
        for each in chosen:
            key = (each.keep, each.online, each.stream)
            if key not in made:
                label = {"registers": "rows", "shared": "shared_rows", "reload": "long_rows"}[each.keep]
                taken = [one.kernel.name for one in made.values()]
                own = f"{name}_{label}" if f"{name}_{label}" not in taken else f"{name}_{label}_{len(made)}"
                made[key] = rows_kernel(formula, shape, each, own)
            path = rows_path(formula, shape, each, made[key])
            if path is not None:
                paths.append(path)
        count = product([formula.dims[each] for each in shape.rows])
        return Made(tuple(each.kernel for each in made.values()), (Step(tuple(paths), count),))

    def _groups(self, formula: Formula, name: str) -> Made:
        kernels: list[Kernel] = []
        steps: list[Step] = []
        temporaries: dict[str, Tensor] = {}
        groups = [each for group in partition(formula) for each in apart(formula, group)]
        arrays = tensors_of(formula)
        for number, group in enumerate(groups):
            own = name if len(groups) == 1 else part_name(name, group.stages[-1])
            if any(each.name.startswith(own) for each in kernels):
                own = f"{own}_{number}"
            made = self._group(formula, group, own)
            if isinstance(made, str):
                self.reason = self.reason if isinstance(self.schedule, Rows) else made
                made = _plain(formula, group, own)
            elif self.schedule is not None:
                self.taken = True
            kernels += made.kernels
            steps += made.steps
            temporaries.update({each.name: arrays[each.name] for each in group.stages if each.name in group.kept})
            temporaries.update({each.name: each for each in made.temporaries})
        return Made(tuple(kernels), tuple(steps), tuple(temporaries.values()))

    def _group(self, formula: Formula, group: Group, name: str) -> Made | str:
        """A group by the schedule that is made for its shape, or why none is."""
        wanted = self.schedule
        laid = _as_in_memory(formula, group)
        group = group if isinstance(group.stages[0].value, Reduce) else laid
        reason = "No schedule is made for it."
        if wanted is None or isinstance(wanted, CoreProduct | TensorProduct):
            multiplied = products(formula, group, name, () if wanted is None else (wanted,))
            if not isinstance(multiplied, str):
                return Made(tuple(multiplied[0]), tuple(multiplied[1]), tuple(multiplied[2]))
            reason = multiplied
        if wanted is None or isinstance(wanted, Windows):
            near = windows(formula, laid, f"{name}_windows", wanted)
            if not isinstance(near, str):
                return self._first_by(near, formula, group, name)
            reason = near
        if wanted is None or isinstance(wanted, Pairs):
            met = pairs(formula, group, f"{name}_pairs", wanted)
            if not isinstance(met, str):
                return self._first_by(met, formula, group, name)
            reason = met
        if wanted is None or isinstance(wanted, Tile):
            turned = tile(formula, group, f"{name}_kernel", wanted)
            if not isinstance(turned, str):
                return Made(tuple(turned[0]), (turned[1],))
            reason = turned
        if wanted is None or isinstance(wanted, Pointwise):
            cols = columns_of(formula, group)
            if not isinstance(cols, str):
                packed = packs(formula, group, f"{name}_kernel", wanted or schedule_of(formula, group, cols))
                if not isinstance(packed, str):
                    return Made(tuple(packed[0]), (packed[1],))
            reason = cols if isinstance(cols, str) else reason
        if wanted is None or isinstance(wanted, Bins):
            gathered = bins(formula, group, f"{name}_gathered", wanted or Bins(vector=bins_vector(formula, group)))
            if not isinstance(gathered, str):
                added = scatter_packs(formula, group, f"{name}_packs")
                ways = [gathered] if isinstance(added, str) else [gathered, added]
                return _before_plain(formula, group, name, ways)
            reason = gathered if isinstance(wanted, Bins) else reason
        if wanted is None or isinstance(wanted, Segments):
            shared = segments(formula, group, f"{name}_segments", wanted)
            if not isinstance(shared, str):
                return _before_plain(formula, group, name, [shared])
            reason = shared if isinstance(wanted, Segments) else reason
        if wanted is None or isinstance(wanted, Scan):
            scanned = scan(formula, group, f"{name}_kernel", wanted, self.sizes)
            if not isinstance(scanned, str):
                return Made(scanned.kernels, scanned.steps, scanned.temporaries)
            reason = scanned if isinstance(wanted, Scan) else reason
        if wanted is None or isinstance(wanted, Columns):
            made = self._reduced(formula, group, name)
            if not isinstance(made, str):
                return made
            reason = made
        return reason

    def _first_by(self, special: tuple[Kernel, list[Path]], formula: Formula, group: Group, name: str) -> Made:
        """A kernel with its paths, and what is right for any size behind it: of few results each by several blocks."""
        kernel, paths = special
        rest = self._reduced(formula, group, name)
        if isinstance(rest, str) or len(rest.steps) > 1 or self.schedule is not None:
            rest = _plain(formula, group, name)
        (step,) = rest.steps
        few = Call("<", (step.count, Num(FEW)))
        behind = tuple(
            replace(each, conditions=(few, *each.conditions)) if len(each.launches) > 1 else each for each in step.paths
        )
        between = [
            replace(each, extents=(Call("*", (few, each.extents[0])), *each.extents[1:])) for each in rest.temporaries
        ]
        return Made((kernel, *rest.kernels), (replace(step, paths=(*paths, *behind)),), tuple(between))

    def _reduced(self, formula: Formula, group: Group, name: str) -> Made | str:
        if not any(isinstance(each.value, Reduce) for each in group.stages):
            return "Nothing is reduced."
        found = rounds(formula, group.stages)
        if isinstance(found, str):
            return found
        kernels: list[Kernel] = []
        steps: list[Step] = []
        temporaries: dict[str, Tensor] = {}
        arrays = tensors_of(formula)
        for number, each in enumerate(found):
            later = {
                load.tensor
                for other in found[number + 1 :]
                for s in (*other.reductions, *other.after)
                for load in loads_of(s)
            }
            own_stages = (*each.reductions, *each.after)
            kept = group.kept | {s.name for s in own_stages if s.temporary and s.name in later}
            own = name if len(found) == 1 else f"{name}_{number + 1}"
            made = reduced(formula, each, kept, own, self._columns(formula, each))
            plain_kernel, plain_step = pointwise(formula, Group(each.dims, own_stages, kept), f"{own}_plain")
            kernels += [*made.kernels, plain_kernel]
            steps.append(Step((*made.paths, *plain_step.paths), plain_step.count))
            temporaries.update({s: arrays[s] for s in (s.name for s in own_stages) if s in kept})
            temporaries.update({t.name: t for t in made.temporaries})
        return Made(tuple(kernels), tuple(steps), tuple(temporaries.values()))

    def _columns(self, formula: Formula, found: Round) -> Columns:
        if isinstance(self.schedule, Columns):
            return self.schedule
        wide = max(TYPES[formula.type_of(n.tensor).name].bits for s in found.reductions for n in loads_of(s))
        vector = max(1, min(8, 128 // wide))
        if not found.dims:
            return Columns(vector, 8, BLOCKS)
        if self.sizes is None:
            return Columns(vector, 16, 16)
        results = 1
        for each in found.dims:
            results *= max(1, at_sizes(formula.dims[each], self.sizes))
        blocks = results if found.inner else -(-results // (32 * vector))
        wanted = BLOCKS if found.inner else BLOCKS // 4
        return Columns(vector, 16, max(1, min(64, wanted // max(1, blocks))))


def _as_in_memory(formula: Formula, group: Group) -> Group:
    """The group with its dimensions in the order in which its one result lies in memory."""
    if len(group.stages) != 1 or group.is_scatter:
        return group
    stage = group.stages[0]
    tensor = formula.tensors.get(stage.name)
    if tensor is None or tensor.strides is None or len(group.dims) > MOST_DIMENSIONS:
        return group
    place = offset(tensor, stage.own_index)
    for dims in permutations(group.dims):
        if flat(dims, formula.dims) == place:
            return Group(dims, (replace(stage, dims=dims, index=stage.own_index),), group.kept)
    return group


def _plain(formula: Formula, group: Group, own: str) -> Made:
    """A thread for each element, behind what fills the array of a scatter."""
    kernels: list[Kernel] = []
    steps: list[Step] = []
    if filled := filling(formula, group):
        kernel, step = pointwise(*filled, f"{own}_fill", elements_each(filled[1]))
        kernels.append(kernel)
        steps.append(step)
    kernel, step = pointwise(formula, group, f"{own}_kernel", elements_each(group))
    return Made((*kernels, kernel), (*steps, step))


def _before_plain(formula: Formula, group: Group, own: str, found: Sequence[tuple[Kernel, Sequence[Path]]]) -> Made:
    """Kernels with the paths on which they are taken, the plain one elsewhere."""
    general = _plain(formula, group, own)
    step = general.steps[-1]
    step = replace(step, paths=(*(path for _, paths in found for path in paths), *step.paths))
    kernels = (*(kernel for kernel, _ in found), *general.kernels)
    return Made(kernels, (*general.steps[:-1], step), general.temporaries)
