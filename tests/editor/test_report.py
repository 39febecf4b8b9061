"""The page that a kernel command leaves behind."""

from __future__ import annotations

from typing import Any

from warpwright.editor.report import outcome_report
from warpwright.facts.resources import KernelResources
from warpwright.verify.report import Compilation, CompiledKernel, Level, Report, Status

TAKEN = CompiledKernel(KernelResources("transpose", "_Z9transpose", 18, 0, 0, 0, 4224, 0, 1), None)
OUTCOME: dict[str, Any] = {
    "kernel": "transpose",
    "goal": "speed",
    "plan": {
        "analysis": "Column reads hit one bank.",
        "optimizations": ["pad-shared-array"],
        "estimated_speedup": 1.9,
        "raw": '{"analysis": "```"}',
    },
    "plan_missing": "",
    "candidates": [
        {
            "rewrites": ["pad-shared-array"],
            "explanations": ["Each row starts in another bank."],
            "diff": "--- a/k.cu\n+++ b/k.cu\n@@ -1 +1 @@\n-a\n+b\n",
            "report": Report(
                Status.NOT_RUN,
                (Level.PARSED, Level.COMPILED, Level.ANALYSED),
                "There is no GPU.",
                kernel="transpose",
                compilation=Compilation("nvcc 13.0.88", "sm_90", (), None, TAKEN),
                not_run_because="no GPU here",
            ).to_json(),
        }
    ],
    "best": 0,
    "reason": "",
    "declined": [{"rewrite": "swap-thread-axes", "reason": "The axes are not used as rows and columns."}],
}


def test_holds_the_plan_the_words_the_verdict_and_the_diff() -> None:
    page = outcome_report(OUTCOME, "/src/k.cu")
    for words in (
        "# Optimize `transpose`",
        "Column reads hit one bank.",
        "its guess, not a measurement",
        "`pad-shared-array` (chosen)",
        "! **compiled, not run: no GPU here**",
        "There is no GPU.",
        "| shared memory | - | 4224 B |  |",
        "+b",
        "`swap-thread-axes`",
    ):
        assert words in page
    assert '````json\n{"analysis": "```"}\n````' in page  # the model's words cannot end their own block


def test_without_a_model_it_says_what_is_missing() -> None:
    page = outcome_report({**OUTCOME, "plan": None, "plan_missing": "No model. Install it."}, "/src/k.cu")
    assert "No model. Install it." in page
    assert "guess" not in page
