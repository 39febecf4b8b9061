"""Which fixes of findings can be had: each rewrite is asked at its finding's place, and what verification would need is
looked for. What `check` announces and what `fix` tries are one answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache, partial

from warpwright.cuda.extension.entries import is_extension
from warpwright.editor.compilable import not_compiled, not_included
from warpwright.editor.verifiable import not_run
from warpwright.facts.elsewhere import in_project
from warpwright.facts.model import Kernel, Program
from warpwright.optimize.order import GAINS, UNKNOWN
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.rewrites.registry import goal_of, propose
from warpwright.rules.base import Finding, Fix
from warpwright.rules.registry import run_rules
from warpwright.syntax.source import Source

LEAST_SHARE = 0.05
"""Of the kernel's time, below which nothing would tell a fix that is for speed from none."""

Answer = Callable[[Finding, Fix], Rewrite | Declined]


def promised(program: Program, findings: Iterable[Finding], file: Source | None = None) -> list[Finding]:
    """The findings with those fixes alone that apply, each with the title and the safety that its rewrite gives it."""
    answer = answers(program, file)
    return [replace(each, fixes=tuple(_applicable(answer, each))) for each in findings]


def answers(program: Program, file: Source | None = None) -> Answer:
    """Answers with the edit of `file` that cures a finding, or with why there is none that could be verified. The file
    is the program's, or one that it includes. Reads the project's files; what it learns of a kernel is kept for its
    other findings."""
    fixed = file or program.source
    refused = cache(partial(not_compiled, program))

    @cache
    def launched(name: str) -> Kernel | None:
        kernel = program.kernel(name)
        return in_project(kernel) if kernel is not None else None

    @cache
    def not_runnable(name: str) -> str:
        kernel = program.kernel(name)
        return not_run(program, kernel) if kernel is not None else ""

    @cache
    def found_in(name: str) -> list[Finding]:
        return [each for each in run_rules(program) if each.kernel == name]

    def analysed_again(made: Rewrite, kernel: Kernel, finding: Finding) -> str:
        """Why the edit cures nothing as far as the text tells, "" where it does."""
        from warpwright.verify.changes import changed_findings  # most files have no fix to judge

        if kernel.again is None or finding.rule not in {each.rule for each in found_in(kernel.name)}:
            return ""
        after = [each for each in run_rules(kernel.again(made.apply())) if each.kernel == kernel.name]
        gone, brought = changed_findings(found_in(kernel.name), after, finding)
        if brought:
            return f"It brings a new finding: {brought[0].rule}: {brought[0].headline.rstrip('.')}."
        return "" if gone else "The finding is still there."

    def answer(finding: Finding, fix: Fix) -> Rewrite | Declined:
        kernel = launched(finding.kernel)
        if kernel is None:
            return Declined(fix.rewrite, f"The kernel {finding.kernel} is not defined here.")
        if reason := refused():
            return Declined(fix.rewrite, reason)
        made = propose(fix.rewrite, kernel, finding.span)
        if isinstance(made, Declined):
            return made
        if reason := _unlike(fixed, made) or not_included(made):
            return Declined(fix.rewrite, reason)
        if made.source.path != fixed.path:
            return Declined(fix.rewrite, f"It edits {made.source.path}; fix that file.")
        if not writes_device_code(made, kernel):
            lacking = "" if _is_run_without(program, made, kernel) else not_runnable(kernel.name)
            return Declined(fix.rewrite, lacking) if lacking else made
        if goal_of(fix.rewrite) == "speed" and finding.gain is not None and finding.gain < LEAST_SHARE:
            return Declined(fix.rewrite, f"It is worth less than {LEAST_SHARE:.0%} of the kernel's time.")
        lacking = not_runnable(kernel.name) or analysed_again(made, kernel, finding)
        return Declined(fix.rewrite, lacking) if lacking else made

    return answer


def best_first(fixes: Iterable[Fix]) -> list[Fix]:
    """The fixes of a finding, that which gained most on other kernels first."""
    return sorted(fixes, key=lambda fix: -GAINS.get(fix.rewrite, UNKNOWN))


def _applicable(answer: Answer, finding: Finding) -> Iterator[Fix]:
    for fix in best_first(finding.fixes):
        made = answer(finding, fix)
        if isinstance(made, Rewrite):
            yield Fix(fix.rewrite, made.title, fix.safe and made.safe)


def writes_device_code(made: Rewrite, kernel: Kernel) -> bool:
    """Whether both kernels have to be run."""
    own = made.source.path == kernel.span.path
    return bool(made.beside) or (own and any(kernel.span.contains(edit.start) for edit in made.edits))


def _is_run_without(program: Program, made: Rewrite, kernel: Kernel) -> bool:
    """Whether an edit of host code is verified without a run of the kernel: one of a torch extension, whose functions
    are called, one that looks at errors alone, or one that launches as a graph."""
    from warpwright.verify.host_change import launches_new_graph
    from warpwright.verify.host_code import differs_in_checks_alone

    edited = made.apply()
    if kernel.again is None or is_extension(made.source) or launches_new_graph(made.source, edited):
        return True
    return differs_in_checks_alone(program, kernel.again(edited))


def _unlike(source: Source, made: Rewrite) -> str:
    """Why what the host code launches could not be compared, where the edit launches it as a graph."""
    if made.source.path != source.path or not any("cudaGraphLaunch" in edit.new_text for edit in made.edits):
        return ""
    from warpwright.verify.host_change import host_change, launches_new_graph  # few fixes need it

    edited = made.apply()
    change = host_change(source, edited) if launches_new_graph(source, edited) else None
    return f"What the host code launches cannot be compared: {change}." if isinstance(change, str) else ""
