"""Which schedules a formula gets where nobody measured: by its shape, its types and, where they are known, its sizes.

The limits are those that an H200 showed; between measured sizes they are guesses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from warpwright.formulas.extents import with_sizes
from warpwright.formulas.model import Formula
from warpwright.formulas.normal import tensors_of
from warpwright.formulas.tree import Load, walk
from warpwright.formulas.types import TYPES
from warpwright.schedules.access import along
from warpwright.schedules.contraction import PROCESSORS, TensorProduct
from warpwright.schedules.model import Rows
from warpwright.schedules.shape import RowShape, is_sum_of_shifted

REGISTERS = 65536
"""Of 32 bits, that the threads of a multiprocessor share."""
MOST_REGISTERS = 255
"""Of one thread."""


@dataclass(frozen=True, slots=True)
class TensorRule:
    """A schedule of products on tensor cores, and how many tiles it is for; 0 is no limit.
    `is_for_lines`: for rows of whole 128-byte lines."""

    schedule: TensorProduct
    least_tiles: int = 0
    most_tiles: int = 0
    is_for_lines: bool = False


TENSOR_RULES = (
    TensorRule(TensorProduct(), least_tiles=PROCESSORS // 2),
    # One small tile for each multiprocessor: more of its depth is under way.
    TensorRule(TensorProduct(64, 128, 32, 64, 6), most_tiles=PROCESSORS, is_for_lines=True),
    TensorRule(TensorProduct(64, 128, 32, 64, 6, through_l1=True), most_tiles=PROCESSORS),
    TensorRule(TensorProduct(64, 128, 32, 64, 4, 2)),
)
"""By falling preference; the last is for all that is left."""


def legal(formula: Formula, shape: RowShape, schedule: Rows) -> str:
    """Why rows cannot be laid so; "" where they can."""
    if schedule.lanes > 1024 or schedule.lanes * schedule.rows > 1024:
        return f"{schedule.lanes * schedule.rows} threads are more than the 1024 of a block."
    if schedule.lanes <= 32 and schedule.lanes & (schedule.lanes - 1):
        return f"{schedule.lanes} lanes are no power of two."
    if schedule.lanes > 32 and (schedule.lanes % 32 or (schedule.rows > 1 and schedule.keep == "registers")):
        return "More lanes than those of a warp are whole warps, one row for a block."
    if schedule.vector not in (1, 2, 4, 8, 16):
        return f"{schedule.vector} elements are not read at once."
    if schedule.keep == "registers":
        registers = kept_registers(formula, shape, schedule) + 24
        most = min(MOST_REGISTERS, REGISTERS // max(128, schedule.lanes * schedule.rows))
        if registers > most:
            return f"About {registers} registers of a thread are more than {most}."
    if schedule.keep == "reload" and schedule.lanes < 32:
        return "A row that is read anew is shared by whole warps."
    return ""


def kept_registers(formula: Formula, shape: RowShape, schedule: Rows) -> int:
    """How many registers of a lane the row takes, about."""
    tensors = tensors_of(replace(formula, stages=shape.stages))
    moving = {
        load.tensor
        for stage in shape.stages
        for load in (node for node in walk(stage.value) if isinstance(node, Load))
        if load.tensor in formula.tensors and along(tensors[load.tensor], load, shape.cols, formula.dims)
    }
    words = sum(max(1, TYPES[tensors[name].type].bits * schedule.vector // 32) for name in moving)
    return words * schedule.per_lane


def vector_of(formula: Formula, shape: RowShape) -> int:
    """How many elements are 16 bytes of the narrowest array that runs along the rows, and at most 32 of the widest."""
    tensors = tensors_of(replace(formula, stages=shape.stages))
    loads = [
        n for stage in shape.stages for n in walk(stage.value) if isinstance(n, Load) and n.tensor in formula.tensors
    ]
    read = {n.tensor for n in loads if along(tensors[n.tensor], n, shape.cols, formula.dims)}
    names = read | {each.name for each in shape.stages if shape.is_full(each) and not each.temporary}
    sizes = [max(1, TYPES[tensors[name].type].bits // 8) for name in names]
    return max(1, min(16 // min(sizes), 32 // max(sizes)))


def is_online(shape: RowShape) -> bool:
    """Whether a maximum and the sum of exponentials come in one pass."""
    return any(is_sum_of_shifted(shape, each) for each in shape.stages)


def for_length(length: int, vector: int) -> Rows:
    """The schedule of rows of one length, in registers."""
    while length % vector:
        vector //= 2
    packs = -(-length // vector)
    if packs <= 32:
        lanes = 1 << max(0, packs - 1).bit_length()
        return Rows(lanes, max(1, 128 // lanes), vector, 1)
    words = -(-length // 32)
    if words <= 32:
        return Rows(32, 4, vector, -(-words // vector))
    lanes = min(512, max(64, -(-length // (16 * 32)) * 32))
    return Rows(lanes, 1, vector, -(-packs // lanes))


def default(formula: Formula, shape: RowShape, sizes: Mapping[str, int] | None = None) -> tuple[Rows, ...]:
    """The schedules by falling preference; each is taken where it is right, the last one is right for any size."""
    vector = vector_of(formula, shape)
    found: list[Rows] = []
    if sizes is not None:
        length = 1
        for each in shape.cols:
            length *= with_sizes(formula.dims[each], sizes)
        best = for_length(max(1, length), vector)
        found = [best] if best.vector == 1 else [best, for_length(max(1, length), 1)]
    else:
        short = [for_length(length, vector) for length in (8 * vector, 32 * vector, 512, 1024, 4096, 16384)]
        found = list(dict.fromkeys(short))
        found += [for_length(length, 1) for length in (32, 1024, 4096, 16384)] if vector > 1 else []
    legal_ones = [each for each in found if not legal(formula, shape, each)]
    online, full = is_online(shape), any(shape.is_full(each) for each in shape.stages)
    lanes = 1024 if online else 512
    last = Rows(lanes, 1, 1, 1, "reload", online, stream=full)
    wide = [replace(last, vector=vector)] if vector > 1 else []
    return (*legal_ones, *wide, last)


def alternatives(formula: Formula, shape: RowShape, sizes: Mapping[str, int]) -> tuple[Rows, ...]:
    """Schedules that a search tries."""
    length = 1
    for each in shape.cols:
        length *= with_sizes(formula.dims[each], sizes)
    vector = vector_of(formula, shape)
    while length % vector:
        vector //= 2
    packs = -(-length // vector)
    found = [for_length(length, vector)]
    for lanes in (4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 1024):
        per_lane = -(-packs // lanes)
        if per_lane * vector > 128 or (lanes >= 2 * packs and lanes > 4):
            continue
        rows = (4, 8) if lanes == 32 else (1,) if lanes > 32 else (128 // lanes, 256 // lanes)
        found += [Rows(lanes, each, vector, per_lane) for each in rows]
    if length > 2048:
        online, full = is_online(shape), any(shape.is_full(each) for each in shape.stages)
        found += [Rows(lanes, 1, vector, 1, "reload", online, full) for lanes in (256, 512, 1024)]
    return tuple(each for each in dict.fromkeys(found) if not legal(formula, shape, each))
