"""A kernel from a comment: of what the model writes, the first that compiles, placed below the comment's line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from warpwright.assist.engine import Completion, CompletionRequest
from warpwright.assist.generate import Draft, read_draft
from warpwright.assist.weights import ModelFile
from warpwright.assist.worded_formula import Reading
from warpwright.editor import generate_job
from warpwright.editor.job_request import JobError
from warpwright.formulas.resolve import formula_of
from warpwright.optimize import drafting
from warpwright.progress import never_cancelled, silent
from warpwright.syntax.edits import TextEdit, apply_edits

TEXT = "// add\r\n__global__ void there(int* a) {\r\n}\r\n"
BROKEN = "__global__ void broken(float* a) { a[0] = a; }"
THERE = "__global__ void there(float* a) { a[0] = 1.0f; }"
RACY = (
    "__global__ void mirrored(float* c, const float* a) { __shared__ float t[64]; t[threadIdx.x % 64] = a[threadIdx.x];"
    " c[threadIdx.x] = t[63 - threadIdx.x % 64]; }"
)
HOST = "__global__ void f(float* a) { a[0] = system(1); }"
GOOD = "__global__ void add(float* c, const float* a) {\n    c[threadIdx.x] = a[threadIdx.x];\n}"


class _Engine:
    """Stands for a model: it is opened and closed; its drafts are the test's, and so is what it answers where it is
    shown what the compiler said."""

    model = ModelFile(Path("/none.gguf"), "a model")
    is_taught = False
    adapter = None
    answers: ClassVar[list[str]] = []
    asked: ClassVar[list[str]] = []

    def complete(self, request: CompletionRequest, *_: object, **__: object) -> Completion:
        self.asked.append(request.prompt)
        return Completion(self.answers.pop(0) if self.answers else "I cannot.", "end")

    def __enter__(self) -> _Engine:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def generated(
    monkeypatch: pytest.MonkeyPatch, *written: str, readings: tuple[Reading, ...] = (), words: str = "sort"
) -> Any:
    def drafts(*_: object, **__: object) -> Iterator[Draft]:
        yield from map(read_draft, written)

    monkeypatch.setattr(generate_job, "open_engine", lambda spec, progress: _Engine())
    monkeypatch.setattr(drafting, "drafts", drafts)
    monkeypatch.setattr(generate_job, "by_model", lambda *_: list(readings))
    asked = {"words": words, "placed": TEXT.index("__global__")}
    request = {"path": "a.cu", "text": TEXT, "open": {"a.cu": TEXT}, "settings": {}, "asked": asked}
    return generate_job.generate_kernel(request, silent, never_cancelled)


@pytest.mark.nvcc
def test_the_first_that_compiles_and_has_a_name_of_its_own_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = generated(monkeypatch, "I cannot.", THERE, BROKEN, GOOD)
    (choice,) = answer["choices"]
    assert choice["badge"] == "ran without a fault (emulator), results not compared"
    assert choice["explanation"].startswith("c holds float and is written; a holds float and is only read.")
    assert "nobody compared it" in choice["explanation"]
    after = apply_edits(TEXT.encode(), [TextEdit(*edit) for edit in choice["edits"]["a.cu"]]).decode()
    assert after == TEXT.replace("__global__", GOOD.replace("\n", "\r\n") + "\r\n__global__")


@pytest.mark.nvcc
def test_a_draft_that_does_not_compile_is_mended_by_a_rule_and_by_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    written = "__global__ void half_of(float* a, int n) {\n    int i = threadidx.x;\n    a[i] = a;\n}"
    answer = "@why It is halved.\n@original\n    a[i] = a;\n@updated\n    if (i < n) a[i] *= 0.5f;\n@end\n"
    monkeypatch.setattr(_Engine, "answers", [answer])
    (choice,) = generated(monkeypatch, written)["choices"]
    ((_, _, text),) = choice["edits"]["a.cu"]
    assert "int i = threadIdx.x;" in text
    assert "if (i < n) a[i] *= 0.5f;" in text
    by_rule, by_model = [line for line in choice["explanation"].splitlines() if line.startswith("Round")]
    assert "the rule misspelled-name mended it" in by_rule
    assert by_model.endswith("the model changed it: It is halved.")
    assert "float *" in _Engine.asked[-1], "it was shown what the compiler said"


@pytest.mark.nvcc
def test_limits_in_words_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    (choice,) = generated(monkeypatch, words="relu of x[n], n = 1000, in 8 kB on an RTX 4090")["choices"]
    assert "8,000 bytes of device memory at N = 1000 (x 4,000, y 4,000) fit in 8,000" in choice["explanation"]
    assert "of sm_89" in choice["explanation"]
    with pytest.raises(JobError, match=r"8,000 bytes .* do not fit in 7,000"):
        generated(monkeypatch, words="relu of x[n], n = 1000, in 7 kB on an RTX 4090")
    with pytest.raises(JobError, match=r"depends on I: say them, as in I = 1024"):
        generated(monkeypatch, words="relu of x, in 7 kB")


@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("I cannot.", "The model wrote no kernel."),
        (THERE, "The model wrote there, which is there already."),
        (BROKEN, "The model's kernel is not shown: it does not compile."),
        (RACY, "The model's kernel is not shown: it does wrong in a run: Thread .* byte 0 of t"),
        (HOST, "The model's kernel is not shown: it calls system"),
    ],
)
def test_what_is_no_use_is_not_offered(monkeypatch: pytest.MonkeyPatch, written: str, says: str) -> None:
    with pytest.raises(JobError, match=says):
        generated(monkeypatch, written)


@pytest.mark.nvcc
def test_what_the_model_reads_is_checked_and_marked_as_a_draft(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = generated(monkeypatch, readings=(Reading(formula_of("y[i] = 2 * x[i]"), votes="5 of 8"),))
    (choice,) = answer["choices"]
    assert choice["title"] == "y: draft, as 5 of 8 answers of the model read the words"
    assert choice["badge"].startswith("correct")
    ((_, _, text),) = choice["edits"]["a.cu"]
    assert text.startswith("// draft, read as: y[i] = 2 * x[i]  # 5 of 8 answers of the model; f32, any I\r\n")
