"""When a kernel of rows is right, and how it is launched."""

from __future__ import annotations

from warpwright.formulas.extents import is_constant
from warpwright.formulas.model import Formula
from warpwright.formulas.tree import Call, Expr, Name, Num, product
from warpwright.formulas.types import TYPES
from warpwright.schedules.model import Rows
from warpwright.schedules.rules import REDUCTION_BYTES
from warpwright.schedules.shape import RowShape
from warpwright.writer.code import MOST_INDEX, SHARED_MEMORY, Launch, Path, ceiling
from warpwright.writer.places import divisible, length_of, unique
from warpwright.writer.rows import WrittenRows


def rows_path(formula: Formula, shape: RowShape, schedule: Rows, made: WrittenRows) -> Path | None:
    """The launch and when it is right; None where no size makes it so."""
    kernel = made.kernel
    count = product([formula.dims[each] for each in shape.rows])
    length = product([formula.dims[each] for each in shape.cols])
    padded = product([Call("+", (Call("//", (length, Num(schedule.vector))), Num(2))), Num(schedule.vector)])
    held = product([length if schedule.is_whole else padded, Num(made.shared_bytes)])
    conditions: list[Expr] = []
    if schedule.keep == "registers":
        conditions.append(Call("<=", (length, Num(schedule.capacity))))
    if schedule.keep == "shared":
        conditions.append(Call("<=", (held, Num(SHARED_MEMORY - REDUCTION_BYTES))))
    if schedule.keep != "reload":
        conditions.append(Call("<=", (count, Num(MOST_INDEX))))
        named = (Name(each) for each in formula.sizes if each in kernel.parameters)
        conditions += [Call("<=", (each, Num(MOST_INDEX))) for each in named if each not in (count, length)]
    aligned: dict[str, int] = {}
    if not schedule.is_whole and made.base is None:
        return None
    if schedule.vector > 1:
        if len(shape.cols) == 2:  # so that a pack crosses the inner one once at most
            conditions.append(Call(">=", (formula.dims[shape.cols[1]], Num(schedule.vector))))
        by_pack = divisible(dict(length_of(length)), formula.sizes, schedule.vector) if schedule.is_whole else []
        if by_pack is None:
            return None
        conditions += by_pack
        for array, kind, base in made.moved:
            if not schedule.is_whole and base not in (made.base, {}):
                continue
            more = divisible(base, formula.sizes, schedule.vector) if schedule.is_whole else []
            if more is None:
                return None
            conditions += more
            bytes_at_once = min(16, schedule.vector * TYPES[kind].bits // 8)
            aligned[array] = max(aligned.get(array, 1), bytes_at_once)
    left = unique(conditions)
    if any(is_constant(each) for each in left):  # and not true, or it would not be left
        return None
    return Path((_launch(schedule, made, count, held),), left, aligned, _reason(schedule), schedule)


def _launch(schedule: Rows, made: WrittenRows, count: Expr, held: Expr) -> Launch:
    lanes, name = schedule.lanes, made.kernel.name
    whole = (str(schedule.is_whole).lower(),) if made.base is not None else ()
    if schedule.keep == "registers":
        template = (*map(str, (lanes, schedule.rows, schedule.per_lane, schedule.vector)), *whole)
        grid = (ceiling(count, schedule.rows), Num(1), Num(1))
        return Launch(name, grid, (lanes * schedule.rows, 1, 1), template=template)
    template_args = (str(lanes), str(schedule.vector), *whole)
    if schedule.keep == "shared":
        return Launch(name, (count, Num(1), Num(1)), (lanes, 1, 1), shared_bytes=held, template=template_args)
    grid = (Call("min", (count, Num(MOST_INDEX))), Num(1), Num(1))
    return Launch(name, grid, (lanes, 1, 1), template=template_args)


def _reason(schedule: Rows) -> str:
    each = ", read element by element" if schedule.vector == 1 else "" if schedule.is_whole else ", wherever it begins"
    lanes = schedule.lanes
    if schedule.keep == "shared":
        return f"A block keeps a row in shared memory{each}."
    if schedule.keep == "reload":
        return f"A block reads a row of any length anew for each pass{each.replace(', read', ',')}."
    who = "A block keeps" if lanes > 32 else "A warp keeps" if lanes == 32 else f"{lanes} lanes keep"
    return f"{who if lanes > 1 else 'A lane keeps'} a row of up to {schedule.capacity} elements{each}."
