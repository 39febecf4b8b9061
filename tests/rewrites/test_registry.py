"""Finding rewrites by folder, and proposing them."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from support.cases import Case, cases_of
from support.findings import program
from support.pages import code, sections
from warpwright.rewrites import registry
from warpwright.rewrites.base import Declined, RewriteKind


def test_rewrites_are_named_after_their_files() -> None:
    for kind in registry.all_rewrites():
        assert kind.propose.__module__.rsplit(".", 1)[-1] == kind.name.replace("-", "_")
        assert registry.find_rewrite(kind.name) is kind


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", registry.all_rewrites(), ids=lambda kind: kind.name)
def test_applicable_lists_a_rewrite_under_its_goals_alone(kind: RewriteKind) -> None:
    kernels = program(f"{code(sections(kind.doc)['Before'])[0]}\nint main() {{}}\n").kernels  # all launches are here
    for goal in ("speed", "memory", "fix"):
        listed = [rewrite.rewrite for kernel in kernels for rewrite in registry.applicable(kernel, goal)]
        assert (kind.name in listed) is (goal in kind.goals)


def test_an_unknown_goal_is_an_error() -> None:
    with pytest.raises(ValueError, match="speed, memory or fix"):
        registry.applicable(program("__global__ void k() {}").kernels[0], "beauty")


def test_an_unknown_rewrite_is_declined() -> None:
    result = registry.propose("no-such-rewrite", program("__global__ void k() {}").kernels[0], None)
    assert result == Declined("no-such-rewrite", "There is no rewrite of the name no-such-rewrite.")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", registry.all_rewrites(), ids=lambda kind: kind.name)
@pytest.mark.parametrize(
    "text",
    [
        "__global__ void k(float *x) {",
        "__global__ void k() { __shared__ float a[",
        "void r() { k<<<1, 32>>>(",
        "__global__ void k() { for (int s = 1; s < blockDim.x; s *= 2) }",
        "__global__ void k(",
        "k<<<>>>();",
    ],
)
def test_broken_code_is_declined(kind: RewriteKind, text: str) -> None:
    for kernel in program(text).kernels:
        result = registry.propose(kind.name, kernel, None)
        assert not isinstance(result, Declined) or "failed" not in result.reason


@pytest.mark.sampled(16)
@pytest.mark.parametrize("case", cases_of(Path(__file__).parent / "cases"), ids=lambda case: case.id)
def test_half_written_code_breaks_no_rewrite(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    text = case.text
    with caplog.at_level(logging.ERROR):
        for quarter in (1, 2, 3):
            for kernel in program(text[: len(text) * quarter // 4]).kernels:
                registry.propose(case.rewrite, kernel, None)
    assert not caplog.records, caplog.text
