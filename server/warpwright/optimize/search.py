"""The search over sequences of rewrites, each step judged by verification against the user's own text.

Round by round. From the user's own text every rewrite is tried that applies to it, and from the best version so far
those that promise something: that it opened, which applied to no version before it, or that gained something before.
Where these bring nothing better, the other rewrites that apply to it are tried; and then the search goes on from other
versions that are right and about as fast as what they were made of, by those rewrites alone that they opened. So a step
that gains nothing by itself is found where another needs it, as `add-restrict` is for `coarsen-threads`, and
independent steps are tried in one order. What can be said only of a compiled kernel, as `add-launch-bounds` is, is
tried after the first round, which compiles it. What gives a text that was tried before is not tried again, nor what was
wrong on a version before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from warpwright.facts.model import Kernel
from warpwright.facts.resources import KernelResources
from warpwright.optimize.rank import (
    MEASURED_NOISE,
    PREDICTED_NOISE,
    Score,
    best_of,
    gain_of,
    may_be_offered,
    score_of,
)
from warpwright.optimize.version import Version
from warpwright.optimize.wish import Wish
from warpwright.progress import IsCancelled, Progress
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.rewrites.registry import applicable, proposals, propose
from warpwright.rules.base import Finding
from warpwright.verify.report import Report, Status
from warpwright.verify.several import Trial

MAX_ROUNDS = 16
"""Of all; the search ends before that, unless rewrites open others without end."""

PATIENCE = 3
"""Rounds in a row that may bring nothing better."""

BEAM = 3
"""Versions that a round without a better one goes on from."""

MAY_COST = 0.9
"""How fast a version may be, beside the one that it was made of, so that the search goes on from it."""

_AMISS = (Status.WRONG, Status.UNSAFE, Status.DOES_NOT_COMPILE, Status.TIMEOUT)
_RIGHT = (Status.FASTER, Status.CORRECT, Status.INCONCLUSIVE, Status.SLOWER)

Judge = Callable[[Sequence[Trial], Progress, IsCancelled], Sequence[Report | None]]
"""Verifies several candidates: their reports in order, None where it was stopped."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A version that was verified. `made_of` is the index of the one before it, None for the user's own text. `score`
    is None where it may not be offered."""

    version: Version
    made_of: int | None
    trial: Trial
    report: Report
    score: Score | None


@dataclass(frozen=True, slots=True)
class Found:
    """All that was tried, in order, and the index of the best that may be offered, None where there is none. `declined`
    are the rewrites that do not apply to the user's own text, now that its compilation is known; None where it is not.
    """

    tried: tuple[Tried, ...]
    best: int | None
    declined: Sequence[Declined] | None


@dataclass(frozen=True, slots=True)
class Asked:
    """What is searched for, and how. `order` are names of rewrites to try first; `most` bounds the verifications; no
    step is tried that is not `is_wanted`."""

    goal: str
    wish: Wish
    order: Sequence[str] = ()
    most: int | None = None
    arch: str | None = None
    flags: tuple[str, ...] = ()
    is_wanted: Callable[[Rewrite], bool] = bool


@dataclass
class _State:
    """What a search has seen, by the index of versions, None for the user's own text: the rewrites that apply to them
    (`steps`), those from which what promises something was tried (`begun`), and those from which all was (`whole`)."""

    root: Version
    tried: list[Tried] = field(default_factory=lambda: [])
    texts: set[tuple[str, bytes]] = field(default_factory=set)
    steps: dict[int | None, list[Rewrite]] = field(default_factory=lambda: {})
    begun: set[int | None] = field(default_factory=set)
    whole: set[int | None] = field(default_factory=set)

    def version(self, index: int | None) -> Version:
        return self.root if index is None else self.tried[index].version

    def steps_of(self, index: int | None, goal: str) -> list[Rewrite]:
        if index not in self.steps:
            self.steps[index] = applicable(self.version(index).kernel, goal)
        return self.steps[index]

    def best(self) -> int | None:
        offered = [(i, each.score) for i, each in enumerate(self.tried) if each.score is not None]
        best = best_of([score for _, score in offered])
        return offered[best][0] if best is not None else None


def search(
    root: Version,
    first: Sequence[Rewrite],
    findings: Sequence[Finding],
    asked: Asked,
    judge: Judge,
    progress: Progress,
    must_stop: IsCancelled,
) -> Found:
    """What was tried before `must_stop`.

    `first` are the rewrites that apply to `root`, the user's own text, and `findings` those that it has.
    """
    state = _State(root, steps={None: list(first)})
    in_vain = 0
    declined: Sequence[Declined] | None = None
    compiled: list[tuple[int | None, Rewrite]] = []
    for number in range(MAX_ROUNDS):
        best = state.best()
        in_vain = 0 if best not in state.whole else in_vain + 1
        left = asked.most - len(state.tried) if asked.most is not None else None
        if in_vain > PATIENCE or left == 0 or must_stop():
            break
        trials = list(_trials(state, [*compiled, *_further(state, best, asked)], findings, asked))[:left]
        compiled = []
        if not trials:
            continue
        reports = judge([trial for _, _, trial in trials], _part(progress, number, state), must_stop)
        for (index, step, trial), report in zip(trials, reports, strict=True):
            if report is not None:
                state.tried.append(_judged(state, index, step, trial, report, asked))
        if declined is None and (resources := _own_resources(reports)) is not None:
            made, declined = proposals(root.compiled(resources).kernel, asked.goal)
            known = {step.rewrite for step in state.steps[None]}
            compiled = [(None, step) for step in made if step.rewrite not in known]
            state.steps[None] += [step for _, step in compiled]
    return Found(tuple(state.tried), state.best(), declined)


def _own_resources(reports: Sequence[Report | None]) -> KernelResources | None:
    """What the kernel of the user's own text takes, as the compiler said when candidates were verified."""
    compilations = (report.compilation for report in reports if report is not None)
    own = (compilation.original for compilation in compilations if compilation is not None)
    return next((kernel.resources for kernel in own if kernel is not None), None)


