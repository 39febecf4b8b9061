"""The launches of kernels of windows."""

from __future__ import annotations

from dataclasses import replace

from warpwright.formulas.tree import Call, Expr, Name, Num, product
from warpwright.formulas.types import TYPES
from warpwright.schedules.windows import Windows, strides_of
from warpwright.writer.code import MOST_INDEX, Launch, Path, ceiling
from warpwright.writer.places import divisible, unique
from warpwright.writer.pointwise import reach
from warpwright.writer.window_boxes import Boxes
from warpwright.writer.window_frame import Frame

REACH = MOST_INDEX - 4096
"""The longest array: an index may lie a little beyond its end before it is compared with that."""
LEAST = 4
"""Results of a row below which a window of any length is left to other schedules."""
FEW = 1 << 15
"""Results below which a thread for several leaves most of a GPU idle."""


_Grid = tuple[tuple[int, int, int], tuple[Expr, Expr, Expr], list[Expr]]
"""The shape of a block, that of the grid, and when they are right."""


def paths(frame: Frame, boxes: Boxes, name: str, wanted: Windows | None) -> list[Path]:
    """The launches of a kernel where indices of 32 bits reach all: by size, alignment and length of rows."""
    found, dims, formula = frame.found, frame.found.dims, frame.formula
    scope = frame.scope
    limits = [reach(each) for each in scope.touched()]
    limits += [formula.dims[each] for each in dims]
    small = unique(Call("<=", (each, Num(REACH))) for each in limits)
    results = product([formula.dims[each] for each in dims])
    conditions, aligned = _alignment(frame, boxes)
    made = []
    for schedule, least in [(found.schedule, 0)] if wanted else _by_size(frame):
        many = [Call(">=", (results, Num(least)))] if least else []
        for vector in (schedule.vector, 1):
            if vector > 1 and conditions is None:
                continue
            own = replace(schedule, cols=schedule.cols if found.is_heavy or vector > 1 else 1)
            counts = [str(count) for count in replace(found, schedule=own).counts.values()]
            for block, grid, more in _grids(frame, own):
                launch = Launch(name, grid, block, template=(str(vector), *counts))
                packed = conditions if vector > 1 and conditions else []
                reason = "Rows are whole packs." if vector > 1 else ""
                held = aligned if vector > 1 else {}
                made.append(Path((launch,), (*many, *more, *packed, *small), held, reason, own))
    return made


def _by_size(frame: Frame) -> list[tuple[Windows, int]]:
    """Schedules with the least number of results that keep a large GPU busy: fewer get fewer for each thread."""
    found, schedule = frame.found, frame.found.schedule
    own = schedule.cols * schedule.rows * schedule.outs
    if not found.is_heavy:
        few = replace(schedule, rows=1)
        return [(schedule, FEW * own), (few, 0)] if few != schedule else [(schedule, 0)]
    halves = replace(schedule, rows=max(1, schedule.rows // 2), outs=max(1, schedule.outs // 2))
    least = replace(schedule, cols=schedule.vector, rows=1, outs=min(2, schedule.outs))
    variants = dict.fromkeys((schedule, halves, least))
    variants.pop(least)
    return [*((each, FEW // 4 * each.cols * each.rows * each.outs) for each in variants), (least, FEW)]


def _alignment(frame: Frame, boxes: Boxes) -> tuple[list[Expr] | None, dict[str, int]]:
    """When packs are aligned."""
    vector, found, scope = frame.found.schedule.vector, frame.found, frame.scope
    conditions: list[Expr] = []
    aligned: dict[str, int] = {}
    places = [(box.tensor, box.inner, box) for box, _ in boxes.read if boxes.by_packs(box)]
    stored = [s for s in frame.group.stages if not s.temporary or s.name in frame.group.kept]
    results = [(scope.tensors[s.name], s.own_index.index(Name(found.col)), None) for s in stored]
    for tensor, inner, box in [*places, *results]:
        aligned[tensor.array] = min(16, vector * TYPES[tensor.type].bits // 8)
        if tensor.offset % vector:
            return None, {}
        for n, stride in enumerate(strides_of(tensor)):
            if tensor.strides is None and n + 2 < len(tensor.extents):
                continue  # a multiple of the next one
            if stride is None:
                return None, {}
            terms = {("@", *key): factor for key, factor in stride.items()} if n != inner else {}
            if n == inner and box is not None:
                own = box.axes[n]
                stepped = {each.stepped for each in found.passes if each.stepped}
                free = {found.col, *(stepped if found.schedule.step % vector == 0 else ())}
                terms = {k: f for k, f in own.base.items() if not (len(k) == 1 and k[0] in free)}
            more = divisible(terms, frame.formula.sizes, vector)
            if more is None:
                return None, {}
            conditions += more
    return list(unique(conditions)), aligned


def _grids(frame: Frame, schedule: Windows) -> list[_Grid]:
    """Blocks, grids, and when they are right."""
    found, dims, of = frame.found, frame.found.dims, frame.formula.dims
    per = replace(found, schedule=schedule).counts
    if found.is_heavy:
        cells = product([ceiling(of[each], per.get(each, 1)) for each in dims if each != found.out])
        blocks = ceiling(cells, frame.threads)
        least = Call(">=", (of[found.col], Num(LEAST)))
        if not found.out:
            return [((frame.threads, 1, 1), (blocks, Num(1), Num(1)), [least])]
        outs = ceiling(of[found.out], schedule.outs)
        fits = Call("<=", (blocks, Num(65535)))
        return [((frame.threads, 1, 1), (outs, blocks, Num(1)), [least, fits])]
    wide = schedule.cols > 1 and schedule.rows == found.schedule.rows
    made: list[_Grid] = []
    for lanes in ((32, 16, 8) if wide else (32,)) if dims[:-1] else (frame.threads,):
        rows = frame.threads // lanes
        lines = product([ceiling(of[each], per.get(each, 1)) for each in dims[:-1]])
        tiles = [ceiling(of[found.col], lanes * schedule.cols), *([ceiling(lines, rows)] if dims[:-1] else [])]
        blocks = product(tiles)
        more: list[Expr] = [Call("<=", (blocks, Num(MOST_INDEX)))]
        if dims[:-1] and wide and lanes > 8:
            more.append(Call(">", (of[found.col], Num(lanes // 2 * schedule.cols))))
        made.append(((lanes, rows, 1), (blocks, Num(1), Num(1)), more))
    return made
