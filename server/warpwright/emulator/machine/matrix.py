"""Matrix instructions of a batch: whole warps load fragments, multiply, and store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warpwright.emulator.machine import traffic
from warpwright.emulator.machine.faults import FoundFault, KernelFaultError
from warpwright.emulator.machine.group import WARP, Array, Group
from warpwright.emulator.numerics import matrix
from warpwright.facts.profile import FaultKind

if TYPE_CHECKING:
    from warpwright.emulator.machine.batch import Batch

ROWS, ROW_BYTES = 8, 16


def whole_warps(batch: Batch, step: int, group: Group) -> None:
    """Raise KernelFaultError unless each warp is here with all its lanes, as `.aligned` asks."""
    if not group.is_whole:
        text = "a matrix instruction is reached by a part of a warp"
        raise KernelFaultError(FoundFault(FaultKind.MISSING_SYNCWARP, step, text, batch.thread(group, 0)))


def load_matrices(
    batch: Batch, step: int, group: Group, space: str, address: Array, count: int, transposed: bool
) -> tuple[Array, ...]:
    """`ldmatrix`: lanes 8j to 8j + 7 name the rows of matrix j; each lane gets two neighbours of each matrix."""
    whole_warps(batch, step, group)
    rows = np.broadcast_to(address, group.size).reshape(-1, WARP)
    lane = np.arange(WARP)
    found = []
    for j in range(count):
        own = rows[:, ROWS * j : ROWS * (j + 1)]
        if transposed:
            there = [(own[:, 2 * (lane & 3) + k] + _offset(rows, 2 * (lane >> 2))).ravel() for k in (0, 1)]
            halves = [batch.fetch(step, group, space, half, 2)[0] for half in there]
            found.append(halves[0].astype(np.uint32) | (halves[1].astype(np.uint32) << np.uint32(16)))
        else:
            place = (own[:, lane >> 2] + _offset(rows, 4 * (lane & 3))).ravel()
            found.append(batch.fetch(step, group, space, place, 4)[0])
        _count_rows(batch, step, group, own)
    return tuple(found)


def store_matrices(
    batch: Batch, step: int, group: Group, space: str, address: Array, values: tuple[Array, ...], transposed: bool
) -> None:
    """`stmatrix`: the inverse of `ldmatrix`."""
    whole_warps(batch, step, group)
    rows = np.broadcast_to(address, group.size).reshape(-1, WARP)
    lane = np.arange(WARP)
    for j, value in enumerate(values):
        own = rows[:, ROWS * j : ROWS * (j + 1)]
        whole = np.broadcast_to(value, group.size)
        if transposed:
            for k in (0, 1):
                half = (whole >> np.uint32(16 * k)).astype(np.uint16)
                there = (own[:, 2 * (lane & 3) + k] + _offset(rows, 2 * (lane >> 2))).ravel()
                batch.put(step, group, space, there, 2, (half,))
        else:
            there = (own[:, lane >> 2] + _offset(rows, 4 * (lane & 3))).ravel()
            batch.put(step, group, space, there, 4, (whole,))
        _count_rows(batch, step, group, own)


def _offset(rows: Array, offsets: Array) -> Array:
    return offsets.astype(rows.dtype)[None, :]


def _count_rows(batch: Batch, step: int, group: Group, rows: Array) -> None:
    """Eight rows of 16 bytes are one pass where they lie in different banks."""
    places = rows.astype(np.int64)
    each = ((places >> 2)[:, :, None] + np.arange(4)).reshape(len(places), -1)
    part: Array = np.repeat(np.arange(len(places)), each.shape[1])
    passes = traffic.passes(each.ravel(), part, len(places))
    batch.tallies.move(step, "shared", group, ROW_BYTES, (passes, np.ones(len(places), dtype=np.int64)))


def multiply(
    batch: Batch,
    step: int,
    group: Group,
    is_wmma: bool,
    shape: tuple[int, int, int],
    types: tuple[str, str, str, str],
    fragments: tuple[tuple[Array, ...], tuple[Array, ...], tuple[Array, ...]],
    saturate: bool,
) -> tuple[Array, ...]:
    """`mma` and `wmma.mma` on the registers of a group."""
    whole_warps(batch, step, group)
    a, b, c = (
        np.stack([np.broadcast_to(register, group.size).reshape(-1, WARP) for register in each]) for each in fragments
    )
    function = matrix.wmma_multiply_add if is_wmma else matrix.multiply_add
    found = function(matrix.Shape(*shape), types, a, b, c, saturate)
    return tuple(np.ascontiguousarray(register).ravel() for register in found)


def wmma_addresses(
    name: str,
    shape: tuple[int, int, int],
    slots: int,
    size: int,
    by_row: bool,
    address: Array,
    stride: Array,
    group: Group,
) -> list[Array]:
    """The byte address of each of a lane's `slots` elements in memory; `stride` is in elements between rows."""
    rows: Array
    columns: Array
    rows, columns = matrix.wmma_places(name, matrix.Shape(*shape), slots)
    dtype, lanes = address.dtype, group.lane
    step = stride.astype(dtype)
    found = []
    for slot in range(slots):
        row, column = rows[lanes, slot].astype(dtype), columns[lanes, slot].astype(dtype)
        offset = row * step + column if by_row else column * step + row
        found.append(address + offset * dtype.type(size))
    return found
