"""The cures of rules: each takes its finding away and brings no other, on the extensions with seeded defects and on
the examples of the pages."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

from support.pages import files_of, sections
from warpwright.cuda.extension.unit import is_script, unit_of
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Program
from warpwright.rules.base import Finding
from warpwright.rules.registry import all_rules, run_rules
from warpwright.syntax.encoding import encoded
from warpwright.syntax.source import Source

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
CURED = {
    "off-stream-launch", "missing-device-guard", "deprecated-tensor-api", "unchecked-tensor", "dispatch-mismatch",
    "narrowed-size", "synchronizing-op", "uncovered-elements", "unsynchronized-read", "dispatch-without-half",
    "unregistered-op", "missing-backward", "missing-fake", "undeclared-mutation", "silent-fallback",
    "assumed-alignment", "graph-break", "missing-autocast", "uncalled-op",
}  # fmt: skip


def module(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    spec.loader.exec_module(made)
    return made


def judged(files: dict[str, str]) -> list[Finding]:
    sources = tuple(Source(name, encoded(text)) for name, text in files.items())
    found: list[Finding] = []
    for source in sources:
        program = Program(source, {source.path: source}, ()) if is_script(source.path) else analyze(source)
        found += run_rules(program, select=("torch", "host"), unit=unit_of(source, sources))
    return found


def counted(found: list[Finding]) -> dict[tuple[str, str], int]:
    keys = [(each.rule, each.span.path) for each in found]
    return {key: keys.count(key) for key in keys}


def programs() -> list[dict[str, str]]:
    rules = module("torch_rules")
    pages = sorted(path for path in rules.FOLDER.glob("*.md") if path.stem != "README")
    cases = [case for page in pages for case in rules.cases(page.read_text(encoding="utf-8"), page.name)]
    examples = [files_of(sections(rule.doc)["Example"]) for rule in all_rules() if rule.name in CURED]
    return [*(case.files for case in cases if case.wrong in CURED), *(dict(each) for each in examples)]


def test_each_cure_takes_its_finding_away_and_brings_no_other() -> None:
    cured: dict[str, int] = {}
    for files in programs():
        before = judged(files)
        for finding in before:
            if finding.cure is None:
                continue
            source = finding.span.source.edited(list(finding.cure.edits))
            after = judged({**files, source.path: source.text()})
            left = counted(before)
            left[(finding.rule, finding.span.path)] -= 1
            more = {key: number for key, number in counted(after).items() if number > left.get(key, 0)}
            assert not more, (finding.rule, finding.headline, source.text())
            cured[finding.rule] = cured.get(finding.rule, 0) + 1
    assert cured.keys() == CURED
    assert sum(cured.values()) > 30


def test_the_page_of_a_rule_names_the_cure_of_its_example() -> None:
    for name in CURED:
        page = (BENCHMARKS.parent / "docs" / "rules" / f"{name}.md").read_text(encoding="utf-8")
        assert ("| none |" in page) == ("There is no fix" in page), name
