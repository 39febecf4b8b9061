"""A request to the harness: both cubins, the arguments, and every shape with all its numbers."""

from __future__ import annotations

import hashlib
import os
import random
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import gcd, prod
from pathlib import Path
from typing import Any, Literal

from warpwright.facts.occupancy import ARCHITECTURES, MAX_THREADS_PER_BLOCK, architecture_number, occupancy
from warpwright.facts.resources import KernelResources
from warpwright.problems.expressions import ExpressionError
from warpwright.problems.model import Argument, Array, Case, Pointer, Problem, Struct
from warpwright.problems.shapes import Shape
from warpwright.problems.types import element_type
from warpwright.verify.thresholds import (
    THRESHOLD,
    has_threshold_values,
    scale_values,
    threshold_shapes,
    threshold_values,
)
from warpwright.verify.tried import (
    EDGE_DISTRIBUTIONS,
    EVERY_DISTRIBUTION,
    REMAINDER_DISTRIBUTIONS,
    kinds_of,
    remainder_shapes,
)

SHARED_UNASKED = 48 << 10
"""Bytes of shared memory, static and dynamic, that a launch may have without being asked for."""

SECONDS_PER_SHAPE = 0.4
"""Of timing, where the interval is not narrow before that; eight rounds are always done."""


Trial = tuple[tuple[Case, Case], tuple[str, ...]]
"""One shape for both kernels, and the kinds of values with which it is tried."""


class PlanError(Exception):
    """The two kernels cannot be run side by side; the message is one sentence."""


class CandidateLaunchError(PlanError):
    """The candidate's own launch is impossible where the original's is not."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two kernels: its cubin, its name in it, and how its own text launches it. `steps` are those of its
    problem as they are in the cubin."""

    cubin: Path
    resources: KernelResources
    problem: Problem
    steps: tuple[KernelResources, ...] = ()


Sizes = Literal["all", "few"]
"""At which a launch is run: all that may show something, or those that the problem names and a drawn one."""


def make_request(
    original: Side, candidate: Side, *, seed: int, judge: str, timed: bool, sizes: Sizes = "all"
) -> dict[str, Any]:
    """What the harness is sent. Arguments and shapes are the original's; each side has its own grid and block.

    The first case is the user's own launch, where it is known. Raises PlanError.
    """
    problem = original.problem
    names = [a.name for a in problem.arguments]
    if [a.name for a in candidate.problem.arguments] != names:
        raise PlanError("the candidate's kernel takes other parameters than the original's")
    own = [problem.own_shape] if problem.own_shape is not None else []
    times = [*own, *(s for s in problem.time if s not in own)] if timed else []
    hidden = hidden_shape(problem, seed)
    empty, no_empty = empty_shape(problem)
    shapes = [*times[:1], *(s for s in problem.check if s not in times[:1])]
    around = threshold_shapes(problem)
    shapes += [s for s in (hidden, empty, *around, *times) if s is not None and s not in shapes]
    pairs = list(paired_cases(problem, candidate.problem, shapes))
    for case, other in pairs:
        if (reason := _refusal(candidate.resources, other)) and not _refusal(original.resources, case):
            raise CandidateLaunchError(f"the candidate's launch is impossible: {reason}")
    cases = [
        _case(case, other, whole=number == 0 or case.shape == hidden, timed=case.shape in times)
        for number, (case, other) in enumerate(pairs)
    ]
    if pairs and judge == "baseline" and has_threshold_values(problem):  # by itself: the original may be at fault there
        cases.append({**_case(*pairs[0], whole=True, timed=False), "distributions": (THRESHOLD,)})
    if judge == "baseline" and sizes == "all":
        more = more_cases(problem, candidate.problem, seed, shapes)
        cases += [
            {**_case(*pair, whole=True, timed=False), "distributions": (each,), "more": True}
            for pair, values in more
            for each in values
        ]
    if not cases:
        raise PlanError("the original cannot be launched at the sizes that are known")
    return {
        "baseline": _side(original),
        "candidate": _side(candidate),
        "arguments": [_argument(a) for a in problem.arguments],
        "variables": [_argument(a) for a in problem.globals],
        "results": [_argument(a) for a in problem.results],
        "unread": sorted(problem.unread),
        "prints": problem.prints,
        "thresholds": threshold_values(problem),
        "scales": scale_values(problem),
        "guarded": problem.guarded,
        "cases": cases,
        "notes": [*problem.notes, *([no_empty] if no_empty else []), *_refused(original, [case for case, _ in pairs])],
        "seed": seed,
        "judge": judge,
        "sized_by_candidate": bool(problem.steps),
        "reference": str(problem.reference) if problem.reference else None,
        "seconds_per_shape": SECONDS_PER_SHAPE,
        "rates": {},
        "lock": gpu_lock(),
    }


