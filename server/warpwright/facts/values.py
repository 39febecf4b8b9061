"""What an expression is worth in the 32 lanes of one warp.

A number's `data` is one Python number where all lanes agree, a list of 32 where they do not, None where it is not
known and may differ from lane to lane. A value that is not known but is the same in all lanes is a number too, an
example with `soft` set: sums and products keep the lanes' differences right, and a comparison is not decided by it.
`soft` is the step in which the unknown part moves: 1 for a loaded row start, 32 after a multiplication by 32; it
tells later how a line of addresses may be aligned.

    a[row[blockIdx.x] + threadIdx.x]     row[...]: soft 1; the index: 0..31 plus an unknown start
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import gcd
from typing import TYPE_CHECKING

from warpwright.facts.lanes import (
    ARITHMETIC,
    COMPARISONS,
    Data,
    compute,
    difference,
    integers,
    lanes,
    pairwise,
    plus,
    simplify,
    wrapped,
)
from warpwright.facts.model import WARP, Basis, Space
from warpwright.facts.types import BOOL, INT, LONG, UNKNOWN_TYPE, CType, arithmetic_result, pointer_to

if TYPE_CHECKING:
    from warpwright.facts import ir
    from warpwright.facts.places import Frame, Location

EXACT, ASSUMED, DATA, UNKNOWN = range(4)
BASES = (Basis.EXACT, Basis.ASSUMED, Basis.DATA_DEPENDENT, Basis.UNKNOWN)
SOFT_EXAMPLE = 64
MOST_PARTS = 8
"""Arrays that one pointer may point to, of those that are told apart."""
ALIGNED = 256
"""Bytes that allocated arrays are aligned to at least (CUDA C++ Programming Guide, "Device Memory Accesses")."""
FULL = (1 << WARP) - 1
MOST_KEPT = 256
"""Results that are kept at one place, to be found again in the next iteration."""
LANE_BITS = tuple(1 << lane for lane in range(WARP))


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """A piece of memory that does not overlap others: what one pointer parameter points to, one shared array. `bytes`
    is its size where the text gives it; `unfilled` is memory of cudaMalloc that the host hands over as it is."""

    name: str
    space: Space
    element: CType
    place: Location = None  # the variable that a pointer to local memory points to
    parts: tuple[Region, ...] = ()  # of one that stands for several: what a pointer may point to
    bytes: int | None = None
    unfilled: bool = False

    @property
    def is_null(self) -> bool:
        """Whether it is what a null pointer points to: nothing."""
        return self.bytes == 0


APART = 1 << 40
"""Bytes between the parts of a region that stands for several."""


@lru_cache(maxsize=256)
def either(left: Region, right: Region) -> Region | None:
    """The region of a pointer into one or the other of two arrays of global memory; None for other memory, of which
    the distance tells the banks."""
    parts = tuple(dict.fromkeys((*(left.parts or (left,)), *(right.parts or (right,)))))
    if any(part.space is not Space.GLOBAL for part in parts) or len(parts) > MOST_PARTS:
        return None
    if len(parts) == len(left.parts):
        return left
    return Region(" or ".join(part.name for part in parts), Space.GLOBAL, left.element, None, parts)


def _within(value: Value, whole: Region) -> Data:
    """A pointer's data as offsets in a region that its own is a part of."""
    region = value.region
    if region is None or region.parts:
        return value.data if region is not None and region.parts == whole.parts[: len(region.parts)] else None
    return plus(value.data, APART * whole.parts.index(region))


def _both_regions(left: Value, right: Value) -> tuple[Region | None, Data, Data]:
    """The region that two values point into, and their data in it; no data where there is none for both."""
    if left.region is right.region:
        return left.region, left.data, right.data
    whole = either(left.region, right.region) if left.region is not None and right.region is not None else None
    if whole is None:
        return None, None, None
    return whole, _within(left, whole), _within(right, whole)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """What is known of a number that is not: each lane's is `data` and an unknown multiple of `step`. In
    `table[bin][lane]` with the bin read from memory, lanes are known up to rows of the table."""

    data: Data
    step: int
    basis: int

    def plus(self, other: Value, scale: int = 1) -> Rows | None:
        """Moved by `scale` times another number, known or known up to rows too."""
        if other.soft:
            return None
        if other.data is not None:
            data = compute("+", self.data, compute("*", integers(other.data), scale))
            return Rows(data, self.step, max(self.basis, other.basis)) if data is not None else None
        step = gcd(self.step, abs(scale) * (other.rows.step if other.rows is not None else 1))
        known = other.rows.data if other.rows is not None else 0
        data = compute("+", self.data, compute("*", known, scale))
        return Rows(data, step, self.basis) if data is not None else None


