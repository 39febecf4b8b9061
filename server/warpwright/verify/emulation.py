"""The emulator in a process of its own, as the harness is: asked, watched, killed. The process is `emulated`.

It gets the compiler's PTX and what is known of the kernels, so that it compiles and reads nothing; no NumPy is here.
"""

from __future__ import annotations

import atexit
import base64
import pickle
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import warpwright
from warpwright.emulator.profile import own_files
from warpwright.emulator.ready import Ptx, compiled_instance
from warpwright.facts.model import Program
from warpwright.missing import Missing
from warpwright.problems.model import Case, Problem
from warpwright.progress import IsCancelled
from warpwright.sandbox.confine import Policy, system_folders
from warpwright.syntax.encoding import decoded
from warpwright.toolchain.rights import Reads
from warpwright.verify.budget import BUDGET, Budget
from warpwright.verify.child import Event, Kind, environment_of, physical_memory
from warpwright.verify.harness import harness_environment, harness_python
from warpwright.verify.plan import Trial
from warpwright.verify.pool import Pool

MOST_MEMORY_BYTES = 12 << 30
STEP_SECONDS = 120.0
"""Between two events lie several launches of a kernel, each of up to some seconds."""

_PASSED_ON = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "VIRTUAL_ENV")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the child is asked: both sides, the original first, at each of the cases with its kinds of values. `own` is
    for `emulator.lines`. A side has the PTX of each of its problem's steps, or of its one kernel."""

    ptx: tuple[tuple[Ptx, ...], tuple[Ptx, ...]]
    problems: tuple[Problem, Problem]
    own: tuple[Mapping[str, str], Mapping[str, str]]
    cases: tuple[tuple[Case, Case], ...]
    distributions: tuple[tuple[str, ...], ...]
    seed: int
    budget: Budget
    reference: tuple[str, str] | None = None
    """A Python with torch and the user's module, where a kernel is compared with that and not with another."""
    unfilled: tuple[str, ...] = ()
    """The arrays that the candidate's host code no longer fills."""


class UnableError(Exception):
    """One of the kernels cannot be emulated; the message is one sentence."""


def compiled_sides(
    units: tuple[Program, Program],
    problems: tuple[Problem, Problem],
    arch: str,
    flags: tuple[str, ...],
    reads: tuple[Reads, Reads],
    stop: IsCancelled,
) -> tuple[tuple[Ptx, ...], tuple[Ptx, ...]] | Missing:
    """The PTX of the original and of the candidate, of each step, or what is missing. Raises CancelledError."""

    def made(unit: Program, problem: Problem, may_read: Reads) -> tuple[Ptx, ...] | Missing:
        steps = [replace(problem, kernel=step.kernel, instance=step.instance) for step in problem.steps] or [problem]
        found: list[Ptx] = []
        for step in steps:
            kernel = unit.kernel(step.kernel)
            assert kernel is not None
            ptx = compiled_instance(unit, kernel, step, arch=arch, flags=flags, is_cancelled=stop, reads=may_read)
            if isinstance(ptx, Missing):
                return ptx
            found.append(ptx)
        return tuple(found)

    with ThreadPoolExecutor(2) as compilers:
        original, candidate = compilers.map(made, units, problems, reads)
    if isinstance(original, Missing):
        return original
    return candidate if isinstance(candidate, Missing) else (original, candidate)


def asked_of(
    units: tuple[Program, Program],
    ptx: tuple[tuple[Ptx, ...], tuple[Ptx, ...]],
    problems: tuple[Problem, Problem],
    cases: Sequence[Trial],
    seed: int,
    reference: Path | None,
    unfilled: tuple[str, ...],
) -> Asked:
    judge = (harness_python(), str(reference)) if reference is not None else None
    pairs, distributions = tuple(pair for pair, _ in cases), tuple(values for _, values in cases)
    own = own_files(units[0]), own_files(units[1])
    return Asked(ptx, problems, own, pairs, distributions, seed, BUDGET, judge, unfilled)


def emulation_kind() -> Kind:
    """The emulator's child reads programs and Python's modules, and writes to its own folder alone."""
    modules = (*sys.path, str(Path(warpwright.__file__).parent.parent))
    folders = [path for path in dict.fromkeys(modules) if path and Path(path).is_absolute()]
    environment = environment_of(_PASSED_ON, (), Path(warpwright.__file__).parent.parent)
    environment |= {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": ":".join(folders)}
    memory = min(MOST_MEMORY_BYTES, physical_memory() or MOST_MEMORY_BYTES)
    policy = Policy(limits={"AS": memory, "FSIZE": 64 << 20}, reads=(*system_folders(), *folders))
    command = (sys.executable, "-P", "-m", "warpwright.verify.emulated")
    return Kind("the emulator", command, environment, policy, step_seconds=STEP_SECONDS)


def reference_kind() -> Kind:
    """The same beside a process with torch: it reads every file, as the user's own reference may, and torch maps more
    memory than it uses."""
    kind = emulation_kind()
    environment = {**kind.environment, **harness_environment(), "PYTHONPATH": kind.environment["PYTHONPATH"]}
    policy = replace(kind.policy, limits={"FSIZE": 64 << 20}, reads=None)
    return replace(kind, environment=environment, policy=policy)


_pool = Pool(emulation_kind)
_reference_pool = Pool(reference_kind)


def run_emulated(asked: Asked, is_cancelled: IsCancelled) -> Iterator[Event]:
    """The events of comparing both sides, as the harness gives them.

    Raises UnableError, ChildEndedError, CancelledError, and OSError where the process cannot be started.
    """
    if sys.platform == "win32":
        raise UnableError("Kernels are not run on Windows, nor emulated; use WSL 2, where they are.")
    request: Mapping[str, Any] = {"asked": decoded(base64.b64encode(pickle.dumps(asked)))}
    pool = _pool if asked.reference is None else _reference_pool
    for event in pool.run(request, is_cancelled):
        if event["event"] == "unable":
            raise UnableError(event["reason"])
        yield event


def prepare() -> None:
    """Have the process ready, or getting ready; returns at once. On Windows there is none."""
    if sys.platform != "win32":
        _pool.prepare()


@atexit.register
def close_idle() -> None:
    """End the warm processes; the next comparison starts a new one."""
    _pool.close()
    _reference_pool.close()
