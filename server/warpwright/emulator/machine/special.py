"""Special registers (PTX ISA, chapter "Special Registers")."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warpwright.emulator.machine.faults import unfold
from warpwright.emulator.machine.group import WARP, Array

if TYPE_CHECKING:
    from warpwright.emulator.machine.batch import Batch

MULTIPROCESSORS = 132
"""What `%nsmid` says; an H200 has as many."""

OF_CLUSTERS = frozenset({
    *(f"%{stem}.{axis}" for stem in ("clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid") for axis in "xyz"),
    "%cluster_ctarank", "%cluster_nctarank", "%is_explicit_cluster",
})  # fmt: skip
"""Those of a kernel that says how many blocks its clusters have."""

CLOCKS = frozenset({"%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"})
SPECIAL_REGISTERS = CLOCKS | {
    *(f"%{stem}.{axis}" for stem in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"),
    *(f"%lanemask_{which}" for which in ("eq", "lt", "le", "gt", "ge")),
    "%laneid", "%warpid", "%nwarpid", "%smid", "%nsmid", "%gridid", "%dynamic_smem_size", "%total_smem_size",
    "%envreg1", "%envreg2",
}  # fmt: skip
"""The special registers that have a value here."""


GRID_BARRIER = "the grid's barrier"
"""The memory through which the blocks of a cooperative launch meet; its address stands in `%envreg1` and `%envreg2`."""


def special_register(name: str, batch: Batch) -> Array | None:
    """Its value for all lanes of a batch: one number where all have the same. None for a clock. Raises KeyError."""
    if name in CLOCKS:
        return None
    prepared, layout = batch.prepared, batch.layout
    if name in OF_CLUSTERS:
        return _of_cluster(name, batch)
    stem, _, axis = name.partition(".")
    if axis:
        place = "xyz".index(axis)
        shape = {"%ntid": prepared.block, "%nctaid": prepared.grid}.get(stem)
        if shape is not None:
            return np.uint32(shape[place])
        if stem == "%tid":
            return _coordinate(layout.thread_of, prepared.block, place)
        if stem == "%ctaid":
            if layout.blocks == 1:
                return np.uint32(unfold(batch.first_block, prepared.grid)[place])
            return _coordinate(layout.block_of + batch.first_block, prepared.grid, place)
        raise KeyError(name)
    lane = layout.lane_of.astype(np.uint64)
    one = np.uint64(1)
    masks = {
        "%lanemask_eq": one << lane,
        "%lanemask_lt": (one << lane) - one,
        "%lanemask_le": (one << (lane + one)) - one,
    }
    if name in masks:
        return masks[name].astype(np.uint32)
    if name in {"%lanemask_gt", "%lanemask_ge"}:
        return ~masks["%lanemask_le" if name.endswith("gt") else "%lanemask_lt"].astype(np.uint32)
    arrays = {"%laneid": layout.lane_of, "%warpid": layout.thread_of // WARP}
    if name in arrays:
        return arrays[name].astype(np.uint32)
    numbers = {
        "%nwarpid": 64,
        "%smid": 0,
        "%nsmid": MULTIPROCESSORS,
        "%dynamic_smem_size": prepared.dynamic_shared_bytes,
        "%total_smem_size": prepared.shared_bytes,
        "%envreg1": prepared.symbols[GRID_BARRIER] >> 32,
        "%envreg2": prepared.symbols[GRID_BARRIER] & 0xFFFFFFFF,
    }
    return np.uint64(0) if name == "%gridid" else np.uint32(numbers[name])


def _of_cluster(name: str, batch: Batch) -> Array:
    """Clusters are rows of blocks along x."""
    blocks, (x, y, z) = batch.prepared.program.cluster, batch.prepared.grid
    stem, _, axis = name.partition(".")
    place = "xyz".index(axis or "x")
    rank = ((batch.layout.block_of + batch.first_block) % blocks).astype(np.uint32)
    if stem == "%clusterid":
        number = _coordinate(batch.layout.block_of + batch.first_block, batch.prepared.grid, place)
        return number // np.uint32(blocks) if place == 0 else number
    if stem in {"%cluster_ctaid", "%cluster_ctarank"}:
        return rank if place == 0 else np.uint32(0)
    numbers = {
        "%nclusterid": (x // blocks, y, z)[place],
        "%cluster_nctaid": blocks if place == 0 else 1,
        "%cluster_nctarank": blocks,
        "%is_explicit_cluster": 1,
    }
    return np.uint32(numbers[stem])


def _coordinate(numbers: Array, shape: tuple[int, int, int], place: int) -> Array:
    if shape[place] == 1:
        return np.uint32(0)
    below = (1, shape[0], shape[0] * shape[1])[place]
    found = numbers if below == 1 else numbers // below
    if place < 2 and any(size > 1 for size in shape[place + 1 :]):
        found = found % shape[place]
    return found.astype(np.uint32)