def _refusal(resources: KernelResources, case: Case) -> str:
    """Why CUDA refuses the launch: registers that a multiprocessor has not, or shared memory that a block may not have
    or that the host code does not ask for; "" where it does not."""
    threads = prod(case.block)
    try:
        limits = occupancy(resources.arch, resources.registers, 0, threads).limits
        most = ARCHITECTURES[architecture_number(resources.arch)].shared_bytes_per_block
    except ValueError:  # no known architecture
        return ""
    if threads <= MAX_THREADS_PER_BLOCK and limits.registers == 0:
        return f"{threads:,} threads of {resources.registers} registers each are more than a multiprocessor has"
    shared = resources.shared_bytes + case.dynamic_shared_bytes
    if case.dynamic_shared_bytes and shared > most:
        return f"{shared:,} bytes of shared memory are more than the {most:,} of a block on {resources.arch}"
    return _not_asked_for(resources, case)


def _not_asked_for(resources: KernelResources, case: Case) -> str:
    """Why the shared memory of a launch is more than it gets with what its host code asks for; "" where it is not."""
    asked, shared = case.shared_opt_in, resources.shared_bytes + case.dynamic_shared_bytes
    if asked is None or not case.dynamic_shared_bytes or shared <= max(SHARED_UNASKED, resources.shared_bytes + asked):
        return ""
    most = f"only {asked:,} of dynamic" if asked else f"no more than the {SHARED_UNASKED:,} that every launch may have"
    return (
        f"it takes {shared:,} bytes of shared memory, and the host code asks for {most} "
        "(cudaFuncSetAttribute with cudaFuncAttributeMaxDynamicSharedMemorySize)"
    )


def _refused(original: Side, cases: Iterable[Case]) -> Iterator[str]:
    """A note where CUDA would refuse the original's own launch for the shared memory that nothing asks for. Both sides
    are run nevertheless, with as much as their launches take."""
    reasons = (reason for case in cases if (reason := _not_asked_for(original.resources, case)))
    if reason := next(reasons, ""):
        yield f"CUDA refuses the original's own launch: {reason}; it was run as if the host code asked for them"


def gpu_lock() -> str:
    """The file that everyone on this machine locks who uses the same GPU (`warpwright_harness/gpu_lock.py`).

    That is the first of CUDA_VISIBLE_DEVICES, as it is written there: who names one GPU once by its number and once by
    its UUID has two locks for it.
    """
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").partition(",")[0].strip()
    return str(Path(tempfile.gettempdir()) / f"warpwright-gpu-{re.sub(r'[^A-Za-z0-9-]', '_', first) or '0'}.lock")


def paired_cases(original: Problem, candidate: Problem, shapes: Iterable[Shape]) -> Iterator[tuple[Case, Case]]:
    """Both kernels at each shape at which the original can be launched. Raises CandidateLaunchError."""
    for shape in shapes:
        try:
            case = original.case(shape)
        except ExpressionError:
            continue
        try:
            yield case, candidate.case(shape)
        except ExpressionError as error:
            raise CandidateLaunchError(f"the candidate's launch is impossible: {error}") from None


def more_cases(original: Problem, candidate: Problem, seed: int, shapes: Sequence[Shape]) -> Iterator[Trial]:
    """What is tried beside `shapes`, each with its kinds of values: sizes of every remainder, and further kinds at a
    size that shows them. Raises CandidateLaunchError."""
    sized = {_size(original, shape): shape for shape in shapes}
    fitting = [size for size in sized if 0 < size <= KINDS_BYTES]
    shown = max(fitting) if fitting else min(filter(None, sized), default=None)
    if shown is not None:
        for pair in paired_cases(original, candidate, [sized[shown]]):
            yield pair, kinds_of(original)
    for pair in paired_cases(original, candidate, remainder_shapes(original, seed)):
        yield pair, REMAINDER_DISTRIBUTIONS


def _size(problem: Problem, shape: Shape) -> int:
    """The bytes of the arrays, or eight for each thread where these are more; 0 where it cannot be launched."""
    threads, _, taken = problem.size(shape) or (0, 0, 0)
    return max(8 * threads, taken) if taken else 0


def make_launch(side: Side, shape: Shape) -> dict[str, Any]:
    """What the harness is sent to launch one kernel once. Raises ExpressionError and PlanError."""
    case = side.problem.case(shape)
    return {
        "baseline": _side(side),
        "candidate": _side(side),
        "arguments": [_argument(a) for a in side.problem.arguments],
        "variables": [_argument(a) for a in side.problem.globals],
        "thresholds": (),
        "scales": (),
        "guarded": (),
        "cases": [_case(case, case, whole=True, timed=False)],
        "seed": 0,
        "lock": gpu_lock(),
    }


