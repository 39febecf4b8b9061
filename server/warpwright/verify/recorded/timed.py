"""A changed place of host code on a GPU: the sizes of the arrays that it hands its kernels, and what both sides take.

They are read as for the kernels alone: a variable that a launch hands to a parameter is what that parameter's kernel is
run with. How often the loop runs is assumed where nothing says it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tree_sitter import Node

from warpwright.facts.model import Program
from warpwright.problems.expressions import ExpressionError
from warpwright.problems.infer import find_problem
from warpwright.problems.model import Array, Case, Problem, Scalar
from warpwright.problems.types import element_type
from warpwright.progress import IsCancelled, Progress
from warpwright.rewrites._code import squeezed
from warpwright.syntax.encoding import encoded
from warpwright.syntax.names import unqualified
from warpwright.syntax.nodes import descendants, launch_configuration, uncommented
from warpwright.syntax.source import Source
from warpwright.verify.child import ChildEndedError, Event
from warpwright.verify.harness import run_request
from warpwright.verify.host_change import HostChange, Variable
from warpwright.verify.plan import gpu_lock
from warpwright.verify.report import Speed, Status
from warpwright.verify.run import Observed

ITERATIONS = 1000
"""Of a loop whose count nothing says."""
_PARTS = ("grid", "block")


class UntimableError(Exception):
    """What the place is to be run with is not known; the message is one sentence without a full stop."""


def with_times(
    observed: Observed,
    change: HostChange,
    program: Program,
    libraries: tuple[Path, Path],
    progress: Progress,
    is_cancelled: IsCancelled,
) -> Observed:
    """What was recorded, with what a GPU says of the same: a note where it cannot be run there. Raises
    CancelledError."""
    try:
        variables = known_variables(change, program)
        is_assumed = _has_assumed_sizes(change, program)
    except UntimableError as error:
        return replace(observed, notes=[*observed.notes, f"the host code was not timed: {error}"])
    request = {
        "measure": "host",
        "reference": None,
        "libraries": [str(each) for each in libraries],
        "variables": variables,
        "seed": secrets.randbits(31),
        "lock": gpu_lock(),
    }
    progress("Timing the host code of both", 0.8)
    try:
        for event in run_request(request, is_cancelled):
            if event["event"] == "host":
                judged = _judged(observed, event, change, variables)
                small = "the sizes of the arrays are assumed for the times, and small: a graph gains by short kernels"
                return replace(judged, notes=[*judged.notes, small]) if is_assumed and judged.speed else judged
            if event["event"] in ("error", "fault", "refused"):
                said = event.get("text") or event.get("reason")
                return replace(observed, notes=[*observed.notes, f"the host code was not timed: {said}"])
    except (ChildEndedError, OSError) as error:
        return replace(observed, notes=[*observed.notes, f"the host code was not timed: {error}"])
    return observed


def known_variables(change: HostChange, program: Program) -> list[dict[str, Any]]:
    """Each variable with what it is to hold: arrays with their elements, numbers, grids. Raises UntimableError."""
    known: dict[str, dict[str, Any]] = {}
    for name, found in _known(change, program):
        if (before := known.setdefault(name, found)) == found:
            continue
        if "count" not in found or found["scalar"] != before.get("scalar"):
            raise UntimableError(f"two kernels are handed `{name}` and take it for different things")
        count, limit = max(found["count"], before["count"]), min(found["limit"], before["limit"])
        known[name] = {**found, "count": count, "limit": limit}
    held = [{"name": v.name, "kind": v.kind, "size": v.size, **_value(change, v, known)} for v in change.variables]
    largest: dict[str, int] = {}  # what changes places has one type, and has to be as large
    for each in held:
        if "count" in each:
            largest[each["scalar"]] = max(largest.get(each["scalar"], 0), each["count"])
    return [{**each, "count": largest[each["scalar"]]} if "count" in each else each for each in held]


def _value(change: HostChange, variable: Variable, known: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    if variable.name in known:
        found = known[variable.name]
        size = found.get("value")
        if isinstance(size, list) and variable.kind in ("int", "uint") and size[1:] == [1, 1]:
            return {"value": size[0]}
        if ("count" in found, isinstance(size, list)) == (variable.kind == "pointer", variable.kind == "dim3"):
            return found
    if variable.kind == "cudaStream_t":
        return {"value": 0}
    if variable.kind in ("int", "uint") and variable.name in change.bounds:
        return {"value": ITERATIONS if variable.name == change.bounds[0] else 1}
    if variable.kind in ("int", "uint") and variable.name in change.counters:
        return {"value": 0}
    raise UntimableError(f"what `{variable.name}` holds is not known")


def _known(change: HostChange, program: Program) -> Iterator[tuple[str, dict[str, Any]]]:
    """What the launches say of variables: those that they hand over whole, and those that are a grid or a block."""
    source, launches = _launches(change)
    for name, call, configuration in launches:
        problem, case = _problem(program, name)
        arguments = uncommented(call.child_by_field_name("arguments"))
        if len(arguments) != len(problem.arguments):
            raise UntimableError(f"what {name} is handed is not known")
        for node, argument in zip(arguments, problem.arguments, strict=True):
            text = squeezed(source.node_code(node))
            if isinstance(argument, Array):
                yield text, _array(argument, case)
            elif isinstance(argument, Scalar):
                yield text, {"value": case.scalars[argument.name]}
        yield from _shape(source, configuration, case)


def _launches(change: HostChange) -> tuple[Source, list[tuple[str, Node, Node]]]:
    """The place as a text of its own, and its launches: the kernel, the call and what stands in `<<<>>>`."""
    source = Source("place.cu", encoded(f"void place() {{\n{change.before}\n}}"))
    found: list[tuple[str, Node, Node]] = []
    for call in descendants(source.root, "call_expression"):
        configuration, function = launch_configuration(call), call.child_by_field_name("function")
        if configuration is not None and function is not None:
            found.append((unqualified(source.node_text(function)), call, configuration))
    return source, found


def _has_assumed_sizes(change: HostChange, program: Program) -> bool:
    _, launches = _launches(change)
    return any(_problem(program, name)[0].own_shape is None for name, *_ in launches)


def _problem(program: Program, name: str) -> tuple[Problem, Case]:
    kernel = program.kernel(name)
    problem = find_problem(program, kernel) if kernel is not None else None
    if not isinstance(problem, Problem):
        raise UntimableError(str(problem).rstrip(".") if problem is not None else f"{name} is not defined here")
    shape = problem.own_shape or problem.profile  # short kernels are what launches are dear for
    if shape is None:
        raise UntimableError(f"no size is known for {name}")
    try:
        return problem, problem.case(shape)
    except ExpressionError as error:
        raise UntimableError(f"{name} cannot be launched at its size: {error}") from error


def _array(argument: Array, case: Case) -> dict[str, Any]:
    element = element_type(argument.type)
    if element is None or element.scalar == "bool":
        raise UntimableError(f"{argument.name} is an array of {argument.type}")
    limit = case.limits.get(argument.name, 8)
    count = max(1, case.counts[argument.name]) * element.components
    return {"scalar": element.scalar, "count": count, "limit": int(limit)}


def _shape(source: Source, configuration: Node, case: Case) -> Iterator[tuple[str, dict[str, Any]]]:
    for part, size in zip(uncommented(configuration), (case.grid, case.block), strict=False):
        if part.type == "identifier":
            yield source.node_text(part), {"value": list(size)}


def _judged(observed: Observed, event: Event, change: HostChange, variables: list[dict[str, Any]]) -> Observed:
    if not event["same"]:
        which = " and ".join(f"`{name}`" for name in event["differing"]) or "the variables"
        return replace(
            observed, status=Status.WRONG, reason=f"The candidate leaves other contents in {which} on the GPU."
        )
    numbers = {
        each["name"]: each["value"]
        for each in variables
        if each["kind"] in ("int", "uint") and each["name"] not in change.counters
    }
    details = {"least_effect": event["least_effect"], "rounds": event["rounds"], "host": True, "peers": {}}
    low, high = event["ci95"]
    speed = Speed(numbers, event["baseline_us"], event["candidate_us"], event["speedup"], (low, high), details)
    assumed = [name for name in change.bounds if numbers.get(name) == ITERATIONS]
    notes = [f"trip count assumed for timing: {name} = {ITERATIONS:,}" for name in assumed]
    reason = ""
    if high < 1 / event["least_effect"]:
        status, reason = Status.SLOWER, f"The candidate is correct and slower: {event['speedup']:.3g}x."
    elif low > event["least_effect"]:
        status = Status.FASTER
    else:
        status = Status.INCONCLUSIVE
        reason = f"The candidate is correct and no faster: {event['speedup']:.2f}x (95% CI {low:.2f}-{high:.2f})."
    return replace(observed, status=status, reason=reason, speed=[speed], notes=[*observed.notes, *notes])