def _further(state: _State, best: int | None, asked: Asked) -> list[tuple[int | None, Rewrite]]:
    """What to try next, as steps from versions."""
    if best not in state.whole:
        steps = _ordered(state.steps_of(best, asked.goal), asked.order)
        if best is not None:
            before = _before(state, best)
            known = {step.rewrite for index in before for step in state.steps_of(index, asked.goal)}
            amiss, gained = _experience(state, before)
            steps = [step for step in steps if step.rewrite not in amiss]
            if best not in state.begun:
                state.begun.add(best)
                steps = [step for step in steps if step.rewrite not in known or step.rewrite in gained]
                return [(best, step) for step in steps]
        state.whole.add(best)
        return [(best, step) for step in steps]
    found: list[tuple[int | None, Rewrite]] = []
    tried = [Counter(each.version.rewrites) for each in state.tried]
    beam = 0
    for index in _leading(state, asked):
        opened = [
            step
            for step in _opened(state, index, asked.goal)
            if not any(_sequence(state, index, step) <= each for each in tried)
        ]
        state.whole.add(index)
        found += [(index, step) for step in _ordered(opened, asked.order)]
        tried += [_sequence(state, index, step) for step in opened]
        beam += bool(opened)
        if beam == asked.wish.wider * BEAM:
            break
    return found


def _leading(state: _State, asked: Asked) -> list[int]:
    """Versions to go on from, the most promising first: right, about as fast as what they were made of, and not yet
    gone on from."""

    def leads(index: int) -> bool:
        report = state.tried[index].report
        gain = gain_of(report)
        if gain is None or report.status not in _RIGHT or index in state.whole:
            return False
        return gain >= MAY_COST**asked.wish.wider * _gain(state, state.tried[index].made_of)

    return sorted(filter(leads, range(len(state.tried))), key=lambda index: -_gain(state, index))


def _before(state: _State, index: int) -> list[int | None]:
    """The versions that one was made of, the last first."""
    before: list[int | None] = [state.tried[index].made_of]
    while (last := before[-1]) is not None:
        before.append(state.tried[last].made_of)
    return before


