"""Finding rules by folder, and what `run_rules` does with what they find."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.findings import findings, program
from support.texts import Text, texts_in
from warpwright.facts.model import Kernel
from warpwright.rules import registry
from warpwright.rules.base import Finding, Rule, Severity

PROGRAMS = [case for case in texts_in(Path(__file__).parent / "cases") if case.name.endswith(".cu")]
LAUNCH = """\
__global__ void fill(float *out) { out[blockIdx.x * blockDim.x + threadIdx.x] = 1.0f; }
void run(float *out) {
  fill<<<64, 256>>>(out);COMMENT
}
"""


def _launch(before: str = "", comment: str = "") -> str:
    return LAUNCH.replace("COMMENT", comment).replace("  fill", before + "  fill")


def test_rules_are_named_after_their_files() -> None:
    for rule in registry.all_rules():
        module = (rule.check or rule.check_unit).__module__.split(".")
        assert module[-2:] == [rule.group, rule.name.replace("-", "_")]


@pytest.mark.parametrize(
    ("before", "comment", "reported"),
    [
        ("", "", True),
        ("", "  // warpwright: ignore[unchecked-launch]", False),
        ("", "  /* warpwright: ignore[unchecked-launch] */", False),
        ("  // warpwright: ignore[unchecked-launch]\n", "", False),
        ("  // warpwright: ignore[bank-conflict, unchecked-launch]\n  // checked by the caller\n", "", False),
        ("", "  // warpwright: ignore[bank-conflict]", True),
        ("", "  // warpwright: ignore[no-such-rule]", True),
        ("  // warpwright: ignore[no-such-rule, unchecked-launch]\n", "", False),
        ("  // warpwright: ignore[unchecked-launch]\n  int n = 1;\n", "", True),
        ("  int n = 1;  // warpwright: ignore[unchecked-launch]\n", "", True),
    ],
)
def test_suppression(before: str, comment: str, reported: bool) -> None:
    assert bool(findings(_launch(before, comment), "unchecked-launch")) is reported


def test_select_and_ignore_take_rules_and_groups() -> None:
    there = program(_launch())

    def names(select: tuple[str, ...] = (), ignore: tuple[str, ...] = ()) -> list[str]:
        return [finding.rule for finding in registry.run_rules(there, select, ignore)]

    assert names() == names(select=("launch",)) == names(select=("unchecked-launch",)) == ["unchecked-launch"]
    assert names(select=("memory",)) == names(ignore=("launch",)) == names(ignore=("unchecked-launch",)) == []


def _broken(kernel: Kernel) -> Iterator[Finding]:
    yield Finding(kernel.name_span, "found before it broke", {"bytes": 4})
    raise RuntimeError("broken rule")


def _both_kernels_one_place(kernel: Kernel) -> Iterator[Finding]:
    severity = Severity.ERROR if kernel.name == "b" else Severity.HINT
    yield Finding(replace(kernel.span, start=0, end=4), kernel.name, {"bytes": 4}, severity=severity)


def test_a_failing_rule_takes_nothing_else_down(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken = Rule("broken", "memory", "", Severity.WARNING, _broken)
    rules = registry.all_rules()
    monkeypatch.setattr(registry, "_load", lambda: iter((broken, *rules)))
    registry.all_rules.cache_clear()
    try:
        with caplog.at_level(logging.ERROR):
            found = [finding.rule for finding in registry.run_rules(program(_launch()))]
    finally:
        registry.all_rules.cache_clear()
    assert found == ["unchecked-launch"]
    assert "rule broken failed on kernel fill of kernel.cu" in caplog.text


def test_one_place_is_reported_once_with_its_gravest_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = Rule("twice", "memory", "", Severity.WARNING, _both_kernels_one_place)
    monkeypatch.setattr(registry, "_load", lambda: iter((rule,)))
    registry.all_rules.cache_clear()
    try:
        found = registry.run_rules(program("__global__ void a() {}\n__global__ void b() {}\n__global__ void c() {}\n"))
    finally:
        registry.all_rules.cache_clear()
    assert [(finding.kernel, finding.severity) for finding in found] == [("b", Severity.ERROR)]


def test_findings_are_sorted_by_place() -> None:
    text = "".join(f"__global__ void k{i}() {{}}\nvoid r{i}() {{ k{i}<<<1, 32>>>(); }}\n" for i in range(4))
    assert [finding.span.line for finding in findings(text)] == [2, 4, 6, 8]


@pytest.mark.parametrize("case", PROGRAMS, ids=lambda case: case.id)
def test_half_written_code_breaks_no_rule(case: Text, caplog: pytest.LogCaptureFixture) -> None:
    text = case.text
    with caplog.at_level(logging.ERROR):
        for quarter in (1, 2, 3):
            findings(text[: len(text) * quarter // 4])
    assert not caplog.records, caplog.text
