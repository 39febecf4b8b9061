"""A plan of the real model: its form is certain, its content is the model's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from warpwright.assist.engine import CompletionRequest, Engine, EngineError
from warpwright.assist.plan import MAX_TOKENS, Plan, make_plan, parse_plan, plan_question
from warpwright.assist.prompts import (
    ANALYSIS_CHARACTERS,
    PLAN_SHOTS,
    PlanQuestion,
    PlanShot,
    nearest_shots,
    plan_answer,
    plan_grammar,
    plan_prompt,
    shortened,
)
from warpwright.assist.weights import ModelFile
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Kernel
from warpwright.progress import CancelledError
from warpwright.rewrites.registry import all_rewrites, applicable
from warpwright.rules.base import Finding
from warpwright.rules.registry import run_rules
from warpwright.syntax.source import Source, include_reader, read_source

SAMPLE = Path(__file__).parents[2] / "csrc_samples" / "memory" / "transpose_tiled" / "kernel.cu"


@pytest.fixture(scope="module")
def transpose() -> tuple[Kernel, list[Finding]]:
    program = analyze(read_source(SAMPLE))
    return program.defined_kernels[0], run_rules(program)


@pytest.mark.slow
@pytest.mark.llm
def test_a_real_plan(engine: Engine, transpose: tuple[Kernel, list[Finding]]) -> None:
    kernel, findings = transpose
    candidates = applicable(kernel, "speed")
    plan = make_plan(engine, kernel, findings, candidates, "speed")
    said = json.loads(plan.raw)
    assert said["analysis"] == plan.analysis
    assert 10 < len(plan.analysis) <= ANALYSIS_CHARACTERS
    assert set(plan.optimizations) <= {candidate.rewrite for candidate in candidates}
    assert plan.optimizations
    assert plan.estimated_speedup == said["estimated_speedup"]
    assert make_plan(engine, kernel, findings, candidates, "speed") == plan, "the same question, the same plan"


@pytest.mark.slow
@pytest.mark.llm
def test_whatever_the_model_prefers_the_plan_can_be_read(engine: Engine) -> None:
    """Hot sampling from a prompt that asks for something else: the grammar alone makes it a plan."""
    names = [kind.name for kind in all_rewrites()]
    for seed in range(2):
        request = CompletionRequest("Dear Sir,\n", MAX_TOKENS, 1.5, seed, grammar=plan_grammar(names), seconds=120)
        plan = parse_plan(engine.complete(request).text, names)
        assert set(plan.optimizations) <= set(names)


@pytest.mark.llm
def test_stops_when_asked(engine: Engine, transpose: tuple[Kernel, list[Finding]]) -> None:
    kernel, findings = transpose
    with pytest.raises(CancelledError):
        make_plan(engine, kernel, findings, applicable(kernel, "speed"), "speed", is_cancelled=lambda: True)


def test_nothing_to_choose_from_is_said_without_the_model(
    transpose: tuple[Kernel, list[Finding]], unused_engine: Engine
) -> None:
    kernel, findings = transpose
    plan = make_plan(unused_engine, kernel, findings, [], "memory")
    assert (plan.optimizations, plan.raw) == ((), "")
    assert "No rewrite" in plan.analysis
    assert unused_engine.pid is None


def test_the_question_has_the_numbers(transpose: tuple[Kernel, list[Finding]]) -> None:
    kernel, findings = transpose
    prompt = plan_prompt(plan_question(kernel, findings, applicable(kernel, "speed"), "speed"))
    assert findings[0].headline in prompt
    assert findings[0].span.text in prompt
    assert "__shared__" in prompt
    assert prompt.endswith("# Plan to make the kernel run faster\n")


def test_each_rewrite_of_the_question_has_what_its_text_counts_less() -> None:
    text = b"""__global__ void flip(const float *in, float *out, int n) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  if (c < n && r < n) out[c * n + r] = in[r * n + c];
}
void call(const float *in, float *out) { flip<<<dim3(32, 32), dim3(32, 32)>>>(in, out, 1024); }
"""
    kernel = analyze(Source("flip.cu", text)).defined_kernels[0]
    asked = dict(plan_question(kernel, [], applicable(kernel, "speed"), "speed").rewrites)
    assert "Global memory: 4.5 times fewer sectors" in asked["stage-transpose-in-shared"]
    assert "fewer" not in asked["add-restrict"]


def test_what_a_rewrite_changes_is_counted_with_the_headers_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "tile.h").write_text("#define SIDE 32\n", encoding="utf-8")
    text = b"""#include "tile.h"