def make_timing(problem: Problem, shapes: Iterable[Shape]) -> dict[str, Any]:
    """What the harness is sent to time a kernel's reference in torch alone. Raises ExpressionError and PlanError."""
    cases = [problem.case(shape) for shape in shapes]
    return {
        "measure": "peers",
        "arguments": [_argument(a) for a in problem.arguments],
        "variables": [_argument(a) for a in problem.globals],
        "thresholds": (),
        "scales": (),
        "guarded": (),
        "cases": [_case(case, case, whole=False, timed=True) for case in cases],
        "seed": 0,
        "reference": str(problem.reference),
        "lock": gpu_lock(),
    }


KINDS_BYTES = 128 << 10
"""Of the arrays at the size at which further kinds of values are tried: enough to show, little to pay."""

HIDDEN_BYTES = 16 << 20
_HIDDEN_SIZES = (3000, 120, 40)
"""The largest that is drawn for a kernel of one, of two, and of more sizes."""


def hidden_shape(problem: Problem, seed: int) -> Shape | None:
    """Sizes that nobody can know beforehand, drawn with the judge's seed; None where the known ones leave no choice.

    What all known sizes of a symbol have in common holds for the drawn ones: a size that is always the same stays, one
    that is always a multiple of 16 is one.
    """
    known = [s for s in (*problem.check, problem.own_shape) if s is not None]
    drawn = random.Random(seed)
    for _ in range(20):
        shape: dict[str, int] = {}
        for symbol in problem.symbols:
            sizes = {s[symbol] for s in known}
            step, most = gcd(*sizes), _HIDDEN_SIZES[min(len(problem.symbols), 3) - 1]
            shape[symbol] = step * drawn.randint(1, max(1, most // step)) if len(sizes) > 1 else max(sizes, default=1)
        if shape not in known and 0 < problem.bytes(shape) <= HIDDEN_BYTES:
            return shape
    return None


def empty_shape(problem: Problem) -> tuple[Shape | None, str]:
    """A shape of no elements, or a sentence why there is none; neither where 1 is no size of this kernel.

    All sizes are 0, or the first of them with which the kernel can be launched: CUDA refuses a grid of no blocks.
    """
    ones = next((s for s in problem.check if s and set(s.values()) == {1}), None)
    if ones is None:
        return None, ""
    mixed = next((s for s in problem.check if 1 not in s.values()), ones)
    reason = ""
    for shape in (dict.fromkeys(ones, 0), *({**mixed, symbol: 0} for symbol in ones)):
        try:
            problem.case(shape)
        except ExpressionError as error:
            reason = reason or f"{' = '.join(shape)} = 0 was left out: {error}"
        else:
            return shape, ""
    return None, reason


def _side(side: Side) -> dict[str, Any]:
    """`launches` are the kernels that are started one after the other, and the arguments that each is handed."""
    digest = hashlib.sha256(side.cubin.read_bytes()).hexdigest()
    everything = [a.name for a in side.problem.arguments]
    launches = [
        {"function": resources.mangled_name, "arguments": list(step.arguments)}
        for step, resources in zip(side.problem.steps, side.steps, strict=True)
    ] or [{"function": side.resources.mangled_name, "arguments": everything}]
    return {"cubin": str(side.cubin), "launches": launches, "sha256": digest}


def _argument(argument: Argument) -> dict[str, Any]:
    if isinstance(argument, Struct):
        members = [{"offset": offset, **_argument(member)} for offset, member in argument.members]
        return {"kind": "struct", "name": argument.name, "bytes": argument.bytes, "members": members}
    if isinstance(argument, Array):
        element = element_type(argument.type)
        if element is None:
            raise PlanError(f"`{argument.name}` has the unknown element type `{argument.type}`")
        return {
            "kind": "array",
            "name": argument.name,
            "scalar": element.scalar,
            "components": element.components,
            "role": argument.role,
        }
    if isinstance(argument, Pointer):
        return {"kind": "pointer", "name": argument.name, "array": argument.array}
    return {"kind": "scalar", "name": argument.name, "scalar": argument.type}


def _case(own: Case, other: Case, *, whole: bool, timed: bool) -> dict[str, Any]:
    return {
        "shape": dict(own.shape),
        "counts": dict(own.counts),
        "scalars": dict(own.scalars),
        "limits": dict(own.limits),
        "offsets": dict(own.offsets),
        "baseline": _launch(own),
        "candidate": _launch(other),
        "distributions": EVERY_DISTRIBUTION if whole else EDGE_DISTRIBUTIONS,
        "check": True,
        "time": timed,
    }


def _launch(case: Case) -> Mapping[str, Any]:
    """`repeats` has for each step how often it is launched, and by how many bytes each argument moves on each time."""
    repeats = [[repeat.times, list(repeat.moves)] for repeat in case.repeats]
    grid, block = list(case.grid), list(case.block)
    return {"grid": grid, "block": block, "shared": case.dynamic_shared_bytes, "repeats": repeats}
