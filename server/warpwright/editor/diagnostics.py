"""A document's findings as an editor shows them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from warpwright.editor.analysis import Analysis
from warpwright.rules.base import Finding, Related, Severity
from warpwright.syntax.source import Source, Span
from warpwright.timeline.kept import TracedLine

SOURCE = "warpwright"
_TRACE_PAGE = "https://github.com/warpwright/warpwright/blob/main/docs/trace.md"
_PAGES = "https://github.com/warpwright/warpwright/blob/main/docs/rules"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """`page` is the address of the rule's page; `data` comes back with a request for code actions."""

    span: Span
    severity: Severity
    rule: str
    page: str
    message: str
    related: tuple[Related, ...]
    data: dict[str, object]


def diagnostics(analysis: Analysis) -> tuple[Diagnostic, ...]:
    """One for each finding in the document itself; what lies in an include is shown when that file is open. And one for
    each line for which the last trace of a script proposes something."""
    traced = (_of_trace(analysis.source, each) for each in analysis.traced if each.advice)
    return (*(_diagnostic(finding) for finding in analysis.findings_here()), *traced)


def rule_page(rule: str) -> str:
    return f"{_PAGES}/{rule}.md"


def _with_short_paths(message: str, path: str) -> str:
    """A message that names files beside the document without their folder, which an editor's user sees already."""
    folder = str(Path(path).parent)
    return message.replace(folder + os.sep, "") if len(folder) > 1 else message


def _of_trace(source: Source, line: TracedLine) -> Diagnostic:
    span = source.line_span(line.line)
    message = f"The last trace: {line.said}\n{line.advice}"
    return Diagnostic(span, Severity.INFORMATION, "trace", _TRACE_PAGE, message, (), {})


def _diagnostic(finding: Finding) -> Diagnostic:
    return Diagnostic(
        finding.span,
        finding.severity or Severity.WARNING,
        finding.rule,
        rule_page(finding.rule),
        _with_short_paths(finding.message, finding.span.path),
        finding.related,
        {"kernel": finding.kernel, "evidence": dict(finding.evidence), "rewrites": [f.rewrite for f in finding.fixes]},
    )