@dataclass(slots=True, eq=False)
class Value:
    """`basis` indexes BASES; `thread` is true where the value depends on the thread within its block; a pointer has a
    `region`, and its data is the byte offset in it. `grain` is the step of what the compiler cannot know of the value,
    such as a kernel's argument or blockDim: 0 where it knows all but the thread, 32 after a multiplication by 32.
    `open` is true of a soft value that is no data, but a template's number or a macro that the text does not give."""

    data: Data
    type: CType
    basis: int = EXACT
    soft: int = 0
    thread: bool = False
    region: Region | None = None
    grain: int = 0
    rows: Rows | None = None
    open: bool = False

    @property
    def uniform(self) -> bool:
        return isinstance(self.data, (int, float))

    @property
    def decided(self) -> bool:
        return self.data is not None and not self.soft

    def holding(self, data: Data, kind: CType) -> Value:
        """Other data of another type, of which as much is known as of this."""
        return Value(data, kind, self.basis, self.soft, self.thread, self.region, self.grain, open=self.open)


@dataclass(slots=True, eq=False)
class Example(Value):
    """A condition that data decide, with what it is worth for data that are made up. It is not decided: both sides are
    run, and of what they leave a variable shows that one."""


@dataclass(slots=True, eq=False)
class StructValue:
    type: CType
    fields: dict[str, AnyValue]


@dataclass(slots=True, eq=False)
class ArrayValue:
    """A local array. `elements` holds what is known, by constant index; `bare`: what is not there was never set."""

    type: CType
    elements: dict[int, AnyValue] = field(default_factory=lambda: {})
    bare: bool = False


@dataclass(slots=True, eq=False)
class Group:
    """A cooperative group of `size` threads; None is the whole block or, where `kind` says so, the blocks of the
    "grid" or of a "cluster". Of "coalesced" lanes, those that are on."""

    size: int | None
    kind: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Closure:
    """A lambda, with the variables of the function that it stands in."""

    function: ir.Function
    frame: Frame


@dataclass(frozen=True, slots=True, eq=False)
class FunctionName:
    """A function of the unit as a value: what a function pointer points to."""

    name: str


AnyValue = Value | StructValue | ArrayValue | Group | Closure | FunctionName


_NUMBERS: dict[tuple[int, int, bool, bool, bool], Value] = {}
"""What is not known, once for each type of a number (by its id: the value keeps it), so that sums of it are found
again; of others not, since a struct's type keeps its text."""


def unknown(kind: CType = UNKNOWN_TYPE, basis: int = UNKNOWN, thread: bool = True) -> Value:
    found = _NUMBERS.get((id(kind), basis, thread, False, False))
    return found if found is not None else _kept(Value(None, kind, basis, 0, thread))


def soft(kind: CType, thread: bool, basis: int = ASSUMED, *, is_open: bool = False) -> Value:
    """Not known, the same in all lanes."""
    found = _NUMBERS.get((id(kind), basis, thread, True, is_open))
    if found is not None:
        return found
    example = float(SOFT_EXAMPLE) if kind.kind == "float" else SOFT_EXAMPLE
    return _kept(Value(example, kind, basis, 1, thread, open=is_open))


def exact_number(value: AnyValue | None) -> int | None:
    """A number that the text gives, the same in all lanes."""
    if not isinstance(value, Value) or value.basis != EXACT or not value.decided or not isinstance(value.data, int):
        return None
    return int(value.data)


def _kept(value: Value) -> Value:
    if value.type.kind in ("int", "uint", "float", "bool"):
        if len(_NUMBERS) >= MOST_KEPT:
            _NUMBERS.clear()
        _NUMBERS[id(value.type), value.basis, value.thread, value.soft == 1, value.open] = value
    return value