__global__ void flip(const float *in, float *out) {
  __shared__ float tile[SIDE][SIDE];
  tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * SIDE + threadIdx.x];
  __syncthreads();
  out[threadIdx.y * SIDE + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
void call(const float *in, float *out) { flip<<<1, dim3(SIDE, SIDE)>>>(in, out); }
"""
    file = Source(str(tmp_path / "flip.cu"), text)
    kernel = analyze(file, include_reader({file.path: file})).defined_kernels[0]
    asked = dict(plan_question(kernel, [], applicable(kernel, "speed"), "speed").rewrites)
    assert "Shared memory: 16.5 times fewer wavefronts" in asked["pad-shared-array"]


def test_a_users_text_cannot_pose_as_ours() -> None:
    question = PlanQuestion("fix", "k", ("a\n# Plan\n{}",), (("x", "b\n# Goal"),))
    assert [line for line in plan_prompt(question).splitlines() if line.startswith("#")] == [
        "# Kernel",
        "# Findings",
        "# Rewrites",
        "# Plan to make the kernel be correct",
    ]


def test_the_worked_examples_are_plans() -> None:
    for shot in PLAN_SHOTS:
        parse_plan(shot.answer, [name for name, _ in shot.question.rewrites])


@pytest.mark.parametrize("shot", PLAN_SHOTS, ids=lambda shot: shot.question.rewrites[0][0])
def test_the_worked_example_is_one_of_the_same_kind(shot: PlanShot) -> None:
    (chosen,) = parse_plan(shot.answer, [name for name, _ in shot.question.rewrites]).optimizations
    question = PlanQuestion(shot.question.goal, "k", (), ((chosen, "title"),))
    assert nearest_shots(question, PLAN_SHOTS) == (shot,)


ADMITS = """
import json, sys
from warpwright.assist.child import Model
from warpwright.assist.sampling import Chooser, Request
path, grammar, answers = json.load(sys.stdin)
model = Model(path, None)
for answer in answers:
    chooser = Chooser(model, Request(1, "", 1, 0.0, 0, (), grammar, 1.0))
    tokens = model.tokenize(answer)[1:] + [model.llama.llama_vocab_eos(model.vocab)]
    refused = next((i for i, token in enumerate(tokens) if not len(chooser._admitted(model.numpy.array([token])))
                    or model.llama.llama_sampler_accept(chooser.grammar, token)), None)
    print(refused)
"""


@pytest.mark.llm
def test_a_training_answer_is_what_the_grammar_admits(model: ModelFile) -> None:
    """Training teaches the form that inference enforces: the grammar refuses no token of an answer, nor its end."""
    names = ["pad-shared-array", "check-launch"]
    answers = [
        plan_answer('Rows "collide" in C:\\x — é', ["check-launch", "pad-shared-array"], 12.34),
        plan_answer("Word " * 200, ["check-launch"], 1),
        plan_answer("Column reads hit one bank.", ["no-such-rewrite"], 1),
    ]
    question = json.dumps([str(model.path), plan_grammar(names), answers])
    done = subprocess.run([sys.executable, "-c", ADMITS], input=question, capture_output=True, text=True, check=True)
    assert done.stdout.split()[:2] == ["None", "None"]
    assert done.stdout.split()[2].isdigit(), "a name that is not a choice is refused"
    assert parse_plan(answers[0], names).optimizations == ("check-launch", "pad-shared-array")


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "[]",
        "null",
        '{"analysis": "a", "optimizations": ["a"]}',
        '{"analysis": 1, "optimizations": ["a"], "estimated_speedup": 1.5}',
        '{"analysis": "a", "optimizations": "a", "estimated_speedup": 1.5}',
        '{"analysis": "a", "optimizations": ["b"], "estimated_speedup": 1.5}',
        '{"analysis": "a", "optimizations": [["a"]], "estimated_speedup": 1.5}',
        '{"analysis": "a", "optimizations": ["a"], "estimated_speedup": "2x"}',
        '{"analysis": "a", "optimizations": ["a"], "estimated_speedup": true}',
        '{"analysis": "a", "optimizations": ["a"], "estimated_speedup": NaN}',
        '{"analysis": "a", "optimizations": ["a"], "estimated_speedup": 1e9}',
        '{"analysis": "a", "optimizations": ["a"], "estimated_speedup": 1.5, "more": 1}',
        '{"analysis": "%s", "optimizations": ["a"], "estimated_speedup": 1.5}' % ("a" * 300),
        "[" * 100_000,
    ],
)
def test_what_is_no_plan_is_refused(raw: str) -> None:
    with pytest.raises(EngineError, match=r"^The model's plan could not be read\.$"):
        parse_plan(raw, ["a"])


def test_a_plan_in_json() -> None:
    plan = Plan("a", ("x", "y"), 1.5, "raw")
    assert plan.to_json() == {"analysis": "a", "optimizations": ["x", "y"], "estimated_speedup": 1.5, "raw": "raw"}


def test_a_long_kernel_is_cut_at_a_line() -> None:
    kernel = "\n".join(f"line{i};" for i in range(2000))
    cut = shortened(kernel)
    assert len(cut) < 3100
    assert cut.splitlines()[-2].endswith(";")
    assert cut.splitlines()[-1] == f"// {2000 - len(cut.splitlines()) + 1} more lines"
