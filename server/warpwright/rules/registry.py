"""The rules that there are, found by folder, and how they are run over a program.

A rule is `rules/<group>/<rule>.py`; a module whose name starts with an underscore is a helper. Rules of the group
`nursery` are not settled and run only where `select` names them.
"""

from __future__ import annotations

import importlib
import logging
import pkgutil
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache, partial

from warpwright import rules
from warpwright.cuda.extension.unit import Unit, unit_of
from warpwright.facts.model import Program
from warpwright.rules.base import Finding, Rule, Severity
from warpwright.rules.weighing import at_most
from warpwright.syntax.source import Source, Span

log = logging.getLogger(__name__)

NURSERY = "nursery"
LEAST_GAIN = 0.01
"""Share of a kernel's time below which what is estimated to be saved is no reason for a warning."""
_ORDER = {severity: place for place, severity in enumerate(Severity)}
_SUPPRESSION = re.compile(r"(?://|/\*|#)\s*warpwright:\s*ignore\[([^\]]*)\]")


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, sorted by name. Imported once, on first use.

    >>> [rule.name for rule in all_rules()][:2]
    ['allocation-in-loop', 'assumed-alignment']
    """
    return tuple(sorted(_load(), key=lambda rule: rule.name))


def rule_and_group_names() -> frozenset[str]:
    """What `select`, `ignore` and the like may name.

    >>> sorted(rule_and_group_names() & {"bank-conflict", "memory", "no-such-rule"})
    ['bank-conflict', 'memory']
    """
    return frozenset(name for rule in all_rules() for name in (rule.name, rule.group))


def run_rules(
    program: Program,
    select: Collection[str] = (),
    ignore: Collection[str] = (),
    severities: Mapping[str, str] | None = None,
    unit: Unit | None = None,
) -> list[Finding]:
    """Findings of one translation unit, sorted by place, each place once per rule.

    `select` and `ignore` hold names of rules or of groups; an empty `select` means every rule outside the nursery.
    `severities` by such names hold over the findings' own, a rule's over its group's; "off" leaves a rule out.
    Where one place is found several times (a header's function that two kernels reach), the gravest finding stays.
    A rule that fails is logged by its name and costs its own findings alone. `unit` is the file with the others of its
    extension; without one it is judged alone.
    """
    unit = unit or unit_of(program.source)
    found: dict[tuple[str, str, int, int], Finding] = {}
    for rule in _chosen(select, ignore):
        wanted = severities.get(rule.name, severities.get(rule.group)) if severities else None
        if wanted == "off":
            continue
        for finding in _findings(rule, program, unit, Severity(wanted) if wanted else None):
            span = finding.span
            key = (rule.name, span.path, span.start, span.end)
            if (key not in found or _grade(finding) < _grade(found[key])) and not is_suppressed(rule.name, span):
                found[key] = finding
    return sorted(found.values(), key=_place)


def _place(finding: Finding) -> tuple[str, int, int, str]:
    return finding.span.path, finding.span.start, finding.span.end, finding.rule


def is_suppressed(rule: str, span: Span) -> bool:
    """Whether a comment `// warpwright: ignore[rule, other]` covers the line where the span starts.

    A comment covers its own line; one that stands alone covers the next line of code.

    >>> source = Source("a.cu", b"// warpwright: ignore[bank-conflict]\\nx = 1;\\ny = 2;\\n")
    >>> [is_suppressed("bank-conflict", Span(source, at, at + 1)) for at in (37, 44)]
    [True, False]
    """
    return rule in _ignored_at(span.source, span.line)


def _load() -> Iterator[Rule]:
    for group in pkgutil.iter_modules(rules.__path__):
        if not group.ispkg:
            continue
        package = importlib.import_module(f"{rules.__name__}.{group.name}")
        for info in pkgutil.iter_modules(package.__path__):
            if info.name.startswith("_"):
                continue
            module = importlib.import_module(f"{package.__name__}.{info.name}")
            name = info.name.replace("_", "-")
            kinds = (getattr(module, each, None) for each in ("check", "together", "check_unit"))
            yield Rule(name, group.name, module.__doc__ or "", module.severity, *kinds)


def _chosen(select: Collection[str], ignore: Collection[str]) -> Iterator[Rule]:
    for rule in all_rules():
        names = {rule.name, rule.group}
        wanted = not names.isdisjoint(select) if select else rule.group != NURSERY
        if wanted and names.isdisjoint(ignore):
            yield rule


def _findings(rule: Rule, program: Program, unit: Unit, severity: Severity | None) -> Iterator[Finding]:
    if rule.check_unit is not None:
        for each in (unit, *unit.inline):
            found = _judged(rule, partial(rule.check_unit, each), unit.source.path, "", severity)
            yield from found if each is unit else (_in_strings_of(unit.source, finding) for finding in found)
    if rule.check is not None:
        for kernel in program.kernels:
            where = f"kernel {kernel.name} of {kernel.source.path}"
            yield from _judged(rule, partial(rule.check, kernel), where, kernel.name, severity)


def _in_strings_of(script: Source, finding: Finding) -> Finding:
    """What is found in the strings of a script, at the places of the script; without edits that leave the strings."""
    inside, made = finding.span.source, finding.cure
    for edit in made.edits if made is not None else ():
        is_within = inside.data[: edit.start].strip() and inside.data[edit.end :].strip()
        if not is_within or '"""' in edit.new_text or "\\" in edit.new_text:
            made = None
    related = tuple(
        replace(each, span=replace(each.span, source=script)) if each.span.source is inside else each
        for each in finding.related
    )
    return replace(finding, span=replace(finding.span, source=script), related=related, cure=made)


def _judged(
    rule: Rule, check: Callable[[], Iterable[Finding]], where: str, kernel: str, severity: Severity | None
) -> list[Finding]:
    try:
        return [
            replace(
                finding,
                rule=rule.name,
                severity=severity or _severity(rule, finding),
                kernel=finding.kernel or kernel,
            )
            for finding in check()
        ]
    except Exception:
        log.exception("rule %s failed on %s", rule.name, where)
        return []


def _severity(rule: Rule, finding: Finding) -> Severity:
    """Information at most for what would save next to nothing."""
    level = finding.severity or rule.severity
    return at_most(Severity.INFORMATION, level) if finding.gain is not None and finding.gain < LEAST_GAIN else level


def _grade(finding: Finding) -> int:
    return _ORDER[finding.severity or Severity.HINT]


@lru_cache(maxsize=256)
def _ignored_at(source: Source, line: int) -> frozenset[str]:
    names = _names(source.line_text(line))
    above = line - 1
    while above >= 1 and source.line_text(above).lstrip().startswith(("//", "# ")):
        names |= _names(source.line_text(above))
        above -= 1
    return frozenset(names)


def _names(text: str) -> set[str]:
    return {name.strip() for listed in _SUPPRESSION.findall(text) for name in listed.split(",")}
