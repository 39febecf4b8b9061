"""What a candidate changes: its syntax errors, findings and kernel, beside the original's."""

from __future__ import annotations

from collections import Counter

from warpwright.facts.model import Program
from warpwright.rewrites.registry import goal_of
from warpwright.rules.base import Finding, Severity
from warpwright.syntax.nodes import walk
from warpwright.syntax.source import Source

_GRAVE = (Severity.ERROR, Severity.WARNING)


def new_syntax_error(original: Source, candidate: Source) -> str:
    """One sentence where the candidate's tree has errors that the original's has not; else empty."""
    if not candidate.root.has_error:
        return ""
    errors = [n for n in walk(candidate.root) if n.is_error or n.is_missing]
    before = sum(n.is_error or n.is_missing for n in walk(original.root)) if original.root.has_error else 0
    if len(errors) <= before:
        return ""
    line = candidate.position(errors[0].start_byte)[0]
    return f"The candidate's text cannot be parsed: a syntax error at line {line}."


def changed_findings(
    before: list[Finding], after: list[Finding], expect_gone: Finding | None
) -> tuple[bool | None, tuple[Finding, ...]]:
    """Whether the expected finding went, and the grave findings that came.

    Findings are matched by rule, kernel and the text they mark, and counted: an edit moves lines but not those. A
    literal that makes an expression double does so in each copy of the expression: that is one defect. What cures an
    error may cost time.
    """
    is_error = expect_gone is not None and expect_gone.severity is Severity.ERROR
    had, has = Counter(map(_key, before)), Counter(map(_key, after))
    gone = None if expect_gone is None else has[_key(expect_gone)] < max(1, had[_key(expect_gone)])
    literals = {cause for finding in before if (cause := _literals(finding)) is not None}
    rules_before = Counter((f.rule, f.kernel) for f in before)
    rules_after = Counter((f.rule, f.kernel) for f in after)
    brought = []
    for finding in after:
        grave = finding.severity in _GRAVE and not (is_error and _costs_time(finding))
        more = rules_after[finding.rule, finding.kernel] > rules_before[finding.rule, finding.kernel]
        if grave and more and _literals(finding) not in literals and has[_key(finding)] > had[_key(finding)]:
            brought.append(finding)
    return gone, tuple(brought)


def _costs_time(finding: Finding) -> bool:
    """Whether a warning is of time alone: its cures are for speed."""
    is_warning = finding.severity is Severity.WARNING
    return is_warning and bool(finding.fixes) and all(goal_of(fix.rewrite) == "speed" for fix in finding.fixes)


def _key(finding: Finding) -> tuple[str, str, str]:
    return finding.rule, finding.kernel, finding.span.one_line


def _literals(finding: Finding) -> tuple[str, str, str] | None:
    literals = finding.evidence.get("literals")
    return (finding.rule, finding.kernel, str(literals)) if literals else None


def changed_kernel(old: Program, new: Program) -> str | None:
    """The first kernel whose own text differs, else the first that is defined."""
    names = [k.name for k in old.defined_kernels if new.kernel(k.name) is not None]
    for name in names:
        first, second = old.kernel(name), new.kernel(name)
        if first is not None and second is not None and first.span.text != second.span.text:
            return name
    return names[0] if names else None
