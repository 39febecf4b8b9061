"""A request to the harness: both cubins, the arguments, and every shape with all its numbers."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpwright.facts.resources import KernelResources
from warpwright.problems.expressions import ExpressionError
from warpwright.problems.model import Array, Case, Problem, Scalar, Struct
from warpwright.problems.shapes import Shape
from warpwright.problems.types import element_type

EVERY_DISTRIBUTION = ("normal", "integers", "large", "zeros", "special")
EDGE_DISTRIBUTIONS = ("normal", "integers")
SECONDS_PER_SHAPE = 3.0


class PlanError(Exception):
    """The two kernels cannot be run side by side; the message is one sentence."""


class CandidateLaunchError(PlanError):
    """The candidate's own launch is impossible where the original's is not."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two kernels: its cubin, its name in it, and how its own text launches it."""

    cubin: Path
    resources: KernelResources
    problem: Problem


def make_request(original: Side, candidate: Side, *, seed: int, judge: str, timed: bool) -> dict[str, Any]:
    """What the harness is sent. Arguments and shapes are the original's; each side has its own grid and block.

    The first case is the user's own launch, where it is known. Raises PlanError.
    """
    problem = original.problem
    names = [a.name for a in problem.arguments]
    if [a.name for a in candidate.problem.arguments] != names:
        raise PlanError("the candidate's kernel takes other parameters than the original's")
    own = [problem.own_shape] if problem.own_shape is not None else []
    times = [*own, *(s for s in problem.time if s not in own)] if timed else []
    shapes = [*times[:1], *(s for s in problem.check if s not in times[:1])]
    shapes += [s for s in times if s not in shapes]
    cases = [
        _case(case, other, first=number == 0, timed=case.shape in times)
        for number, (case, other) in enumerate(paired_cases(problem, candidate.problem, shapes))
    ]
    if not cases:
        raise PlanError("the original cannot be launched at the sizes that are known")
    return {
        "baseline": _side(original),
        "candidate": _side(candidate),
        "arguments": [_argument(a) for a in problem.arguments],
        "cases": cases,
        "notes": [
            *problem.notes,
            *(f"the variable {array.name} of the file was left zero" for array in problem.globals),
        ],
        "seed": seed,
        "judge": judge,
        "reference": str(problem.reference) if problem.reference else None,
        "seconds_per_shape": SECONDS_PER_SHAPE,
        "lock": str(Path(tempfile.gettempdir()) / "warpwright-gpu.lock"),
    }


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


def make_launch(side: Side, shape: Shape) -> dict[str, Any]:
    """What the harness is sent to launch one kernel once. Raises ExpressionError and PlanError."""
    case = side.problem.case(shape)
    return {
        "baseline": _side(side),
        "candidate": _side(side),
        "arguments": [_argument(a) for a in side.problem.arguments],
        "cases": [_case(case, case, first=True, timed=False)],
        "seed": 0,
    }


def _side(side: Side) -> dict[str, str]:
    return {"cubin": str(side.cubin), "function": side.resources.mangled_name}


def _argument(argument: Array | Scalar | Struct) -> dict[str, Any]:
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
    return {"kind": "scalar", "name": argument.name, "scalar": argument.type}


def _case(own: Case, other: Case, *, first: bool, timed: bool) -> dict[str, Any]:
    return {
        "shape": dict(own.shape),
        "counts": dict(own.counts),
        "scalars": dict(own.scalars),
        "limits": dict(own.limits),
        "baseline": _launch(own),
        "candidate": _launch(other),
        "distributions": EVERY_DISTRIBUTION if first else EDGE_DISTRIBUTIONS,
        "check": True,
        "time": timed,
    }


def _launch(case: Case) -> Mapping[str, Any]:
    return {"grid": list(case.grid), "block": list(case.block), "shared": case.dynamic_shared_bytes}