def _experience(state: _State, versions: Sequence[int | None]) -> tuple[set[str], set[str]]:
    """The rewrites that were wrong on one of these versions, and those that gained something there beyond the noise."""
    amiss: set[str] = set()
    gained: set[str] = set()
    for each in state.tried:
        if each.made_of not in versions:
            continue
        gain, before = gain_of(each.report), _gain(state, each.made_of)
        if each.report.status in _AMISS:
            amiss.add(each.version.rewrites[-1])
        elif gain is not None and gain > before * (MEASURED_NOISE if each.report.speed else PREDICTED_NOISE):
            gained.add(each.version.rewrites[-1])
    return amiss, gained


def _gain(state: _State, index: int | None) -> float:
    """How many times as fast as the user's own text a version is; 1 where that is not known."""
    gain = gain_of(state.tried[index].report) if index is not None else None
    return 1.0 if gain is None else gain


def _opened(state: _State, index: int, goal: str) -> Iterator[Rewrite]:
    """The rewrites that apply to a version and to none of those that it was made of."""
    known = {step.rewrite for before in _before(state, index) for step in state.steps_of(before, goal)}
    return (step for step in state.steps_of(index, goal) if step.rewrite not in known)


def _sequence(state: _State, index: int, step: Rewrite) -> Counter[str]:
    """The rewrites of a version and one more. What holds a sequence, with others among it, has tried its last step."""
    return Counter((*state.version(index).rewrites, step.rewrite))


def _trials(
    state: _State, further: Sequence[tuple[int | None, Rewrite]], findings: Sequence[Finding], asked: Asked
) -> Iterator[tuple[int | None, Rewrite, Trial]]:
    """The steps that the wish allows and that give a text of their own, in one file, as trials against the user's."""
    for index, step in further:
        version = state.version(index)
        after = version.edited(step, state.root.text(step.source.path))
        if version.changed not in (None, after.path) or (after.path, after.data) in state.texts:
            continue
        rewrites, before = (*version.rewrites, step.rewrite), state.root.text(after.path)
        if not asked.is_wanted(step) or not asked.wish.allows(step, rewrites, before, after):
            continue
        state.texts.add((after.path, after.data))
        cured = _cured(findings, step, state.root.kernel) if index is None else None
        main = state.root.program.source
        unit = main if main.path != after.path else None
        yield index, step, Trial(f"Trying {' + '.join(rewrites)}", before, after, cured, unit)


def _judged(state: _State, index: int | None, step: Rewrite, trial: Trial, report: Report, asked: Asked) -> Tried:
    made = report.compilation.candidate if report.compilation is not None else None
    version = state.version(index).after(step, trial.candidate, asked.arch, asked.flags)
    version = version.compiled(made.resources if made is not None else None)
    score = None
    if may_be_offered(report, asked.goal, version.rewrites):
        score = score_of(report, asked.goal, version.findings(), len(version.rewrites))
    return Tried(version, index, trial, report, score)


def _ordered(steps: Sequence[Rewrite], order: Sequence[str]) -> list[Rewrite]:
    """Those in `order` first, in that order; then the others."""
    places = {name: place for place, name in enumerate(order)}
    return sorted(steps, key=lambda step: places.get(step.rewrite, len(places)))


def _cured(findings: Sequence[Finding], step: Rewrite, kernel: Kernel) -> Finding | None:
    """The finding of the user's own text that a first step is the cure of; None where it cures none in particular."""
    for finding in findings:
        if any(fix.rewrite == step.rewrite for fix in finding.fixes):
            proposal = propose(step.rewrite, kernel, finding.span)
            if isinstance(proposal, Rewrite) and proposal.edits == step.edits:
                return finding
    return None


def _part(progress: Progress, number: int, state: _State) -> Progress:
    """The progress of one round as a part of the whole search's: half of what the rounds before it left. It says what
    there is already for whoever stops the search."""
    left = 0.8 * 0.5**number
    best = state.best()
    so_far = ""
    if best is not None:
        tried = state.tried[best]
        so_far = f" (best so far: {' + '.join(tried.version.rewrites)}, {tried.report.badge()})"

    def report(message: str, share: float | None) -> None:
        progress(f"{message}{so_far}", 1.0 - left + left / 2 * share if share is not None else None)

    return report
