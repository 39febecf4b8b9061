"""What an editor offers at a place: the fixes of its findings, silencing them, and the commands on its kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from warpwright.cuda.extension.near import is_of_others
from warpwright.cuda.extension.unit import is_script
from warpwright.editor.analysis import Analysis
from warpwright.facts.model import Kernel
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.rules.base import Finding
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.encoding import decoded, encoded
from warpwright.syntax.source import Source

OPTIMIZE = "warpwright.optimize"
PROPOSE = "warpwright.propose"
APPLY = "warpwright.apply"
PREVIEW = "warpwright.preview"
GOALS = {OPTIMIZE: "speed", "warpwright.reduceMemory": "memory", "warpwright.fix": "fix"}
"""The commands on a kernel, and the goal that each hands to the search."""

PROFILE = "warpwright.profile"
VERIFY = "warpwright.verify"
SHOW_RESULTS = "warpwright.showResults"
SHOW_SASS = "warpwright.showSass"
WIRE = "warpwright.wire"
EXPLAIN_RULE = "warpwright.explainRule"
GENERATE = "warpwright.generate"
FIX_ALL = "warpwright.fixAll"
APPLY_FIX = "warpwright.applyFix"
SHOW_REPORT = "warpwright.showReport"
DOCTOR = "warpwright.doctor"
SURROUNDINGS = "warpwright.surroundings"
_TITLES = {"speed": "Optimize {}", "memory": "Reduce memory of {}", "fix": "Fix {}"}
_KERNEL_MACRO = re.compile(
    rb"^[ \t]*#[ \t]*define[ \t]+(?P<name>[A-Za-z_]\w*)(?:[^\n\\]|\\.|\\\r?\n)*?\b__global__\b", re.MULTILINE
)
_IGNORE = re.compile(r"((?://|#)\s*warpwright:\s*ignore\[)([^\]]*)(\])")


@dataclass(frozen=True, slots=True)
class FixTarget:
    """Which fix of which finding, in words that survive a trip through JSON. `start` and `end` are byte offsets."""

    rule: str
    rewrite: str
    kernel: str
    start: int
    end: int

    def to_json(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class QuickFix:
    """The fix of a finding; its edit is made and verified when it is chosen. `declined` says why it cannot be had."""

    title: str
    finding: Finding
    target: FixTarget
    preferred: bool
    declined: str = ""


@dataclass(frozen=True, slots=True)
class Cured:
    """The cure of a finding that needs no proof: edits of the document."""

    title: str
    finding: Finding
    edits: tuple[TextEdit, ...]


@dataclass(frozen=True, slots=True)
class Suppression:
    """A comment that silences one rule on one line."""

    title: str
    finding: Finding
    edit: TextEdit


@dataclass(frozen=True, slots=True)
class RuleCommand:
    """A command about the rule of a finding: the fixes of all that it found in the document, or its page."""

    title: str
    command: str
    finding: Finding


@dataclass(frozen=True, slots=True)
class KernelCommand:
    """A command on a kernel; `of_selection` where it is about the selected part of it alone."""

    title: str
    command: str
    kernel: str
    of_selection: bool = False


@dataclass(frozen=True, slots=True)
class CommentCommand:
    """A command on the comment around the cursor."""

    title: str
    command: str


Action = QuickFix | Cured | Suppression | RuleCommand | KernelCommand | CommentCommand


def actions(analysis: Analysis, start: int, end: int) -> tuple[Action, ...]:
    """What can be done about bytes [start, end) of the document: fixes, silencing, the rule's page, commands."""
    here = [f for f in analysis.findings_here() if any(at.start <= end and start <= at.end for at in f.places)]
    fixes = [fix for finding in here for fix in _quick_fixes(analysis, finding)]
    cured = [Cured(f.cure.title, f, f.cure.edits) for f in here if f.cure is not None]
    suppressions = [s for finding in here if (s := suppression(analysis.source, finding)) is not None]
    unique = {(s.title, s.edit): s for s in suppressions}
    rules = {finding.rule: finding for finding in here}.values()
    of_all = [command for finding in rules if (command := _fix_all(analysis, finding)) is not None]
    pages = [RuleCommand(f"Explain {finding.rule}", EXPLAIN_RULE, finding) for finding in rules]
    return (
        *fixes,
        *cured,
        *of_all,
        *unique.values(),
        *pages,
        *_commands(analysis, start, end),
        *_formula(analysis, start),
    )


