"""Findings as they are shown: one for each cause, and the other places where it shows as related ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from warpwright.rules.base import Finding, Related, Severity
from warpwright.rules.registry import all_rules
from warpwright.syntax.nodes import LOOPS, ancestors, node_at
from warpwright.syntax.source import Span

_ORDER = {severity: place for place, severity in enumerate(Severity)}
_Key = tuple[str, str, str, str, int]


def gathered(findings: Iterable[Finding]) -> list[Finding]:
    """One finding for all that a rule says of one array in one loop nest, and for all that a rule with `together` finds
    in a file; sorted by place."""
    rules = {rule.name: rule.together for rule in all_rules() if rule.together is not None}
    shown: list[Finding] = []
    of_files: dict[tuple[str, str], list[Finding]] = {}
    of_arrays: dict[_Key, list[Finding]] = {}
    for each in findings:
        if each.rule in rules:
            of_files.setdefault((each.rule, each.span.path), []).append(each)
        elif each.array:
            key = (each.rule, each.kernel, each.span.path, each.array, _nest(each.span))
            of_arrays.setdefault(key, []).append(each)
        else:
            shown.append(each)
    shown += [rules[rule](group) for (rule, _), group in of_files.items()]
    shown += [_folded(group) for group in of_arrays.values()]
    return sorted(shown, key=lambda each: (each.span.path, each.span.start, each.span.end, each.rule))


def _folded(group: Sequence[Finding]) -> Finding:
    """The gravest with the others as related places, and what all of them would gain."""
    lead = min(group, key=_rank)
    others = sorted((each for each in group if each is not lead), key=lambda each: each.span.start)
    if not others:
        return lead
    gains = [each.gain for each in group if each.gain is not None]
    many = f"{len(others)} more place{'s' if len(others) > 1 else ''} in this loop nest"
    return replace(
        lead,
        message=f"{lead.message}\nAlso on `{lead.array}` at {many}.",
        gain=min(sum(gains), 1.0) if gains else None,
        related=(*lead.related, *(Related(each.span, each.headline, alike=True) for each in others)),
    )


def _rank(finding: Finding) -> tuple[int, bool, float, int]:
    return _ORDER[finding.severity or Severity.HINT], not finding.fixes, -(finding.gain or 0.0), finding.span.start


def _nest(span: Span) -> int:
    """Where the outermost loop around a place starts, the function's start where there is none."""
    node = node_at(span.source.root, span.start, span.end)
    start = 0
    for around in ancestors(node) if node is not None else ():
        if around.type == "function_definition":
            return start or around.start_byte
        if around.type in LOOPS:
            start = around.start_byte
    return start
