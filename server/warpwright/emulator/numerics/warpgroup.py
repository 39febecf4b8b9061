"""Matrix products of a warpgroup, four warps: where elements lie in shared memory, and which lane holds which sum (PTX
ISA, "Asynchronous warpgroup level matrix instructions").

A descriptor names an operand: where it starts, how its pieces of 8 x 16 bytes follow each other, and whether 16-byte
words are permuted within rows of 32, 64 or 128 bytes. Sums are as exact as those of `mma` (see `matrix`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from warpwright.emulator.numerics.halves import f32_of_bf16, f32_of_f16
from warpwright.emulator.numerics.lanes import Lanes
from warpwright.emulator.numerics.matrix import BITS, Shape, elements, words

GROUP = 128
"""Threads of a warpgroup."""
WORD = 16
"""Bytes that lie together in every layout."""
_ROWS = {0: 16, 1: 128, 2: 64, 3: 32}
"""Bytes of a row by a descriptor's swizzle mode; words of rows of 16 bytes are not permuted."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The parts of a descriptor: all are bytes, but `base`, which is 0 where the pattern of a swizzle starts at a
    multiple of its size."""

    start: int
    leading: int
    stride: int
    base: int
    row: int

    @classmethod
    def of(cls, descriptor: int) -> Layout:
        """What the 64 bits say.

        >>> Layout.of(1 << 62 | (1024 >> 4) << 32 | (8192 >> 4) << 16 | 2048 >> 4)
        Layout(start=2048, leading=8192, stride=1024, base=0, row=128)
        """
        start, leading, stride = ((descriptor >> place & 0x3FFF) << 4 for place in (0, 16, 32))
        return cls(start, leading, stride, descriptor >> 49 & 7, _ROWS[descriptor >> 62 & 3])

    def words(self, count: int, is_turned: bool) -> Lanes:
        """The address of each 16-byte word of an operand of `count` rows of A, or columns of B, and 32 bytes along k.

        Words go along k: two for each row. Of one that is turned they go along the rows: one for each 8 rows and k.
        """
        each = self.row // WORD
        if is_turned:
            unit, k = np.divmod(np.arange(count // 8 * 16), 16)
            if self.row == WORD:
                places = unit * self.stride + k % 8 * WORD + k // 8 * self.leading
            else:
                places = unit % each * WORD + unit // each * self.leading + k % 8 * self.row + k // 8 * self.stride
        else:
            at, half = np.divmod(np.arange(count * 2), 2)
            places = at % 8 * self.row + at // 8 * self.stride + half * (self.leading if self.row == WORD else WORD)
        places = places + self.start
        swizzled: Lanes = places ^ (places >> 7 & (each - 1)) << 4
        return swizzled


def operand(data: Lanes, type_name: str, count: int, is_turned: bool) -> Lanes:
    """The numbers (warpgroups, `count`, along k) of an operand's words, in the order of `Layout.words`."""
    flat = data.reshape(len(data), -1)
    if type_name in {"f16", "bf16"}:
        halves = flat.view(np.uint16)
        floats = f32_of_bf16(halves) if type_name == "bf16" else f32_of_f16(halves.view(np.float16))
        numbers = floats.astype(np.float64)
    elif type_name == "tf32":
        numbers = (flat.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    else:
        numbers = flat.view(np.int8 if type_name == "s8" else np.uint8).astype(np.int64)
    if is_turned:
        return np.swapaxes(numbers.reshape(len(data), count // 8, 16, 8), 2, 3).reshape(len(data), count, 16)
    return numbers.reshape(len(data), count, -1)


@cache
def sums(columns: int) -> tuple[Lanes, Lanes]:
    """Row and column of each sum of a thread: arrays (128 threads, sums), in the order of its registers.

    >>> rows, columns = sums(16)
    >>> [(int(r), int(c)) for r, c in zip(rows[37], columns[37])]
    [(17, 2), (17, 3), (25, 2), (25, 3), (17, 10), (17, 11), (25, 10), (25, 11)]
    """
    thread, nth = np.arange(GROUP)[:, None], np.arange(columns // 2)[None, :]
    rows = thread // 32 * 16 + thread % 32 // 4 + nth // 2 % 2 * 8
    return rows, nth // 4 * 8 + thread % 4 * 2 + nth % 2


def multiply_add(shape: Shape, type_d: str, a: Lanes, b: Lanes, c: Lanes, is_scaled: Lanes) -> Lanes:
    """d = a b + c, or a b where `is_scaled` does not hold; a (warpgroups, 64, k), b (warpgroups, n, k), c and d as
    registers (registers, warpgroups, 128)."""
    rows, columns = sums(shape.n)
    before = np.where(is_scaled[:, :, None], elements(c, type_d), 0)
    return words(before + np.matmul(a, np.swapaxes(b, 1, 2))[:, rows, columns], type_d)


def depth_of(type_name: str) -> int:
    """How many elements along k are 32 bytes.

    >>> depth_of("bf16"), depth_of("s8")
    (16, 32)
    """
    return 256 // BITS[type_name]