def opaque(kind: CType, *parts: AnyValue | None) -> Value:
    """The result of an operation that is not followed: the same in all lanes if its operands are."""
    values = [p for p in parts if isinstance(p, Value)]
    thread = any(v.thread for v in values) or len(values) != len(parts)
    if values and len(values) == len(parts) and all(v.uniform for v in values):
        return soft(kind, thread, max(ASSUMED, *(v.basis for v in values)))
    if not values or all(v.decided for v in values):  # nothing of it was read from memory
        return unknown(kind, UNKNOWN, thread)
    return unknown(kind, max(DATA, *(v.basis for v in values)), thread)


def convert(value: Value, kind: CType) -> Value:
    """A value of one type as another, as a cast or an initialisation does."""
    if value.type is kind or kind.name == "auto":
        return value
    data = value.data
    if kind.kind == "other":
        known = kind if kind.size is not None else value.type
        return value.holding(data, known)
    needs = kind.kind != value.type.kind or kind.size != value.type.size
    if needs and kind.kind not in ("pointer", "array") and value.region is None:
        data = wrapped(data, kind)
    return value.holding(data, kind)


def binary(op: str, left: Value, right: Value) -> Value:
    """C's binary operators, lane by lane.

    >>> lane = Value(list(range(32)), INT, thread=True)
    >>> binary("*", lane, Value(4, INT)).data[:3], binary("/", lane, Value(64, INT)).data
    ([0, 4, 8], 0)
    """
    basis = left.basis if left.basis > right.basis else right.basis
    thread = left.thread or right.thread
    if left.region is not None or right.region is not None:
        return _pointer_arithmetic(op, left, right, basis, thread)
    if op in COMPARISONS:
        if left.soft or right.soft:
            same = left.uniform and right.uniform
            return soft(BOOL, thread, max(basis, ASSUMED)) if same else unknown(BOOL, max(basis, DATA), thread)
        data = compute(op, left.data, right.data)
        return Value(data, BOOL, basis if data is not None else max(basis, DATA), 0, thread)
    kind = arithmetic_result(left.type, right.type)
    if op in ("<<", ">>"):
        kind = left.type if (left.type.size or 4) >= 4 else INT
    if op not in ARITHMETIC:
        return opaque(kind, left, right)
    if op not in ("+", "-") and _scaled_by_data(op, left, right):
        return unknown(kind, max(basis, UNKNOWN if (right if right.soft else left).open else DATA), thread)
    try:
        data = compute(op, left.data, right.data)
        if kind.kind == "uint" or op == "<<":  # a shift into the sign is a shift modulo 2 to the width
            data = wrapped(data, kind)
    except (OverflowError, ValueError):
        data = None
    if data is None:
        data = _absorbing(op, left, right)
    step = _step(op, left, right, left.soft, right.soft) if left.soft or right.soft else 0
    if data is None and left.uniform and right.uniform:  # too large, but the same in all lanes
        return soft(kind, thread, max(basis, ASSUMED))
    if data is None:
        basis = max(basis, UNKNOWN if left.decided and right.decided else DATA)
        rows = _rows(op, left, right)
        if rows is None:
            return unknown(kind, basis, thread)
        return Value(None, kind, basis, 0, thread, rows=rows)
    grain = _step(op, left, right, left.grain, right.grain) if left.grain or right.grain else 0
    is_open = step > 0 and all(part.open or not part.soft for part in (left, right))
    return Value(data, kind, basis, step, thread, None, grain, open=is_open)


def _scaled_by_data(op: str, left: Value, right: Value) -> bool:
    """Lanes that are multiplied or divided by a number that is read from memory: their distance is data too."""
    if right.soft and not left.uniform:
        return True
    return op == "*" and bool(left.soft) and not right.uniform


def _absorbing(op: str, left: Value, right: Value) -> Data:
    """x * 0 and x & 0 are 0 whatever x is."""
    if op in ("*", "&") and (left.data == 0 or right.data == 0) and not (left.soft or right.soft):
        return 0
    return None


