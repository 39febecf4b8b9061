"""Which fixes of findings can be had: each rewrite is asked at its finding's place, and what verification would need is
looked for. What `check` announces and what `fix` tries are one answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from warpwright.cuda.extension.entries import is_extension
from warpwright.editor.includers import included_by
from warpwright.facts.elsewhere import in_project
from warpwright.facts.model import Kernel, Program
from warpwright.missing import Missing
from warpwright.optimize.order import GAINS, UNKNOWN
from warpwright.problems.infer import find_problem
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.rewrites.registry import propose
from warpwright.rules.base import Finding, Fix
from warpwright.toolchain.find import Toolchain, find_toolchain

_SYSTEM = (
    "usr/include",
    "usr/local/include",
    "usr/include/*-linux-gnu",
    "usr/include/c++/*",
    "usr/lib/gcc/*/*/include",
)

Answer = Callable[[Finding, Fix], Rewrite | Declined]


def promised(program: Program, findings: Iterable[Finding]) -> list[Finding]:
    """The findings with those fixes alone that apply, each with the title and the safety that its rewrite gives it."""
    answer = answers(program)
    return [replace(each, fixes=tuple(_applicable(answer, each))) for each in findings]


def answers(program: Program) -> Answer:
    """Answers with the edit that cures a finding, or with why there is none that could be verified. Reads the project's
    files; what it learns of a kernel is kept for its other findings."""
    unread = unread_include(program)
    whole = included_by(program.source) if not any(k.launches and k.launches[0].span for k in program.kernels) else None

    @cache
    def launched(name: str) -> Kernel | None:
        kernel = program.kernel(name)
        return in_project(kernel) if kernel is not None else None

    @cache
    def not_runnable(name: str) -> str:
        kernel = program.kernel(name)
        problem = find_problem(program, kernel) if kernel is not None else None
        return problem.reason if isinstance(problem, Missing) else ""

    def answer(finding: Finding, fix: Fix) -> Rewrite | Declined:
        kernel = launched(finding.kernel)
        if kernel is None:
            return Declined(fix.rewrite, f"The kernel {finding.kernel} is not defined here.")
        if whole is not None:
            return Declined(fix.rewrite, f"{program.source.path} is compiled as a part of {whole.name}.")
        if unread:
            return Declined(fix.rewrite, f"The header at {unread} is not found, so nothing compiles.")
        made = propose(fix.rewrite, kernel, finding.span)
        if isinstance(made, Declined):
            return made
        if made.source.path != program.source.path:
            return Declined(fix.rewrite, f"It edits {made.source.path}; fix that file.")
        lacking = not_runnable(kernel.name) if _is_run(made, kernel) else ""
        return Declined(fix.rewrite, lacking) if lacking else made

    return answer


def best_first(fixes: Iterable[Fix]) -> list[Fix]:
    """The fixes of a finding, that which gained most on other kernels first."""
    return sorted(fixes, key=lambda fix: -GAINS.get(fix.rewrite, UNKNOWN))


def unread_include(program: Program) -> str:
    """The first include that neither the analysis nor nvcc finds, as `a.cu:3 ("b.h")`; "" for none."""
    if not program.unread_includes or is_extension(program.source):  # torch knows its own folders
        return ""
    toolchain = find_toolchain()
    toolkit = toolchain.include_dirs if isinstance(toolchain, Toolchain) else ()
    folders = [*toolkit, *(folder for pattern in _SYSTEM for folder in Path("/").glob(pattern))]
    unread = (
        f'{span.path}:{span.line} ("{name}")'
        for span, name in program.unread_includes
        if not any((folder / name).is_file() for folder in folders)
    )
    return next(unread, "")


def _applicable(answer: Answer, finding: Finding) -> Iterator[Fix]:
    for fix in best_first(finding.fixes):
        made = answer(finding, fix)
        if isinstance(made, Rewrite):
            yield Fix(fix.rewrite, made.title, fix.safe and made.safe)


def _is_run(made: Rewrite, kernel: Kernel) -> bool:
    """Whether it writes device code, for which both kernels are run."""
    own = made.source.path == kernel.span.path
    return bool(made.beside) or (own and any(kernel.span.contains(edit.start) for edit in made.edits))
