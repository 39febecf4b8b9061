"""A search that goes on from an offer because its user wants something else beside: less memory of what is fast.

Its steps are tried on the offered text and judged by it. What is offered in the end is verified once more against the
user's own text, and what is said of it is said of that: tolerances of two verifications must not add up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from warpwright.editor.job_request import Json
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Kernel, Program
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.source import Source, include_reader
from warpwright.verify.report import Report

if TYPE_CHECKING:
    from warpwright.optimize.outcome import Outcome

Search = Callable[[Program, Kernel, str], "Outcome"]
Verify = Callable[[Source, Source], Report]


@dataclass(frozen=True, slots=True)
class Start:
    """An offered text of one of a program's files, and how it came to be."""

    text: Source
    rewrites: tuple[str, ...]
    explanations: tuple[str, ...]


def start_of(program: Program, choice: Json) -> Start:
    """What a choice of an earlier answer offers for that same program; "outcome" is the answer's."""
    candidate = choice["outcome"]["candidates"][choice["candidate"]]
    ((path, edits),) = choice["edits"].items()
    text = program.sources[path].edited([TextEdit(*edit) for edit in edits])
    return Start(text, tuple(candidate["rewrites"]), tuple(candidate["explanations"]))


def continued(
    program: Program,
    kernel: Kernel,
    goal: str,
    sought: str,
    start: Start,
    folders: tuple[str, ...],
    search: Search,
    verify: Verify,
) -> Outcome:
    """The outcome of going on from `start` for another goal, `sought`.

    `goal` is the offer's: what is found must serve it too, against the user's own text, which `verify` compares with.
    `folders` are those in which includes are looked for.
    """
    from warpwright.optimize.outcome import Candidate
    from warpwright.optimize.rank import may_be_offered

    main = start.text if start.text.path == program.source.path else program.source
    offered = analyze(main, include_reader({**program.sources, start.text.path: start.text}, folders), program.assume)
    known = offered.kernel(kernel.name)
    outcome = search(offered, known or kernel, sought)
    if outcome.best is None:
        return replace(outcome, reason=f"The offer is unchanged. {outcome.reason}")
    found = outcome.candidates[outcome.best]
    if found.source_after.path != start.text.path:
        names = " and ".join(sorted({Path(each.path).name for each in (found.source_after, start.text)}))
        return replace(outcome, best=None, reason=f"The offer is unchanged: going on would change {names} at once.")
    own = program.sources[start.text.path]
    report = verify(own, found.source_after)
    whole = Candidate(
        (*start.rewrites, *found.rewrites),
        (*start.explanations, *found.explanations),
        own,
        found.source_after,
        report,
    )
    candidates = (*outcome.candidates, whole)
    if may_be_offered(report, goal, whole.rewrites):
        return replace(outcome, goal=goal, candidates=candidates, best=len(candidates) - 1)
    reason = f"The offer is unchanged: with your own edits the result is {report.badge()}."
    return replace(outcome, goal=goal, candidates=candidates, best=None, reason=reason)
