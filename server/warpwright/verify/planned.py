"""How both kernels are to be run, or why that is not known."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from warpwright.problems.launches import project_problem
from warpwright.problems.model import Problem
from warpwright.problems.renaming import in_names_of, renamed_parameters
from warpwright.toolchain.names import instance_of
from warpwright.verify.added_sizes import with_added_sizes
from warpwright.verify.lower_rungs import Lower
from warpwright.verify.plan import PlanError, Side, Sizes, make_request
from warpwright.verify.sequence import fused_sides, replaced_launches
from warpwright.verify.thresholds import with_thresholds
from warpwright.verify.variables import with_results


@dataclass(frozen=True, slots=True)
class Plan:
    """How both kernels are run: the harness's request, and the problems of the original and the candidate; `unfilled`
    are the arrays that the candidate's host code no longer fills."""

    request: Mapping[str, Any]
    problems: tuple[Problem, Problem]
    arch: str
    sizes: Sizes = "all"
    unfilled: tuple[str, ...] = ()

    @property
    def hashes(self) -> dict[str, Any]:
        """Of the two cubins: of what was compiled, compared and timed, which is refused where it is not one."""
        sides = {"original": "baseline", "candidate": "candidate"}
        return {"sha256": {name: self.request[side]["sha256"] for name, side in sides.items()}}


def planned(lower: Lower, goal: str) -> Plan | PlanError:
    """How both are to be run, or why that is not known."""
    name, (old, new), (before, after) = lower.name, lower.units, lower.compiled
    if (fused := replaced_launches(old, new)) is not None:
        both = fused_sides(fused, (old, new), (before, after))
        return both if isinstance(both, PlanError) else _requested(*both, goal, after.arch, timed=goal != "fix")
    problems: list[Problem] = []
    for program in (old, new):
        first, described = old.kernel(name), program.kernel(name)
        renamed = renamed_parameters(first, described) if first is not None and described is not None else {}
        problem = project_problem(program, described, renamed, first) if described is not None else None
        if not isinstance(problem, Problem):
            return PlanError(str(problem) if problem is not None else f"{name} is not defined on both sides.")
        problems.append(problem)
    return plan_of(lower, problems[0], problems[1], goal, timed=goal != "fix", sizes="all")


def plan_of(
    lower: Lower, original: Problem, candidate: Problem, goal: str, *, timed: bool, sizes: Sizes
) -> Plan | PlanError:
    """How the kernel of both texts is run by one launch, or why that is not known."""
    name, (old, new), (before, after) = lower.name, lower.units, lower.compiled
    sides: list[Side] = []
    for problem, compiled in ((original, before), (candidate, after)):
        resources = instance_of(compiled.kernels, name, problem.instance)
        if resources is None or compiled.cubin is None:
            return PlanError(f"which compiled instance of {name} is launched is not known.")
        named = in_names_of(sides[0].problem, problem) if sides else problem
        sides.append(Side(compiled.cubin, resources, named))
    own = with_added_sizes(sides[0].problem, sides[1].problem)
    steps = (sides[0].resources,) * len(own.steps)
    own = with_results(with_thresholds(own, sides[1].problem), sides[1].problem, (old, new))
    sides[0] = replace(sides[0], problem=own, steps=steps)
    return _requested(sides[0], sides[1], goal, after.arch, timed=timed, sizes=sizes)


def _requested(
    original: Side, candidate: Side, goal: str, arch: str, *, timed: bool, sizes: Sizes = "all"
) -> Plan | PlanError:
    has_reference = original.problem.reference is not None
    if goal == "reference" and not has_reference:
        return PlanError(f"{original.problem.kernel} has no reference in torch (`reference` in sample.toml)")
    judge = "reference" if goal in ("fix", "reference") and has_reference else "baseline"
    try:
        seed = secrets.randbits(31)
        request = make_request(original, candidate, seed=seed, judge=judge, timed=timed, sizes=sizes)
        return Plan(request, (original.problem, candidate.problem), arch, sizes)
    except PlanError as error:
        return error
