"""The schedules that a search tries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from warpwright.formulas.model import Formula
from warpwright.formulas.tree import Reduce
from warpwright.schedules.attention import FusedAttention
from warpwright.schedules.model import Bins, Columns, Pointwise, Schedule, Segments
from warpwright.schedules.pairs import Pairs, all_pairs
from warpwright.schedules.rules import alternatives as rows
from warpwright.schedules.windows import neighbours
from warpwright.writer.bins import vector_of as bins_vector
from warpwright.writer.packs import columns_of, schedule_of
from warpwright.writer.partition import partition
from warpwright.writer.parts import parts
from warpwright.writer.product_shape import is_product
from warpwright.writer.products import alternatives as products
from warpwright.writer.scan import alternatives as scans
from warpwright.writer.segments import segmented_of
from warpwright.writer.tile import schedules_of, turn


def alternatives(formula: Formula, sizes: Mapping[str, int]) -> tuple[Schedule, ...]:
    """The schedules that a search tries at some sizes: of rows, of packs or of tiles, as the formula's shape allows."""
    found: list[Schedule] = []
    for part in parts(formula):
        if part.chain is not None:
            found += [FusedAttention(), FusedAttention(128, 32), FusedAttention(64, 64), FusedAttention(128, 128)]
            continue
        if part.shape is not None:
            found += rows(part.formula, part.shape, sizes)
            continue
        for group in partition(part.formula):
            turned = turn(part.formula, group)
            if not isinstance(turned, str):
                for each in schedules_of(turned):
                    found += [each, replace(each, rows=each.rows // 2), replace(each, side=each.side // 2)]
                    found += [replace(each, vector=max(1, each.vector // 2))]
                continue
            if any(is_product(part.formula, each) for each in group.stages):
                found += products(part.formula, group)
                continue
            near = neighbours(part.formula, group.dims, group.stages, None)
            if not isinstance(near, str):
                found += near.alternatives()
                continue
            if not isinstance(all_pairs(part.formula, group.dims, group.stages), str):
                found += [Pairs(bodies, parts) for parts in (1, 4, 8, 16) for bodies in (1, 2, 4, 8)]
                continue
            cols = columns_of(part.formula, group)
            if not isinstance(cols, str):
                vector = schedule_of(part.formula, group, cols).vector
                shapes = ((256, 1), (256, 2), (128, 1), (128, 2), (512, 1), (256, 4), (128, 4))
                found += [Pointwise(threads, vector, count) for threads, count in shapes]
            elif group.is_scatter:
                wide = bins_vector(part.formula, group)
                blocks_of = ((256, 1056), (512, 264), (512, 528), (1024, 132), (1024, 264))
                found += [Bins(threads, blocks, wide) for threads, blocks in blocks_of]
            elif not isinstance(segmented_of(part.formula, group), str):
                found += [Segments(lanes) for lanes in (2, 4, 8, 16, 32)]
            elif running := scans(part.formula, group):
                found += running
            elif any(isinstance(each.value, Reduce) for each in group.stages):
                found += [Columns(4, warps, split) for warps, split in ((16, 8), (16, 16), (16, 32), (8, 16), (8, 64))]
    return tuple(dict.fromkeys(found))
