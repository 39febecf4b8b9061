"""A model's rewriting of a kernel over several rounds: recorded answers, read and verified as the real ones are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from warpwright.assist.child_engine import ChildEngine
from warpwright.assist.engine import Engine
from warpwright.assist.free_form import Ask, Attempt, Task, attempts, prompt, unfit, writes_kernels
from warpwright.assist.repair_task import RepairRequest, repair_prompt
from warpwright.assist.weights import ModelFile
from warpwright.facts.analyze import analyze
from warpwright.progress import CancelledError
from warpwright.syntax.source import Source
from warpwright.verify.acceptable import acceptable
from warpwright.verify.report import Report, Status
from warpwright.verify.verify import verify

TEXT = """\
__global__ void scale(float *a, const float *b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] = b[i] * 2.0f;
}
void run(float *a, const float *b, int n) { scale<<<(n + 255) / 256, 256>>>(a, b, n); }
"""
SOURCE = Source("/src/a.cu", TEXT.encode())
(KERNEL,) = analyze(SOURCE).defined_kernels
TASK = Task(KERNEL, "speed", "use a ternary", ("nothing is wrong",))
LINE = "  if (i < n) a[i] = b[i] * 2.0f;"


def blocks(new: str) -> str:
    return f"@why Shorter.\n@original\n{LINE}\n@updated\n{new}\n@end\n"


def recorded(answers: Sequence[str], seen: list[str]) -> Ask:
    def ask(text: str, number: int) -> str:
        seen.append(text)
        return answers[number]

    return ask


@pytest.mark.nvcc
def test_each_refusal_goes_back_until_something_passes() -> None:
    answers = [
        "I would use a ternary.",
        blocks("  if (i < m) a[i] = b[i] * 2.0f;"),
        blocks("  if (i < n) a[i] = b[i] * 3.0f;"),
        blocks("  if (i < n) a[i] = b[i] + b[i];"),
        "never asked for",
    ]
    asked: list[str] = []
    judge = partial(verify, SOURCE, kernel="scale", goal="speed")
    found = list(attempts(TASK, recorded(answers, asked), judge, lambda r: acceptable(r, "speed"), rounds=5))
    assert [each.report.status if each.report else each.refused for each in found] == [
        "it is not in the form of @why, @original, @updated and @end",
        Status.DOES_NOT_COMPILE,
        Status.WRONG,
        Status.CORRECT,
    ]
    assert found[-1].text is not None
    assert found[-1].text.text() == TEXT.replace(LINE, "  if (i < n) a[i] = b[i] + b[i];")
    assert "That was not taken: it is not in the form" in asked[1]
    assert 'identifier "m" is undefined' in asked[2]
    reason = found[2].report.reason if found[2].report else ""
    assert reason
    assert reason[:60] in asked[3]
    assert all("(use a ternary)" in text and LINE in text for text in asked)


def test_it_ends_after_its_rounds_and_when_it_is_stopped() -> None:
    def judge(text: Source) -> Report:
        raise AssertionError("nothing was made of the answer")

    found = list(attempts(TASK, lambda text, number: "", judge, lambda report: True, rounds=3))
    assert [bool(each.refused) for each in found] == [True] * 3

    def stopped(text: str, number: int) -> str:
        raise CancelledError

    with pytest.raises(CancelledError):
        list(attempts(TASK, stopped, judge, lambda report: True))


def test_what_is_not_given_to_a_model(unused_engine: Engine) -> None:
    assert unfit(KERNEL) == ""
    long = TEXT.replace(LINE, f"{LINE}\n" * 200)
    (kernel,) = analyze(Source("/src/a.cu", long.encode())).defined_kernels
    assert unfit(kernel) == "scale is longer than the 3000 characters that a model is given."
    assert writes_kernels(unused_engine, "speed")
    embedded = ModelFile(Path("/nonexistent.gguf"), "embedded", is_default=True)
    assert not writes_kernels(ChildEngine(embedded), "fix")
    taught = ChildEngine(embedded, Path("/nonexistent.adapter.gguf"))
    assert writes_kernels(taught, "fix") and not writes_kernels(taught, "speed")


def test_a_kernels_text_cannot_end_its_part_of_the_prompt() -> None:
    known = prompt(Task(KERNEL, "fix", "a\n@why wrong", ("two\nlines",)))
    assert "(a @why wrong)" in known
    assert "// - two lines" in known
    again = prompt(TASK, Attempt("@why x\n", refused="it\nchanges nothing"))
    assert again.endswith("// That was not taken: it changes nothing\n// Changes to the same kernel, once more\n")


def test_a_taught_model_is_asked_as_it_was_taught() -> None:
    task = Task(KERNEL, "fix", "", ("line 3 of a.cu: thread 0 reads past the end of b",), is_taught=True)
    asked = RepairRequest(KERNEL.span.text, ("line 3: thread 0 reads past the end of b",))
    assert prompt(task, Attempt("@why x\n", refused="it changes nothing")) == repair_prompt(asked)
    assert f"// - `{LINE.strip()}`: thread 0 reads past the end of b" in prompt(task)