def _formula(analysis: Analysis, start: int) -> Iterator[CommentCommand]:
    if is_of_others(analysis.source.path):
        return
    # What reads formulas and words is loaded once somebody is at a comment, and not before the first findings.
    from warpwright.editor.formula_comment import formula_at

    found = formula_at(analysis.source, start)
    if found is not None:
        names = " and ".join(each.name for each in found.formula.outputs)
        yield CommentCommand(f"Write the formula of {names} as CUDA", GENERATE)
        return
    from warpwright.assist.asked_limits import asked_limits
    from warpwright.assist.comment_request import asked_at
    from warpwright.editor.comment_readings import readings_at

    asked = asked_at(analysis.source, start)
    readings = readings_at(analysis.source, asked_limits(asked.words)[0], asked.placed) if asked is not None else []
    if readings:
        yield CommentCommand(f"Generate kernel: {readings[0].formula.text.partition(' where ')[0]}", GENERATE)


def safely_fixable(analysis: Analysis, rule: str | None = None) -> int:
    """How many findings in the document, of one rule or of all, have a fix that keeps the results."""
    found = (f for f in analysis.findings_here() if rule in (None, f.rule))
    return sum(any(fix.safe for fix in finding.fixes) for finding in found)


def _fix_all(analysis: Analysis, finding: Finding) -> RuleCommand | None:
    count = safely_fixable(analysis, finding.rule)
    title = f"Fix all {count} findings of {finding.rule} in this file"
    return RuleCommand(title, FIX_ALL, finding) if count > 1 else None


def kernel_for(analysis: Analysis, name: str | None, offset: int | None) -> Kernel | None:
    """The kernel of that name, or at that byte offset, or the document's only one."""
    defined = analysis.program.defined_kernels
    if name is not None:
        return next((k for k in defined if k.name == name), None)
    if offset is not None:
        return analysis.kernel_at(offset)
    here = analysis.kernels_here()
    return here[0] if len(here) == 1 else None


def no_kernel(analysis: Analysis, name: str | None) -> str:
    """The sentence for a user who asks for a kernel that `kernel_for` does not find."""
    makers = [macro for source in analysis.program.sources.values() for macro in _kernel_macros(source)]
    hidden = [macro for macro, used_with in makers if name is None or name in used_with]
    if hidden and name is not None:
        return f"{name} is made by the macro {hidden[0]}: only a kernel whose `__global__` is written out is changed."
    if name is not None:
        return f"There is no kernel {name} here."
    if hidden:
        return f"Put the cursor on a kernel first; one that the macro {hidden[0]} makes is not changed."
    return "Put the cursor on a kernel first."


def _kernel_macros(source: Source) -> Iterator[tuple[str, frozenset[str]]]:
    """The macros of a file that stand for `__global__`, each with the names that occur where it is used."""
    for definition in _KERNEL_MACRO.finditer(source.data):
        name = definition["name"]
        uses = re.finditer(rb"\b%s\b(?P<head>[^;{}]*)" % re.escape(name), source.data)
        names = {decoded(found) for use in uses for found in re.findall(rb"[A-Za-z_]\w*", use["head"])}
        yield decoded(name), frozenset(names)


def kernels_in(analysis: Analysis, start: int, end: int) -> list[Kernel]:
    """The document's kernels that have something of bytes [start, end)."""
    return [kernel for kernel in analysis.kernels_here() if kernel.span.start < end and start < kernel.span.end]


def find_target(analysis: Analysis, target: FixTarget) -> Finding | None:
    """The finding that a target names in a fresh analysis of the same text."""
    return next(
        (
            f
            for f in analysis.findings_here()
            if (f.rule, f.kernel, f.span.start, f.span.end) == (target.rule, target.kernel, target.start, target.end)
        ),
        None,
    )


