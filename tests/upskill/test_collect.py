"""Examples are collected from real kernels, and only what the ladder passed is kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.upskill import SAMPLES, json_lines, ran
from warpwright.assist.plan import parse_plan
from warpwright.facts.analyze import analyze
from warpwright.rules.base import Severity
from warpwright.rules.registry import run_rules
from warpwright.syntax.source import Source
from warpwright.toolchain.compile import compile_cubin
from warpwright_upskill.examples import read_examples
from warpwright_upskill.render import render

pytestmark = pytest.mark.nvcc


def test_keeps_the_rewrite_that_cures_with_what_was_counted(collected: Path) -> None:
    turns = [
        e for e in read_examples(collected) if e.kernel == "turn" and e.task == "plan" and not e.provenance.structure
    ]
    assert [e.rewrites for e in turns] == [("pad-shared-array",), ("swizzle-shared-array",)]
    turn = turns[0]
    assert "[TILE + 1]" in turn.cuda_kernel and "[TILE + 1]" not in turn.source
    said = " ".join(turn.reasoning_steps)
    assert "32 wavefronts per request where 1 would do" in said
    assert "16.5 times fewer wavefronts" in said
    assert turn.metrics.speedup == pytest.approx(33 / (8 * 32 / (4.8e12 / 132 / 1.98e9)), abs=0.01)
    assert turn.metrics.speedup_basis == "counted"
    assert turn.provenance.family == "tiles/turn"
    assert turn.metrics.resources and turn.metrics.resources["registers"] > 0


def test_the_choice_is_not_given_away(collected: Path) -> None:
    for example in read_examples(collected):
        if example.question is not None:
            names = [name for name, _ in example.question.rewrites]
            assert len(names) >= 4 and len(set(names)) == len(names)
            assert set(example.rewrites) < set(names)
    first = [e.question.rewrites[0][0] for e in read_examples(collected) if e.question is not None]
    assert len(set(first)) > 1, "the right rewrite stands at different places"


def test_every_prompt_is_the_server_s_and_every_answer_is_one_it_reads(collected: Path) -> None:
    asked = 0
    for example in read_examples(collected):
        rendered = render(example)
        if rendered is None:
            continue
        asked += 1
        if example.question is None:
            assert rendered.prompt.startswith("// Task: ")
            assert rendered.answer.endswith(example.cuda_kernel.strip())
        else:
            assert "# Plan to make the kernel " in rendered.prompt.splitlines()[-1]
            plan = parse_plan(rendered.answer, [name for name, _ in example.question.rewrites])
            assert plan.optimizations == example.rewrites
    assert asked > 5


def test_what_is_written_has_no_finding_and_stands_alone(collected: Path) -> None:
    written = [e for e in read_examples(collected) if e.task == "kernel"]
    assert {e.provenance.family for e in written} == {"tiles/turn", "tiles/columns", "vectors/triple", "vectors/add"}
    for example in written:
        source = Source("alone.cu", example.cuda_kernel.encode())
        assert not [f for f in run_rules(analyze(source)) if f.severity in (Severity.ERROR, Severity.WARNING)]
        assert compile_cubin(source).ok
    assert all("constexpr int TILE = 32;" in e.cuda_kernel for e in written if e.kernel == "turn")


def test_says_why_the_rest_was_not_kept(collected: Path) -> None:
    rejected = json_lines(collected.with_suffix(".rejected.jsonl"))
    reasons = [r["reason"] for r in rejected if r["provenance"]["family"] == "vectors/half_written"]
    assert reasons and all("is undefined" in reason for reason in reasons)
    assert not [e for e in read_examples(collected) if e.provenance.family == "vectors/half_written"]


def test_one_source_stands_on_one_side(collected: Path) -> None:
    examples = read_examples(collected)
    sides = {side: {e.provenance.group for e in examples if e.split == side} for side in ("train", "held-out")}
    assert sides["train"] and sides["held-out"]
    assert not sides["train"] & sides["held-out"]
    assert {e.rewrites for e in examples if e.split == "train"} >= {("pad-shared-array",)}
    assert {e.rewrites for e in examples if e.split == "held-out"} >= {("pad-shared-array",)}


def test_is_the_same_again(collected: Path, tmp_path: Path) -> None:
    again = tmp_path / "examples.jsonl"
    ran("collect", "--samples", SAMPLES, "--no-pages", "--variants", "1", "--out", again)
    assert again.read_bytes() == collected.read_bytes()
