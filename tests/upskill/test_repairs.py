"""Mistakes are made in kernels that are right, and each repair is one that a tool asked for and the server takes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from warpwright.assist.blocks import Proposal, read_blocks
from warpwright.assist.repair_task import repair_answer
from warpwright.facts.analyze import analyze
from warpwright.syntax.source import Source
from warpwright_upskill.data.bugs import KINDS, bugs_of
from warpwright_upskill.data.render import render
from warpwright_upskill.data.repairs import HELD_OUT_FAMILIES
from warpwright_upskill.data.symptoms import Written, verdicts
from warpwright_upskill.evaluation.judge_repairs import copied, judge_repair
from warpwright_upskill.examples import HELD_OUT, REPAIR, TRAIN, Example, read_examples

SUMS = """\
__global__ void sums(const float* a, float* b, int R, int C) {
    __shared__ float partial[256];
    const int r = blockIdx.x;
    float sum = 0.0f;
    for (int c = threadIdx.x; c < C; c += blockDim.x) {
        sum += a[r * C + c];
    }
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (int d = 128; d > 0; d /= 2) {
        if (threadIdx.x < d) partial[threadIdx.x] += partial[threadIdx.x + d];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(&b[r], __shfl_sync(0xffffffff, partial[0], 0) / static_cast<float>(C));
}
"""


@pytest.fixture(scope="module")
def repairs(collected: Path) -> list[Example]:
    return [each for each in read_examples(collected) if each.task == REPAIR]


def repaired_answer(example: Example) -> str:
    """The answer that an example teaches."""
    return repair_answer(example.reasoning_steps[0], example.edits)


def test_each_mistake_changes_the_text_in_one_place() -> None:
    bugs = bugs_of(SUMS)
    assert {"barrier", "divergent-barrier", "mask", "stride", "accumulate", "halving", "atomic"} <= {
        bug.kind for bug in bugs
    }
    assert len({bug.kind for bug in bugs}) >= 18 and {bug.kind for bug in bugs} <= set(KINDS)
    for bug in bugs:
        assert bug.text != SUMS and abs(len(bug.text) - len(SUMS)) < 80
    assert bugs_of(SUMS) == bugs


def test_comments_are_left_alone() -> None:
    assert not bugs_of("// __syncthreads();\n#pragma unroll (threadIdx.x + 1);\n")


@pytest.mark.nvcc
def test_what_is_kept_was_said_by_a_tool_and_is_repaired_by_its_edits(repairs: list[Example]) -> None:
    assert len(repairs) > 4
    for example in repairs:
        assert example.message and example.reasoning_steps
        (kernel, *_) = analyze(Source("kernel.cu", example.source.encode())).defined_kernels
        proposal = read_blocks(repaired_answer(example), kernel)
        assert isinstance(proposal, Proposal)
        assert kernel.source.edited(list(proposal.edits)).text() == example.cuda_kernel
        assert (example.provenance.family in HELD_OUT_FAMILIES) == (example.split == HELD_OUT)
    assert {example.split for example in repairs} == {TRAIN, HELD_OUT}


@pytest.mark.nvcc
def test_a_race_is_said_by_the_lines_of_the_kernel() -> None:
    written = Written("b: i32  h: i32[64]\nh[b[i]] = sum[i] 1", "written", "bins_1x1", "bins_1x1_gathered")
    barrier = next(bug for bug in bugs_of(written.text()) if bug.kind == "barrier")
    right, wrong = verdicts([(replace(written, name="bins_1x2", kernel=""), ""), (written, barrier.text)])
    assert right.status == "correct"
    assert wrong.status == "wrong" and "with no __syncthreads() between" in wrong.said[0]
    (place,) = re.findall(r"line (\d+): ", wrong.said[0])
    assert "atomicAdd" in barrier.text.splitlines()[int(place) - 1]


@pytest.mark.nvcc
def test_it_is_asked_as_the_server_asks(repairs: list[Example]) -> None:
    example = repairs[0]
    rendered = render(example)
    assert rendered is not None
    assert rendered.prompt.startswith("// Task: make the kernel be correct\n// Kernel\n")
    assert example.source.strip() in rendered.prompt
    assert rendered.answer == repaired_answer(example)


@pytest.mark.nvcc
def test_a_judge_tells_a_repair_from_none(repairs: list[Example]) -> None:
    wrong = next(each for each in repairs if each.metrics.by.startswith("the emulator"))
    rejected = next(each for each in repairs if each.metrics.by == "nvcc")
    for example in (wrong, rejected):
        judged = judge_repair(example, repaired_answer(example))
        assert judged.is_right, judged
    assert not judge_repair(wrong, "I would add a barrier.").is_right
    assert not judge_repair(rejected, copied(rejected, [wrong])).is_right