def propose_fix(analysis: Analysis, finding: Finding, rewrite: str) -> Rewrite | Declined:
    """The rewrite that cures a finding, at the finding's place."""
    from warpwright.rewrites.registry import propose

    kernel = analysis.program.kernel(finding.kernel)
    if kernel is None:
        return Declined(rewrite, f"The kernel {finding.kernel} is no longer there.")
    return propose(rewrite, kernel, finding.span)


def suppression(source: Source, finding: Finding) -> Suppression | None:
    """The edit that silences a finding: a comment above its line, or one name more in the comment that stands there.

    None inside a macro's continued lines, where a comment would swallow what follows.
    """
    line = finding.span.line
    above = source.line_text(line - 1) if line > 1 else ""
    if above.endswith("\\"):
        return None
    title = f"Suppress {finding.rule} on this line"
    written = _IGNORE.search(above) if above.lstrip().startswith(("//", "#")) else None
    if written is not None:
        names = [name.strip() for name in written.group(2).split(",") if name.strip()]
        if finding.rule in names:
            return None
        at = source.line_starts[line - 2] + len(encoded(above[: written.start(2)]))
        length = len(encoded(written.group(2)))
        return Suppression(title, finding, TextEdit(at, at + length, ", ".join([*names, finding.rule])))
    start = source.line_starts[line - 1]
    end_of_line = "\r\n" if source.data[:start].endswith(b"\r\n") else "\n"
    opens = "#" if is_script(source.path) else "//"
    comment = f"{source.line_indent(finding.span.start)}{opens} warpwright: ignore[{finding.rule}]{end_of_line}"
    return Suppression(title, finding, TextEdit(start, start, comment))


def _quick_fixes(analysis: Analysis, finding: Finding) -> Iterator[QuickFix]:
    preferred = True
    for fix in finding.fixes:
        target = FixTarget(finding.rule, fix.rewrite, finding.kernel, finding.span.start, finding.span.end)
        answer = propose_fix(analysis, finding, fix.rewrite)
        if isinstance(answer, Declined):
            yield QuickFix(fix.title, finding, target, False, answer.reason)
        else:
            is_safe = fix.safe and answer.safe
            title = answer.title if is_safe else f"{answer.title} (may change results)"
            yield QuickFix(title, finding, target, preferred and is_safe)
            preferred = False


def _is_selection(analysis: Analysis, start: int, end: int) -> bool:
    """Whether a user has selected a range. No selection is the character under Helix's cursor, the word under that of
    Emacs, and a finding, for which editors ask what can be done about it."""
    is_cursor = re.fullmatch(r"\w*|.", analysis.source.text(start, end), re.DOTALL)
    return not is_cursor and all((start, end) != (f.span.start, f.span.end) for f in analysis.findings_here())


def _commands(analysis: Analysis, start: int, end: int) -> Iterator[KernelCommand]:
    """A selection that leaves out some of a kernel's body is what a search is to change."""
    kernels = kernels_in(analysis, start, end) if start < end else [analysis.kernel_at(start)]
    kernel = kernels[0] if len(kernels) == 1 else None
    if kernel is not None:
        body = kernel.node.child_by_field_name("body") if kernel.node is not None else None
        is_part = (
            body is not None
            and _is_selection(analysis, start, end)
            and (start > body.start_byte + 1 or end < body.end_byte - 1)
        )
        whole = f"the selection in {kernel.name}" if is_part else f"kernel {kernel.name}"
        for command, goal in GOALS.items():
            yield KernelCommand(_TITLES[goal].format(whole), command, kernel.name, is_part)
        yield KernelCommand(f"Verify kernel {kernel.name}", VERIFY, kernel.name)
        yield KernelCommand(f"Profile kernel {kernel.name} (emulated)", PROFILE, kernel.name)
        yield KernelCommand(f"Show SASS of kernel {kernel.name}", SHOW_SASS, kernel.name)
        yield KernelCommand(f"Wire kernel {kernel.name} into PyTorch", WIRE, kernel.name)
