"""The other launches of a kernel: those that run it otherwise than the one by which it is first compared and timed.

Each is compared by itself, at its own sizes and a few more: its block and grid, its numbers, its template arguments,
and the memory that its pointers share. What cannot be run so is told as not covered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from warpwright.cuda.project import files_that_launch
from warpwright.cuda.unread import unread_instances, unread_pointers, unread_uses
from warpwright.facts.model import Program
from warpwright.missing import Missing
from warpwright.problems.launches import Launched, launches_of
from warpwright.problems.model import Problem, grid_symbols
from warpwright.problems.renaming import in_names_of, renamed_parameters
from warpwright.problems.shapes import Shape
from warpwright.syntax.source import Source
from warpwright.verify.lower_rungs import Lower
from warpwright.verify.plan import CandidateLaunchError, PlanError
from warpwright.verify.planned import Plan, plan_of
from warpwright.verify.report import PASSED, Status, Uncovered, What
from warpwright.verify.run import Observed

MOST_LAUNCHES = 12
"""That are run of one kernel, beside the first."""
_INNER = 37
"""What a size that the grid does not depend on is at most."""
_MOST_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Further:
    """A launch beside the first; `is_tried` marks one that the text does not have as such, with a block or an iteration
    that was picked: where the original cannot be run so, nothing is lost."""

    launched: Launched
    plan: Plan
    is_tried: bool


@dataclass(frozen=True, slots=True)
class Launches:
    """What is known of a kernel's launches: the name of that which the first comparison is of, "" where that is none of
    the program's, as where its pointers share memory; those to run beside it; and what cannot be run, or is wrong
    before anything runs."""

    first: str = ""
    further: tuple[Further, ...] = ()
    uncovered: tuple[Uncovered, ...] = ()
    impossible: str = ""

    @property
    def asked(self) -> str:
        """What decides the verdict of them."""
        return repr([each.plan.problems for each in self.further])


def launches_beside(lower: Lower, first: Plan, goal: str) -> Launches:
    """The launches of the kernel in both texts, without those that are run as the first is."""
    if first.problems[0].steps or goal == "reference":
        return Launches()
    kernel = lower.units[0].kernel(lower.name)
    # Other files go on launching the old kernel where the new one stands beside it.
    others = files_that_launch(kernel.source.path, lower.name) if kernel is not None and not lower.beside else []
    old, new = (_launches(program, lower, others) for program in lower.units)
    if [each.said for each in old] != [each.said for each in new]:
        return Launches("", (), tuple(_unpaired(old, new)))
    seen = {_signature(first.problems)}
    found, uncovered, name = list[Further](), _unread(lower, others), ""
    for launched, other in zip(old, new, strict=True):
        if isinstance(launched.problem, Missing) or isinstance(other.problem, Missing):
            missing = launched.problem if isinstance(launched.problem, Missing) else other.problem
            if not launched.said and isinstance(missing, Missing):
                uncovered.append(_uncovered(launched, missing.reason))
            continue
        if _further_symbols(launched.problem, other.problem):
            if not launched.said:
                uncovered.append(_uncovered(launched, "the candidate's launch has sizes that the original's has not"))
            continue
        plan = plan_of(lower, brief(launched.problem), brief(other.problem), goal, timed=False, sizes="few")
        if isinstance(plan, CandidateLaunchError):
            return Launches(name, (), (), f"{plan} at the launch {launched.name}")
        if isinstance(plan, PlanError):
            if not launched.said:
                uncovered.append(_uncovered(launched, str(plan)))
            continue
        signature = _signature(plan.problems)
        if signature in seen:
            name = name or (launched.name if signature == _signature(first.problems) else "")
            continue
        seen.add(signature)
        found.append(Further(launched, plan, bool(launched.said)))
    found.sort(key=lambda each: each.is_tried)
    uncovered += [
        _uncovered(each.launched, f"it has {len(found)} launches, of which {MOST_LAUNCHES} were run")
        for each in found[MOST_LAUNCHES:]
        if not each.is_tried
    ]
    return Launches(name, tuple(found[:MOST_LAUNCHES]), tuple(uncovered))


def with_further(
    seen: Observed, launches: Launches, run: Callable[[Plan], Observed], told: Callable[[str], None]
) -> Observed:
    """What was seen of the first launch with what is seen of the others: the first that is wrong is the verdict. Where
    the first could not be run and is none of the program's, the others are the verdict alone."""
    is_alone = seen.status is Status.NOT_RUN and bool(launches.further) and not launches.first
    if seen.status not in PASSED and not is_alone:
        return seen
    if launches.impossible:
        seen.status, seen.reason = Status.WRONG, f"{launches.impossible[:1].upper()}{launches.impossible[1:]}."
        return seen
    seen.launches = [launches.first] if launches.first else []
    for each in launches.further:
        name = each.launched.name
        told(name)
        other = run(each.plan)
        seen.cases += [replace(case, details={**case.details, "launch": name}) for case in other.cases]
        if other.status in PASSED:
            seen.launches.append(name)
            seen.uncovered += [] if each.is_tried else _uncovered_there(other, seen.uncovered, name)
            if seen.status is Status.NOT_RUN:
                seen.status, seen.reason, seen.work = Status.CORRECT, "", other.work
        elif other.status is not Status.NOT_RUN:
            seen.status, seen.failure = other.status, other.failure
            seen.reason = f"{other.reason.rstrip('.')}, as it is launched at {name}."
            return seen
        elif not each.is_tried:
            seen.uncovered.append(_uncovered(each.launched, other.reason or "it could not be run"))
    return seen


