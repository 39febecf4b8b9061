"""The grid, the block and the dynamic shared memory of a launch that the text does not say in symbols.

The block is then the one that the facts found or assume, the grid as large as the kernel's guards need it.
"""

from __future__ import annotations

from warpwright.facts.model import MAX_THREADS_PER_BLOCK, Basis, Dim3, Launch
from warpwright.problems import ranges
from warpwright.problems.expressions import Binary, Expression, Name, Number, show
from warpwright.problems.reach_values import Coverage

Dims = tuple[Expression, Expression, Expression]
_ONE = Number(1)


def found_block(launch: Launch | None) -> tuple[Dim3, bool] | None:
    """The block of the facts' launch, and whether the text says it; None for an impossible one."""
    if launch is None or launch.threads is None or not 0 < launch.threads <= MAX_THREADS_PER_BLOCK:
        return None
    x, y, z = (part or 1 for part in launch.block)
    return (x, y, z), launch.basis is Basis.EXACT


def found_grid(launch: Launch | None) -> Dims | None:
    """The grid of the facts' launch where the text says all of it."""
    if launch is None or launch.basis is not Basis.EXACT or None in launch.grid:
        return None
    x, y, z = (Number(part or 1) for part in launch.grid)
    return x, y, z


def covering_grid(coverage: Coverage, block: Dims, kernel_text: str) -> tuple[Dims, tuple[str, ...]]:
    """As many blocks as the kernel's guards ask for, and the symbols that stand for the others.

    An axis that the kernel does not look at has one block. One without a guard has as many as the symbol `blocks`,
    `blocks_y` or `blocks_z` says.
    """
    grid: list[Expression] = []
    symbols: list[str] = []
    for place, axis in enumerate("xyz"):
        threads, blocks = coverage.threads.get(axis), coverage.blocks.get(axis)
        if threads is not None:
            size = block[place]
            whole = Binary("/", Binary("-", Binary("+", threads, size), _ONE), size)
            grid.append(ranges.normal(whole) if show(size) != "1" else ranges.normal(threads))
        elif blocks is not None:
            grid.append(ranges.normal(blocks))
        elif f"blockIdx.{axis}" in kernel_text or f"gridDim.{axis}" in kernel_text:
            name = "blocks" if axis == "x" else f"blocks_{axis}"
            symbols.append(name)
            grid.append(Name(name))
        else:
            grid.append(_ONE)
    return (grid[0], grid[1], grid[2]), tuple(symbols)
