"""Formulas on the CPU: what the launch function would launch, one after the other, with the compiler's PTX of the
kernels."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from warpwright.emulator.formula_memory import STORED, to_bits
from warpwright.emulator.launch import (
    MOST_LANE_STEPS,
    Argument,
    ArrayArgument,
    Launch,
    ScalarArgument,
    run,
)  # fmt: skip
from warpwright.emulator.program import Program
from warpwright.emulator.ready import Ptx, translated
from warpwright.emulator.report import faults_of
from warpwright.emulator.work import work_of
from warpwright.facts.profile import Fault, FaultKind
from warpwright.facts.work import Work
from warpwright.formulas.extents import at_sizes
from warpwright.formulas.tree import Expr, Name, Num
from warpwright.formulas.types import TYPES, computed
from warpwright.missing import Missing
from warpwright.progress import IsCancelled, never_cancelled
from warpwright.syntax.encoding import encoded
from warpwright.syntax.source import Source
from warpwright.toolchain.compilation import CompiledPtx, Ending
from warpwright.toolchain.compile import compile_hastily, compile_ptx, compile_rough_ptx
from warpwright.toolchain.names import instance_of
from warpwright.writer.code import Code, taken
from warpwright.writer.code import Launch as Planned
from warpwright.writer.code import Path as Way

HARMLESS = (FaultKind.UNUSED_RESULT, FaultKind.UNINITIALISED_READ)
"""What a result does not depend on, or shows in it: what was never written is no number that a formula gives."""
FILE = "formula.cu"
"""The name that what is compiled has in messages."""
REJECTED = "PTX"
"""What is missing of a text that nvcc takes for no program."""
COUNTED_THREADS = 1024
"""Of a launch whose work is counted: a few blocks, all alike but for those at the end."""
MOST_COUNTED_STEPS = 40_000_000


@dataclass(frozen=True, slots=True)
class Ran:
    """Arrays that the launches left, as they lie in memory, the faults that were found, and the paths that were
    taken."""

    arrays: Mapping[str, Any]
    faults: tuple[Fault, ...] = ()
    paths: tuple[Way, ...] = ()
    lane_steps: int = 0


_ENTRY = re.compile(r"^(?:\.\w+ )*\.entry (\w+)\(.*?^\}$", re.MULTILINE | re.DOTALL)
"""A kernel in nvcc's PTX: its closing brace alone begins a line."""


@dataclass
class Compiled:
    """The PTX of a file of kernels: each kernel's own, what all share, and the mangled names. A kernel is read and
    translated when it is first launched."""

    kernels: Mapping[str, str]
    shared: str
    names: Mapping[str, str]
    programs: dict[str, Program] = field(default_factory=dict)

    def program(self, kernel: str, arguments: Sequence[str]) -> Program | Missing:
        """The program of an instance of a kernel."""
        key = f"{kernel}<{', '.join(arguments)}>"
        if key not in self.programs:
            name = instance_of(self.names, kernel, arguments)
            if name is None:
                return Missing("instance", f"{key} is not among what was compiled.", "")
            made = translated(Ptx(self.shared + self.kernels[name], name, kernel))
            if isinstance(made, Missing):
                return made
            self.programs[key] = made
        return self.programs[key]


def compiled(text: str, arch: str = "sm_90", is_cancelled: IsCancelled = never_cancelled) -> Compiled | Missing:
    """The kernels of a file, as PTX. Blocks for a second where nothing is cached. Raises CancelledError."""
    return _read(compile_ptx(Source(FILE, encoded(text)), arch=arch, is_cancelled=is_cancelled))


def compiled_roughly(text: str, is_cancelled: IsCancelled = never_cancelled) -> Compiled | Missing:
    """As `compiled`, in a fraction of the time, from PTX that is hardly optimised."""
    return _read(compile_rough_ptx(Source(FILE, encoded(text)), is_cancelled=is_cancelled))


def refused(text: str, arch: str, is_cancelled: IsCancelled = never_cancelled) -> Missing | None:
    """What nvcc has against a file of kernels, None where it takes them. Raises CancelledError."""
    found = _read(compile_hastily(Source(FILE, encoded(text)), arch=arch, is_cancelled=is_cancelled))
    return found if isinstance(found, Missing) else None


def _read(made: CompiledPtx) -> Compiled | Missing:
    if made.ok:
        return read_kernels(made)
    # An error at no line is of the machine or of what nvcc was asked for, such as an architecture that it has not.
    is_rejected = made.ending is Ending.ERRORS and any(each.line for each in made.messages if each.severity == "error")
    return Missing(REJECTED if is_rejected else "nvcc", f"The kernels have no PTX: {made.reason}", "")


def read_kernels(made: CompiledPtx) -> Compiled:
    """The kernels of PTX that was made."""
    kernels = {found[1]: found[0] for found in _ENTRY.finditer(made.text)}
    return Compiled(kernels, _ENTRY.sub("", made.text), made.kernels)