def _launches(program: Program, lower: Lower, others: Sequence[Source]) -> list[Launched]:
    original, kernel = lower.units[0].kernel(lower.name), program.kernel(lower.name)
    if kernel is None or original is None:
        return []
    return launches_of(program, kernel, renamed_parameters(original, kernel), original, others)


def _unread(lower: Lower, others: Sequence[Source]) -> list[Uncovered]:
    """What the original's host code does with the kernel that is not followed."""
    program, kernel = lower.units[0], lower.units[0].kernel(lower.name)
    if kernel is None:
        return []
    sources = [*program.sources.values(), *others]
    pointers = [parameter.is_pointer for parameter in kernel.parameters]
    found = [
        *unread_uses(sources, kernel.name),
        *unread_instances(sources, kernel.name),
        *unread_pointers(sources, kernel.name, pointers),
    ]
    return [Uncovered(What.LAUNCH, each.text, each.path, each.line) for each in dict.fromkeys(found)]


def _unpaired(old: Sequence[Launched], new: Sequence[Launched]) -> Iterator[Uncovered]:
    """Where the texts launch the kernel another number of times: every launch of the original but the first is open."""
    for each in [each for each in old if not each.said][1:]:
        reason = f"the candidate launches the kernel in {len(new)} ways and the original in {len(old)}"
        yield _uncovered(each, reason)


def _uncovered(launched: Launched, reason: str) -> Uncovered:
    said = f" with {launched.said}" if launched.said else ""
    return Uncovered(What.LAUNCH, f"the launch{said} was not run: {reason.rstrip('.')}", launched.file, launched.line)


def _uncovered_there(other: Observed, known: Sequence[Uncovered], name: str) -> list[Uncovered]:
    """What a comparison of one launch does not cover, beyond what is known of another."""
    return [
        replace(each, text=f"{each.text}, as it is launched at {name}") for each in other.uncovered if each not in known
    ]


def _further_symbols(original: Problem, candidate: Problem) -> frozenset[str]:
    """Sizes that the candidate's side has alone: no shape of the original gives them a value."""
    return frozenset(in_names_of(original, candidate).symbols) - frozenset(original.symbols)


def _signature(problems: tuple[Problem, Problem]) -> str:
    """All of both problems that decides what a run shows, but for the sizes that were picked."""
    return repr([(p.arguments, p.grid, p.block, p.dynamic_shared_bytes, p.instance, p.own_shape) for p in problems])


def brief(problem: Problem) -> Problem:
    """The same at the user's own sizes, at ones of several blocks and a partial one, and at a few others."""
    own = [shape for shape in problem.check if shape == problem.own_shape]
    others = [shape for shape in problem.check if shape != problem.own_shape]
    places = sorted({at for at in (1, len(others) // 2) if at < len(others)})
    check = [*own, *_several_blocks(problem), *(others[at] for at in places)]
    kept = tuple(shape for at, shape in enumerate(check) if shape not in check[:at])
    return replace(problem, check=kept or problem.check, time=(), profile=None)


def _several_blocks(problem: Problem) -> list[Shape]:
    """Sizes at which the grid has three full blocks and a partial one along each axis, where such are found."""
    sizes = problem.size(problem.check[0]) if problem.check else None
    if sizes is None or not problem.symbols:
        return []
    axes = sum(part != "1" for part in problem.block)
    along = round(sizes[1] ** (1 / axes)) if axes > 1 else sizes[1]
    of_grid = grid_symbols(problem)
    inner = {symbol: _INNER if symbol not in of_grid else 3 * along + 5 for symbol in problem.symbols}
    own = problem.own_shape or inner
    shape = {symbol: inner[symbol] if symbol in of_grid else min(own[symbol], _INNER) for symbol in problem.symbols}
    found = problem.size(shape)
    return [shape] if found is not None and found[0] > sizes[1] and found[2] <= _MOST_BYTES else []
