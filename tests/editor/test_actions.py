"""Silencing a finding, in every place where one can stand."""

from __future__ import annotations

import pytest
from warpwright.editor.actions import KernelCommand, QuickFix, actions, kernel_for, suppression
from warpwright.editor.analysis import Analysis, analyse
from warpwright.editor.settings import Settings
from warpwright.syntax.source import Source

LAUNCH = "void f(float* a) { k<<<1, 32>>>(a); if (cudaGetLastError()) abort(); }\n"
STRIDED = "__global__ void k(float* a) {\n  int x = threadIdx.x;\n  a[x * 32] = 1;\n}\n" + LAUNCH


def analysis_of(text: str) -> Analysis:
    return analyse(Source("/src/a.cu", text.encode()), lambda path, name: None, Settings())


def silenced(text: str) -> str:
    analysis = analysis_of(text)
    found = suppression(analysis.source, analysis.findings[0])
    assert found is not None
    return analysis.source.edited([found.edit]).text()


@pytest.mark.parametrize(
    "text",
    [
        STRIDED,
        STRIDED.replace("\n", "\r\n"),
        STRIDED.replace("  int x", "  // warpwright: ignore[low-occupancy]\n  int x"),
        STRIDED.replace("  a[x", "  // é: the reason\n  a[x"),
        STRIDED.replace("  a[x", "  // warpwright: ignore[]\n  a[x"),
    ],
)
def test_the_comment_silences_and_changes_nothing_else(text: str) -> None:
    assert [finding.rule for finding in analysis_of(text).findings] == ["uncoalesced-access"]
    after = silenced(text)
    assert analysis_of(after).findings == ()
    kept = [line for line in after.splitlines() if "warpwright: ignore" not in line]
    assert kept == [line for line in text.splitlines() if "warpwright: ignore" not in line]
    assert after.count("\r\n") == (after.count("\n") if "\r" in text else 0)


def test_a_second_rule_joins_the_comment_that_is_there() -> None:
    after = silenced(STRIDED.replace("  a[x", "  // warpwright: ignore[low-occupancy]\n  a[x"))
    assert "  // warpwright: ignore[low-occupancy, uncoalesced-access]\n  a[x" in after


def test_no_comment_goes_into_a_macros_continued_lines() -> None:
    analysis = analysis_of(STRIDED.replace("threadIdx.x;\n", "threadIdx.x; \\\n"))
    assert analysis.findings
    assert suppression(analysis.source, analysis.findings[0]) is None


def test_what_is_offered_belongs_to_the_place() -> None:
    analysis = analysis_of(STRIDED)
    at = STRIDED.index("a[x")
    assert [type(action) for action in actions(analysis, 0, 0)] == [KernelCommand] * 7
    assert not actions(analysis, STRIDED.index("cudaGet"), STRIDED.index("cudaGet"))
    offered = actions(analysis, at, at)
    assert next(a.title for a in offered if not isinstance(a, QuickFix)) == "Suppress uncoalesced-access on this line"


def test_a_fix_that_declines_says_why() -> None:
    declined = [a for a in actions(analysis_of(STRIDED), 0, len(STRIDED)) if isinstance(a, QuickFix) and a.declined]
    for action in declined:
        assert action.declined.endswith(".")
        assert not action.preferred


def test_the_kernel_of_a_command() -> None:
    analysis = analysis_of(STRIDED + "__global__ void other() {}\n")
    assert kernel_for(analysis, "other", None).name == "other"  # type: ignore[union-attr]
    assert kernel_for(analysis, None, STRIDED.index("int x")).name == "k"  # type: ignore[union-attr]
    assert kernel_for(analysis, None, None) is None  # there are two
    assert kernel_for(analysis, "nonsense", None) is None
    assert kernel_for(analysis_of(STRIDED), None, None).name == "k"  # type: ignore[union-attr]


def test_a_fix_that_may_change_results_says_so_and_is_not_preferred() -> None:
    text = "__global__ void k(float* a) {\n  a[threadIdx.x] *= 2.5 + a[threadIdx.x];\n}\n"
    text += "void f(float* a) { k<<<1, 32>>>(a); }\n"
    fixes = [a for a in actions(analysis_of(text), 0, len(text)) if isinstance(a, QuickFix)]
    assert [(fix.title, fix.preferred) for fix in fixes] == [
        ("Add an f suffix to the literals (may change results)", False),
        ("Check the launch of k", True),
    ]
