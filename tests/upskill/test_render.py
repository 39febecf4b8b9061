"""What the model is trained on is what the server asks, word for word."""

from __future__ import annotations

from support.upskill import SAMPLES
from warpwright.assist.plan import plan_question
from warpwright.assist.prompts import generate_prompt, plan_prompt
from warpwright.facts.analyze import analyze
from warpwright.rewrites.registry import applicable
from warpwright.rules.registry import run_rules
from warpwright.syntax.source import read_source
from warpwright_upskill.data.render import plan_refusal, render
from warpwright_upskill.examples import KERNEL, PLAN, REPAIR, Example, Metrics, Provenance, Question

WHERE = Provenance("sample", "turn")


def checked(speedup: float = 1.0) -> Metrics:
    return Metrics("compiled", "nvcc", speedup=speedup)


def plan_example(analysis: str = "Each request takes 32 wavefronts.", rewrite: str = "pad-shared-array") -> Example:
    source = read_source(SAMPLES / "tiles" / "turn" / "kernel.cu")
    program = analyze(source)
    [kernel] = program.defined_kernels
    asked = plan_question(kernel, run_rules(program), applicable(kernel, "speed"), "speed")
    return Example(
        task=PLAN,
        problem="",
        reasoning_steps=(analysis,),
        kernel=kernel.name,
        provenance=WHERE,
        metrics=checked(2.4),
        question=Question(asked.goal, asked.kernel, asked.findings, asked.rewrites),
        source=source.text(),
        rewrites=(rewrite,),
    )


def test_a_plan_is_asked_for_as_the_server_asks() -> None:
    example = plan_example()
    program = analyze(read_source(SAMPLES / "tiles" / "turn" / "kernel.cu"))
    [kernel] = program.defined_kernels
    rendered = render(example)
    assert rendered is not None
    assert rendered.prompt == plan_prompt(
        plan_question(kernel, run_rules(program), applicable(kernel, "speed"), "speed")
    )
    assert "32 wavefronts/request" in rendered.prompt
    assert '"optimizations": ["pad-shared-array"], "estimated_speedup": 2.4' in rendered.answer


def test_an_answer_that_the_server_could_not_read_is_refused() -> None:
    assert plan_refusal(plan_example()) == ""
    assert "could not be read" in plan_refusal(plan_example(rewrite="no-such-rewrite"))
    assert "grammar" in plan_refusal(plan_example(analysis="32 wavefronts, not one."))
    assert "grammar" in plan_refusal(plan_example(analysis="Slow."))


def test_a_kernel_is_asked_for_by_what_it_computes() -> None:
    example = Example(
        task=KERNEL,
        problem="Add.",
        constraints=("It is named f.",),
        reasoning_steps=("one",),
        cuda_kernel="__global__ void f() {}",
        kernel="f",
        provenance=WHERE,
        metrics=checked(),
    )
    rendered = render(example)
    assert rendered is not None
    assert rendered.prompt == generate_prompt("Add. It is named f.")
    assert rendered.answer == "// Step: one\n__global__ void f() {}"


def test_what_the_server_does_not_ask_is_not_trained_on() -> None:
    example = Example(REPAIR, "Fix f.", WHERE, checked(), cuda_kernel="__global__ void f() {}", source="broken")
    assert render(example) is None
