"""`warpwright profile` on the CPU: one launch of a kernel at one shape, counted line by line."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from warpwright.emulator.ready import ARCH, machine_code_of, make_ready
from warpwright.facts.model import Kernel
from warpwright.facts.model import Program as Unit
from warpwright.facts.profile import Backend, Profile, ProfiledLaunch, text_hash
from warpwright.missing import Missing
from warpwright.problems.expressions import ExpressionError
from warpwright.problems.model import Problem
from warpwright.problems.shapes import Shape
from warpwright.progress import IsCancelled, Progress, never_cancelled, silent
from warpwright.toolchain.names import demangle

SEED = 20
SHOWN_PRINTS = 10


def own_files(unit: Unit) -> dict[str, str]:
    """The paths of a unit's files as its sources have them, by the absolute paths that compilers write."""
    paths = (unit.source.path, *unit.sources)
    return {spelt: path for path in paths for spelt in (str(Path(path).resolve()), str(Path(path).absolute()))}


TAKEN_LAUNCH = (
    "the launch and the sizes were taken from the kernel's text, and a fault may be of another launch than yours: "
    "say yours in a directive above the kernel, such as `// warpwright: launch grid((n + 255) / 256) block(256)`"
)


def profile_kernel(
    unit: Unit,
    kernel: Kernel,
    problem: Problem,
    shape: Shape,
    *,
    arch: str = ARCH,
    flags: tuple[str, ...] = (),
    progress: Progress = silent,
    is_cancelled: IsCancelled = never_cancelled,
) -> Profile | Missing:
    """The profile of one launch, or why there is none. Blocks for seconds. Raises CancelledError."""
    progress("Compiling", None)
    with ThreadPoolExecutor(1) as beside:
        machine = beside.submit(machine_code_of, unit, arch=arch, flags=flags, is_cancelled=is_cancelled)
        program = make_ready(unit, kernel, problem, arch=arch, flags=flags, is_cancelled=is_cancelled)
    if isinstance(program, Missing):
        return program
    code, notes = machine.result(), problem.notes
    if isinstance(code, Missing):
        notes += (f"accesses are counted as the PTX has them, and not as ptxas merged them: {code.reason}",)
    from warpwright.emulator.launch import Launch, LaunchError, run
    from warpwright.emulator.lines import lines_of
    from warpwright.emulator.program import as_machine_code
    from warpwright.emulator.report import faults_of
    from warpwright.emulator.values import UnknownTypeError, arguments_of, variables_of

    if not isinstance(code, Missing):
        program = as_machine_code(program, code.get(program.kernel, ()))
    try:
        case = problem.case(shape)
        arguments = arguments_of(problem, case, seed=SEED)
        launch = Launch(case.grid, case.block, case.dynamic_shared_bytes)
        variables = variables_of(problem, case, seed=SEED)
        result = run(program, launch, arguments, variables=variables, progress=progress, is_cancelled=is_cancelled)
    except (ExpressionError, LaunchError, UnknownTypeError) as error:
        reason = f"{kernel.name} cannot be launched: {error}."
        return Missing("launch", reason, "Say how to run it: `warpwright problem` writes what is known.")
    own = own_files(unit)
    faults = faults_of(program, result, own)
    if faults and problem.launch_origin == "inferred":
        notes += (TAKEN_LAUNCH,)
    return Profile(
        kernel.name,
        ProfiledLaunch(case.grid, case.block, case.dynamic_shared_bytes, dict(shape), problem.launch_origin),
        Backend.EMULATOR,
        {path: text_hash(source.data) for path, source in unit.sources.items()},
        lines_of(program, result, own),
        faults,
        notes=(*notes, *_printed(result.printed)),
        function=demangle(program.kernel),
        flags=(f"-arch={arch}", *flags),
    )


def _printed(texts: Sequence[str]) -> tuple[str, ...]:
    """What the kernel printed, as notes: the first calls of `printf`, and how many more there were."""
    shown = tuple(f"printf: {text.rstrip()}" for text in texts[:SHOWN_PRINTS])
    more = len(texts) - len(shown)
    return (*shown, f"printf: and {more:,} more") if more else shown