def run_code(
    code: Code,
    made: Compiled,
    arrays: Mapping[str, Any],
    scalars: Mapping[str, float],
    sizes: Mapping[str, int],
    *,
    alignment: Mapping[str, int] | None = None,
    most_lane_steps: int = MOST_LANE_STEPS,
) -> Ran | Missing:
    """Carries out the steps of a code. `arrays` hold the caller's arrays as they lie in memory (of types that NumPy
    has not, the bits); `alignment` says at a multiple of how many bytes an array begins, 256 where it says nothing.
    Raises LaunchError."""
    held: dict[str, Any] = {name: np.ascontiguousarray(data).reshape(-1).copy() for name, data in arrays.items()}
    held.update(_workspace(code, sizes))
    own = {str(Path(FILE).absolute()): FILE}
    faults: list[Fault] = []
    paths: list[Way] = []
    spent = 0
    for step in code.steps:
        path = taken(step, sizes, alignment or {})
        if path is None:
            continue
        paths.append(path)
        for launch in path.launches:
            program = made.program(launch.kernel, launch.arguments)
            if isinstance(program, Missing):
                return program
            grid = tuple(at_sizes(each, sizes) for each in launch.grid)
            arguments = _arguments(code, launch, held, scalars, sizes)
            shape = Launch((grid[0], grid[1], grid[2]), launch.block, launch.shared_at(sizes))
            result = run(program, shape, arguments, most_lane_steps=most_lane_steps, with_traffic=False)
            found = faults_of(program, result, own)
            faults += [each for each in found if each.kind not in HARMLESS]
            spent += result.lane_steps
            for name, data in result.outputs.items():
                held[name] = np.asarray(data)
            if not result.is_complete:
                return Ran(held, tuple(faults), tuple(paths), spent)
    return Ran(held, tuple(faults), tuple(paths), spent)


def counted(
    code: Code,
    made: Compiled,
    arrays: Mapping[str, Any],
    scalars: Mapping[str, float],
    sizes: Mapping[str, int],
    is_cancelled: IsCancelled = never_cancelled,
) -> list[tuple[Planned, tuple[int, int, int], Work]] | Missing:
    """What each launch has the machine do, with its grid: some of its blocks are run, and nobody looks at their
    results. Raises LaunchError and CancelledError."""
    held: dict[str, Any] = {**arrays, **_workspace(code, sizes)}
    found: list[tuple[Planned, tuple[int, int, int], Work]] = []
    for step in code.steps:
        path = taken(step, sizes, {})
        for launch in path.launches if path is not None else ():
            program = made.program(launch.kernel, launch.arguments)
            if isinstance(program, Missing):
                return program
            grid = tuple(at_sizes(each, sizes) for each in launch.grid)
            shape = Launch((grid[0], grid[1], grid[2]), launch.block, launch.shared_at(sizes))
            threads = math.prod(launch.block)
            blocks = min(math.prod(grid), max(1, COUNTED_THREADS // threads))
            ran = run(
                program,
                shape,
                _arguments(code, launch, held, scalars, sizes),
                with_reach=True,
                some_blocks=blocks,
                most_lane_steps=MOST_COUNTED_STEPS,
                is_cancelled=is_cancelled,
            )
            if not ran.is_complete:
                return Missing("count", f"{launch.kernel} takes too many steps to be counted.", "")
            found.append((launch, shape.grid, work_of(program, ran, blocks, threads)))
    return found


def _workspace(code: Code, sizes: Mapping[str, int]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in code.temporaries:
        count = math.prod(at_sizes(extent, sizes) for extent in each.extents)
        found[each.name] = np.full(count * np.dtype(STORED[each.type]).itemsize, 0xFF, np.uint8).view(STORED[each.type])
    return found


def _value(node: Expr, sizes: Mapping[str, int]) -> float:
    return node.value if isinstance(node, Num) else at_sizes(node, sizes)


def _arguments(
    code: Code,
    launch: Planned,
    held: Mapping[str, Any],
    scalars: Mapping[str, float],
    sizes: Mapping[str, int],
) -> Sequence[Argument]:
    kernel = code.kernel(launch.kernel)
    found: list[Argument] = []
    for name in kernel.parameters:
        array = launch.arrays.get(name, name)
        if array in held:
            found.append(ArrayArgument(array, held[array]))
        elif name in kernel.passed:
            value, kind = kernel.passed[name]
            number = scalars[value.name] if isinstance(value, Name) and value.name in scalars else _value(value, sizes)
            found.append(ScalarArgument(name, to_bits(np.asarray(number), kind).tobytes()))
        elif name in sizes:
            wide = (launch.index or kernel.size_type) == "long long"
            found.append(ScalarArgument(name, (np.int64 if wide else np.int32)(sizes[name]).tobytes()))
        else:
            own = computed(TYPES[code.formula.scalars[name]]).name
            found.append(ScalarArgument(name, np.asarray(scalars[name]).astype(STORED[own]).tobytes()))
    return found
