"""Which schedules a formula gets where nobody measured: by its shape, its types and, where they are known, its sizes.

The limits are those that an H200 showed; between measured sizes they are guesses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import get_args

from warpwright.formulas.extents import at_sizes
from warpwright.formulas.model import Formula
from warpwright.formulas.normal import tensors_of
from warpwright.formulas.tree import Load, walk
from warpwright.formulas.types import TYPES, computed
from warpwright.schedules.access import along
from warpwright.schedules.contraction import PROCESSORS, TensorProduct
from warpwright.schedules.model import Keep, Rows
from warpwright.schedules.shape import RowShape, common_base, is_sum_of_shifted, without_full_temporaries

REGISTERS = 65536
"""Of 32 bits, that the threads of a multiprocessor share."""
MOST_REGISTERS = 255
"""Of one thread."""
OTHER_REGISTERS = 32
"""Of a thread, besides those that hold its row: with fewer left, kernels of rows spilled."""
REDUCTION_BYTES = 2048
"""Of shared memory, which reductions over a block take beside its row."""
LONG = 8192
"""Elements of a row beyond which shared memory holds it at least as well as registers."""
SHARED_LANES = 512


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


@dataclass(frozen=True)
class _Facts:
    """Of a formula's rows: the bits in which an element of each input is computed, whether a pass reads an input anew,
    and whether all begins alike in each row."""

    bits: tuple[int, ...]
    again: bool
    is_alike: bool


def _facts(formula: Formula, shape: RowShape) -> _Facts:
    tensors = tensors_of(replace(formula, stages=shape.stages))
    moving = {
        load.tensor
        for stage in shape.stages
        for load in (node for node in walk(stage.value) if isinstance(node, Load))
        if load.tensor in formula.tensors and along(tensors[load.tensor], load, shape.cols, formula.dims)
    }
    bits = tuple(computed(TYPES[tensors[name].type]).bits for name in sorted(moving))
    return _Facts(bits, is_read_again(formula, shape), common_base(formula, shape) is not None)


def legal(formula: Formula, shape: RowShape, schedule: Rows) -> str:
    """Why rows cannot be laid so; "" where they can."""
    return _refusal(_facts(formula, shape), schedule)


def _refusal(facts: _Facts, schedule: Rows) -> str:
    if schedule.lanes > 1024 or schedule.lanes * schedule.rows > 1024:
        return f"{schedule.lanes * schedule.rows} threads are more than the 1024 of a block."
    if schedule.lanes <= 32 and schedule.lanes & (schedule.lanes - 1):
        return f"{schedule.lanes} lanes are not a power of two."
    if schedule.lanes > 32 and (schedule.lanes % 32 or (schedule.rows > 1 and schedule.keep == "registers")):
        return "More lanes than those of a warp are whole warps, one row for a block."
    if schedule.vector not in (1, 2, 4, 8, 16):
        return f"{schedule.vector} elements are not read at once."
    if schedule.keep not in get_args(Keep):
        return f"A row does not stay in {schedule.keep}."
    if not schedule.is_whole and (schedule.keep == "reload" or not facts.is_alike):
        return "Packs of what is read and written do not begin alike in each row."
    if not schedule.is_whole and schedule.lanes < 2 * schedule.vector - 2:
        return f"{schedule.lanes} lanes are fewer than the elements before and after a row's packs."
    if schedule.keep == "registers":
        registers = kept_registers(facts.bits, schedule) + OTHER_REGISTERS
        most = min(MOST_REGISTERS, REGISTERS // max(128, schedule.lanes * schedule.rows))
        if registers > most:
            return f"About {registers} registers of a thread are more than {most}."
    elif schedule.lanes < 32:
        return "A row that is not kept in registers is shared by whole warps."
    if schedule.keep == "shared" and not facts.again:
        return "No array is read in more than one pass over the row."
    return ""


def kept_registers(bits: Iterable[int], schedule: Rows) -> int:
    """How many registers of a lane the row takes, about: in the types in which is computed, as passes hand on what
    they made of it."""
    return sum(max(1, each * schedule.vector // 32) for each in bits) * schedule.per_lane


def is_read_again(formula: Formula, shape: RowShape) -> bool:
    """Whether several passes over a row read the same input, where none keeps what it computed."""
    plain = without_full_temporaries(shape)
    tensors = tensors_of(replace(formula, stages=plain.stages))
    phases: dict[str, set[int]] = {}
    for stage in plain.stages:
        for load in (node for node in walk(stage.value) if isinstance(node, Load)):
            if load.tensor in formula.tensors and along(tensors[load.tensor], load, plain.cols, formula.dims):
                phases.setdefault(load.tensor, set()).add(plain.phases[stage.name])
    made = {each.name for each in plain.stages if not each.primed}
    return any(len(each) > 1 for name, each in phases.items() if name not in made)


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


def for_length(length: int, vector: int, *, is_stored: bool) -> Rows:
    """The schedule of rows of one length, in registers: two packs a lane while a warp or less holds them so, up to 32
    elements a lane in a warp (8, where they are read one by one), then some in more warps: 32, or four packs, where
    results of their own length are stored."""
    packs = -(-length // vector)
    whole = length % vector == 0
    if packs <= 64:
        lanes = max(1 << max(0, (packs + 1) // 2 - 1).bit_length(), 1 if whole else 2 * vector)
        return Rows(lanes, max(1, 128 // lanes), vector, -(-packs // lanes), is_whole=whole)
    if length <= (1024 if vector > 1 else 256):
        return Rows(32, 4, vector, -(-packs // 32), is_whole=whole)
    each = (4 * vector if is_stored else 32) if vector > 1 else 8 if length <= 1024 else 16
    lanes = min(512, max(64, -(-length // (each * 32)) * 32))
    return Rows(lanes, 1, vector, -(-packs // lanes), is_whole=whole)


def default(formula: Formula, shape: RowShape, sizes: Mapping[str, int] | None = None) -> tuple[Rows, ...]:
    """The schedules by falling preference; each is taken where it is right, the last one is right for any size."""
    vector = vector_of(formula, shape)
    online, full = is_online(shape), any(shape.is_full(each) for each in shape.stages)
    facts = _facts(formula, shape)
    longest = LONG if facts.again else 2 * LONG
    length = _length(formula, shape, sizes) if sizes is not None else None
    ladder = (16 * vector, 64 * vector, 512, 1024, 2048, 4096, LONG, 2 * LONG)
    found: list[Rows] = []

    def add(width: int, tops: tuple[int, ...], is_whole: bool) -> None:
        for top in sorted(set(tops)):
            if top <= longest:
                one = for_length(top, width, is_stored=full)
                lanes = max(one.lanes, 1 if is_whole else 2 * width)
                found.append(replace(one, lanes=lanes, rows=max(1, 128 // lanes), is_whole=is_whole))
        if facts.again:
            found.append(Rows(SHARED_LANES, 1, width, 1, "shared", is_whole=is_whole))

    wholes = (True, False) if vector > 1 and facts.is_alike else (True,)
    for is_whole in wholes:
        if length is None:
            add(vector, ladder if is_whole else (16 * vector, 1024, 4096, LONG, 2 * LONG), is_whole)
        elif not is_whole or length % vector == 0:
            add(vector, (length,), is_whole)
    if len(wholes) == 2:  # what begins at no word of memory is left
        found += [for_length(top, 1, is_stored=full) for top in (1024, 4096)]
    elif length is None or length % vector:
        add(1, (256, 1024, 4096, LONG) if length is None else (length,), True)
    legal_ones = [each for each in dict.fromkeys(found) if not _refusal(facts, each)]
    lanes = 1024 if online else 512
    widths = (vector, 1) if vector > 1 else (1,)
    return (*legal_ones, *(Rows(lanes, 1, width, 1, "reload", online, stream=full) for width in widths))


def _length(formula: Formula, shape: RowShape, sizes: Mapping[str, int]) -> int:
    length = 1
    for each in shape.cols:
        length *= at_sizes(formula.dims[each], sizes)
    return max(1, length)


def alternatives(formula: Formula, shape: RowShape, sizes: Mapping[str, int]) -> tuple[Rows, ...]:
    """Schedules that a search tries."""
    length = _length(formula, shape, sizes)
    vector = vector_of(formula, shape)
    is_whole = length % vector == 0
    facts = _facts(formula, shape)
    if not facts.is_alike:
        while length % vector:
            vector //= 2
        is_whole = True
    packs = -(-length // vector)
    online, full = is_online(shape), any(shape.is_full(each) for each in shape.stages)
    found = [for_length(length, vector, is_stored=full)]
    for lanes in (4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 1024):
        per_lane = -(-packs // lanes)
        if per_lane * vector > 128 or (lanes >= 2 * packs and lanes > 4):
            continue
        rows = (4, 8) if lanes == 32 else (1,) if lanes > 32 else (128 // lanes, 256 // lanes)
        found += [Rows(lanes, each, vector, per_lane, is_whole=is_whole) for each in rows]
    if length > 2048:
        for lanes in (256, 512, 1024):
            found.append(Rows(lanes, 1, vector, 1, "shared", is_whole=is_whole))
            found.append(Rows(lanes, 1, vector if is_whole else 1, 1, "reload", online, full))
    return tuple(each for each in dict.fromkeys(found) if not _refusal(facts, each))
