"""`warpwright profile` on the CPU: one launch of a kernel at one shape, counted line by line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from warpwright.emulator.ready import ARCH, machine_code_of, make_ready
from warpwright.facts.model import Kernel
from warpwright.facts.model import Program as Unit
from warpwright.facts.profile import Backend, Fault, FaultKind, Profile, ProfiledLaunch, text_hash
from warpwright.missing import Missing
from warpwright.problems.expressions import ExpressionError
from warpwright.problems.guesses import About
from warpwright.problems.model import Case, Problem
from warpwright.problems.shapes import Shape, alike_shape
from warpwright.progress import IsCancelled, Progress, never_cancelled, silent
from warpwright.toolchain.compile import compile_cubin
from warpwright.toolchain.names import demangle

if TYPE_CHECKING:
    from warpwright.emulator.launch import Run
    from warpwright.emulator.program import Program

SEED = 20
SHOWN_PRINTS = 10


def own_files(unit: Unit) -> dict[str, str]:
    """The paths of a unit's files as its sources have them, by the absolute paths that compilers write."""
    paths = (unit.source.path, *unit.sources)
    return {spelt: path for path in paths for spelt in (str(Path(path).resolve()), str(Path(path).absolute()))}


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
    # The PTX on the way to machine code is kept, and found by `make_ready`
    compiled = compile_cubin(unit.source, arch=arch, flags=flags, is_cancelled=is_cancelled)
    with ThreadPoolExecutor(1) as beside:
        machine = beside.submit(machine_code_of, compiled, is_cancelled)
        program = make_ready(unit, kernel, problem, arch=arch, flags=flags, is_cancelled=is_cancelled)
    if isinstance(program, Missing):
        return program
    code, notes = machine.result(), problem.notes
    if isinstance(code, Missing):
        notes += (f"accesses are counted as the PTX has them, and not as ptxas merged them: {code.reason}",)
    from warpwright.emulator.launch import LaunchError
    from warpwright.emulator.lines import lines_of
    from warpwright.emulator.program import as_machine_code
    from warpwright.emulator.values import UnknownTypeError

    if not isinstance(code, Missing):
        program = as_machine_code(program, code.get(program.kernel, ()))
    try:
        case = problem.case(shape)
        result = _run(program, problem, case, progress, is_cancelled)
    except (ExpressionError, LaunchError, UnknownTypeError) as error:
        reason = f"{kernel.name} cannot be launched: {error}."
        return Missing("launch", reason, "Say how to run it: `warpwright problem` writes what is known.")
    own = own_files(unit)
    faults = _judged(program, problem, case, result, own, progress, is_cancelled)
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


def _run(program: Program, problem: Problem, case: Case, progress: Progress, is_cancelled: IsCancelled) -> Run:
    from warpwright.emulator.launch import Launch, run
    from warpwright.emulator.values import arguments_of, variables_of

    arguments, variables = arguments_of(problem, case, seed=SEED), variables_of(problem, case, seed=SEED)
    launch = Launch(case.grid, case.block, case.dynamic_shared_bytes)
    return run(program, launch, arguments, variables=variables, progress=progress, is_cancelled=is_cancelled)


def _judged(
    program: Program,
    problem: Problem,
    case: Case,
    result: Run,
    own: Mapping[str, str],
    progress: Progress,
    is_cancelled: IsCancelled,
) -> tuple[Fault, ...]:
    """The faults of a run, each with what was guessed that it may come of.

    Those that come of the sizes alone, which are not the program's, are looked for at sizes that divide as those do:
    what is found there too is the kernel's own.
    """
    from warpwright.emulator.launch import LaunchError
    from warpwright.emulator.report import faults_of

    guesses = {fault: problem.guesses_behind(fault, case.shape) for fault in faults_of(program, result, own)}
    if any(fault.keeps_lock for fault in result.faults):  # whatever the values are, it is given back by nobody
        guesses = {
            fault: tuple(g for g in behind if fault.kind is not FaultKind.DEADLOCK or g.about is not About.VALUES)
            for fault, behind in guesses.items()
        }
    inside = tuple(fault for fault in result.faults if fault.space in ("local", "shared"))
    for fault in faults_of(program, replace(result, faults=inside), own):  # whatever the arrays are that it is handed
        guesses[fault] = tuple(g for g in guesses.get(fault, ()) if g.about is not About.EXTENT)
    again: set[tuple[object, ...]] = set()
    shape = alike_shape(problem.symbols, problem.own_shape, problem.size)
    if shape is not None and any(each and all(g.about is About.SIZE for g in each) for each in guesses.values()):
        with suppress(ExpressionError, LaunchError):
            alike = _run(program, problem, problem.case(shape), progress, is_cancelled)
            again = {(fault.kind, fault.file, fault.line) for fault in faults_of(program, alike, own)}
    found = []
    for fault, behind in guesses.items():
        is_again = (fault.kind, fault.file, fault.line) in again
        left = (str(guess) for guess in behind if guess.about is not About.SIZE or not is_again)
        found.append(replace(fault, guessed=tuple(left)))
    return tuple(found)


def _printed(texts: Sequence[str]) -> tuple[str, ...]:
    """What the kernel printed, as notes: the first calls of `printf`, and how many more there were."""
    shown = tuple(f"printf: {text.rstrip()}" for text in texts[:SHOWN_PRINTS])
    more = len(texts) - len(shown)
    return (*shown, f"printf: and {more:,} more") if more else shown