def _rows(op: str, left: Value, right: Value) -> Rows | None:
    """What is known of a sum or product of which one operand is not."""
    if op in ("*", "<<"):
        unknown_one, factor = (left, right) if left.data is None else (right, left)
        whole = unknown_one.type.kind != "float"
        if (
            not whole
            or not isinstance(factor.data, int)
            or factor.soft
            or (op == "<<" and factor is left)
            or factor.data < 0
        ):
            return None
        scale = 1 << factor.data if op == "<<" and factor.data < 32 else factor.data
        known = unknown_one.rows or Rows(0, 1, EXACT)
        data = compute("*", known.data, scale)
        return Rows(data, known.step * scale, max(known.basis, factor.basis)) if data is not None and scale else None
    if op not in ("+", "-"):
        return None
    if left.rows is not None:
        return left.rows.plus(right, -1 if op == "-" else 1)
    return right.rows.plus(left) if right.rows is not None and op == "+" else None


def _step(op: str, left: Value, right: Value, moves: int, too: int) -> int:
    """How a result moves whose left operand moves in steps of `moves` and the right one of `too`, 0 for not at all; 1
    where nothing better is known."""
    if op in ("+", "-"):
        return gcd(moves, too)
    other, own = (right, moves) if moves else (left, too)
    if (moves and too) or not isinstance(other.data, int):
        return 1
    if op == "*":
        return max(1, abs(own * other.data))
    if op == "<<" and moves and 0 <= other.data < 32:
        return own << other.data
    if op == "/" and moves and other.data and own % other.data == 0:
        return max(1, own // abs(other.data))
    if op == "%" and moves and other.data and own % other.data == 0:
        return 0
    return 1


def _pointer_arithmetic(op: str, left: Value, right: Value, basis: int, thread: bool) -> Value:
    if left.region is not None and right.region is not None:
        if op == "-" and left.region is right.region and left.type.to is not None and left.type.to.size:
            size = left.type.to.size
            return Value(
                pairwise(lambda a, b: (int(a) - int(b)) // size, left.data, right.data), LONG, basis, 0, thread
            )
        return opaque(BOOL, left, right)
    pointer, index = (left, right) if left.region is not None else (right, left)
    if op not in ("+", "-"):
        if pointer is left and _asks_alignment(op, index.data):
            return Value(compute(op, pointer.data, index.data), LONG, max(basis, ASSUMED), pointer.soft, thread)
        if index.data == 0 and op in ("==", "!="):  # a pointer compared with null: taken as valid, but one that is null
            is_null = pointer.region is not None and pointer.region.is_null
            return Value(int((op == "==") == is_null), BOOL, basis if is_null else max(basis, ASSUMED), 0, thread)
        return opaque(BOOL, left, right)
    return offset_pointer(pointer, index, -1 if op == "-" else 1)


def _asks_alignment(op: str, number: Data) -> bool:
    """Whether `pointer % number` or `pointer & number` is a matter of its offset: arrays are aligned to ALIGNED."""
    whole = number if op == "%" else number + 1 if isinstance(number, int) and op == "&" else None
    return isinstance(whole, int) and 0 < whole <= ALIGNED and whole & (whole - 1) == 0


def offset_pointer(pointer: Value, index: Value, sign: int = 1) -> Value:
    """pointer + sign * index elements."""
    element = pointer.type.to or UNKNOWN_TYPE
    basis = max(pointer.basis, index.basis, ASSUMED if element.assumed else EXACT)
    thread = pointer.thread or index.thread
    size = 1 if pointer.type.is_integer else element.size  # a shared address as a number counts bytes
    kind = pointer_to(element) if pointer.type.kind == "array" else pointer.type
    if size is None or index.region is not None:
        return Value(None, kind, UNKNOWN, 0, thread, pointer.region)
    scale = sign * size
    data = compute("+", pointer.data, compute("*", integers(index.data), scale))
    if data is None:
        rows = pointer.rows or (Rows(pointer.data, 1 << 62, pointer.basis) if pointer.decided else None)
        rows = rows.plus(index, scale) if rows is not None else None
        return Value(None, kind, max(basis, DATA), 0, thread, pointer.region, rows=rows)
    step, grain = gcd(pointer.soft, index.soft * size), gcd(pointer.grain, index.grain * size)
    return Value(data, kind, basis, step, thread, pointer.region, grain)


def merge(old: AnyValue | None, new: AnyValue, mask: int) -> AnyValue:
    """`new` in the lanes of the mask, `old` in the others."""
    if mask == FULL or old is None:
        return new
    if isinstance(old, Value) and isinstance(new, Value):
        if _is_unset(old):
            return new  # no other lane can read it yet
        region, olds, news = _both_regions(old, new)
        if olds is None or news is None or bool(old.soft) != bool(new.soft):
            basis = max(old.basis, new.basis, DATA)
            return unknown(new.type, basis) if region is None else Value(None, new.type, basis, 0, True, region)
        data = simplify([n if mask & bit else o for n, o, bit in zip(lanes(news), lanes(olds), LANE_BITS, strict=True)])
        return Value(
            data,
            new.type,
            max(old.basis, new.basis),
            gcd(old.soft, new.soft),
            True,
            region,
            gcd(old.grain, new.grain),
        )
    if isinstance(old, StructValue) and isinstance(new, StructValue):
        return StructValue(new.type, {n: merge(old.fields.get(n), v, mask) for n, v in new.fields.items()})
    return new


def _is_shared(value: Value) -> bool:
    return value.region is not None and value.region.space is Space.SHARED


def _is_unset(value: Value) -> bool:
    """Whether a variable was declared and not set so far."""
    return value.data is None and value.basis == UNKNOWN and not value.thread and value.region is None


def join(left: AnyValue | None, right: AnyValue | None, condition: Value | None) -> AnyValue | None:
    """What a variable is worth after a branch whose condition is not known: one of two values."""
    if left is right or right is None or left is None:
        return left if left is not None else right
    if isinstance(condition, Example):
        return _shown(left, right, condition)
    if isinstance(left, Value) and isinstance(right, Value):
        if left.data == right.data and left.region is right.region:
            return left if left.basis >= right.basis else right
        if _is_unset(left) or _is_unset(right):  # a lane that did not set it has no use for it
            return right if _is_unset(left) else left
        thread = left.thread or right.thread or condition is None or condition.thread
        same_choice = condition is not None and condition.uniform
        region, _, _ = _both_regions(left, right)
        if same_choice and region is None and _is_shared(left) and _is_shared(right):
            region = left.region  # where an array begins moves the banks of all lanes alike
        if same_choice and left.data == right.data and left.data is not None and region is not None:
            basis = max(left.basis, right.basis, ASSUMED)  # one array or the other, at the same place
            return Value(left.data, left.type, basis, gcd(left.soft, right.soft), thread, region)
        if same_choice and left.region is right.region and left.data is not None and right.data is not None:
            shift = difference(left.data, right.data)
            if isinstance(shift, int):
                step = gcd(gcd(left.soft, right.soft), abs(shift)) or 1
                return Value(left.data, left.type, max(left.basis, right.basis, ASSUMED), step, thread, left.region)
        basis = max(left.basis, right.basis, DATA)
        return unknown(left.type, basis, thread) if region is None else Value(None, left.type, basis, 0, thread, region)
    if isinstance(left, StructValue) and isinstance(right, StructValue):
        names = {**left.fields, **right.fields}
        fields = {n: join(left.fields.get(n), right.fields.get(n), condition) for n in names}
        return StructValue(left.type, {n: v for n, v in fields.items() if v is not None})
    if isinstance(left, ArrayValue) and isinstance(right, ArrayValue):
        others = right.elements
        both = ((i, v, others[i]) for i, v in left.elements.items() if i in others)
        return ArrayValue(left.type, {i: v if v is o else join(v, o, condition) or v for i, v, o in both})
    return left


def _shown(left: AnyValue, right: AnyValue, condition: Example) -> AnyValue:
    """One of two values, as an example of it."""
    on = sum(bit for bit, outcome in zip(LANE_BITS, lanes(condition.data), strict=True) if outcome)
    merged = merge(right, left, on)
    if not isinstance(merged, Value):
        return merged
    return replace(merged, basis=max(merged.basis, DATA), thread=merged.thread or condition.thread)


def clone(value: AnyValue | None) -> AnyValue | None:
    """A copy that later assignments to parts do not reach; plain values are never changed in place."""
    if isinstance(value, Value):
        return value
    if isinstance(value, StructValue):
        return StructValue(value.type, {n: v for n, v in ((n, clone(v)) for n, v in value.fields.items()) if v})
    if isinstance(value, ArrayValue):
        elements = value.elements.items()
        return ArrayValue(value.type, {i: v if type(v) is Value else clone(v) or v for i, v in elements})
    return value
