"""How long a written formula should take at some sizes: what the emulator counts of some blocks of each launch, over
the rates of a GPU (`verify.cost`)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from warpwright.emulator.formulas import Compiled, counted
from warpwright.emulator.launch import LaunchError
from warpwright.facts.machines import machine_of
from warpwright.facts.occupancy import occupancy
from warpwright.facts.resources import KernelResources
from warpwright.missing import Missing
from warpwright.progress import IsCancelled
from warpwright.toolchain.names import instance_of
from warpwright.verify.cost import Launched, microseconds
from warpwright.writer.code import Code


def predicted_us(
    code: Code,
    made: Compiled,
    resources: Mapping[str, KernelResources],
    inputs: tuple[Mapping[str, Any], Mapping[str, float], Mapping[str, int]],
    arch: str,
    is_cancelled: IsCancelled,
) -> float | Missing:
    """Microseconds of all launches, one after the other, on the GPU that stands for `arch`. `inputs` are arrays as they
    lie in memory, numbers and sizes, by the code's own names. Raises CancelledError."""
    arrays, scalars, sizes = inputs
    try:
        found = counted(code, made, arrays, scalars, sizes, is_cancelled)
    except LaunchError as error:
        return Missing("launch", f"A launch cannot be made: {error}", "")
    if isinstance(found, Missing):
        return found
    machine = machine_of(arch)
    array_bytes = sum(each.nbytes for each in arrays.values())
    total = 0.0
    for launch, grid, work in found:
        taken = instance_of(resources, launch.kernel, launch.arguments)
        if taken is None:
            return Missing("instance", f"{launch.kernel} is not among what was compiled.", "")
        shared = taken.shared_bytes + launch.shared_at(sizes)
        fits = occupancy(arch, taken.registers, shared, math.prod(launch.block), taken.barriers)
        total += microseconds(Launched(work, math.prod(grid), fits.blocks, shared, array_bytes), machine)
    return total
