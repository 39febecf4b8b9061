"""Where files that are not read may launch a kernel, what relies on launches is done to a kernel beside it.

Its cases are in beside.md, laid out as those of the rewrites are.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cases import Case, check_case, read_cases
from support.findings import compile_errors, program
from support.pages import code, sections
from warpwright.facts.analyze import analyze
from warpwright.rewrites.base import Declined, Reliance, Rewrite, RewriteKind
from warpwright.rewrites.registry import all_rewrites, propose
from warpwright.syntax.source import Source
from warpwright.verify import emulation
from warpwright.verify.budget import Budget
from warpwright.verify.report import Status
from warpwright.verify.verify import verify

CASES = read_cases(Path(__file__).with_name("beside.md"))

TOTAL = """__global__ void total(float *out, const float *in, int rows, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int c = 0; c < columns; c++) sum += in[row * columns + c];
  out[row] = sum;
}
"""


def offered(text: str, rewrite: str, name: str = "kernel.cu") -> Rewrite | Declined:
    """The rewrite of the first kernel that it can be applied to, or the first kernel's refusal."""
    results = [propose(rewrite, kernel, None) for kernel in program(text, name).defined_kernels]
    return next((result for result in results if isinstance(result, Rewrite)), results[0])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_result_is_the_expected(case: Case) -> None:
    result = offered(case.text, case.rewrite, f"{Path(case.name).name}.cu")
    if isinstance(result, Declined):
        check_case(case, declined=result.reason)
    else:
        check_case(case, expected=result.apply().text())


@pytest.mark.sampled(6)
@pytest.mark.nvcc
@pytest.mark.parametrize("case", [case for case in CASES if case.expected is not None], ids=lambda case: case.id)
def test_what_is_written_compiles(case: Case) -> None:
    assert compile_errors(case.expected or "") == []


def test_a_kernel_in_a_header_has_no_copy() -> None:
    header = Source("total.cuh", TOTAL.encode())
    text = b'#include "total.cuh"\nvoid run(float *a, float *b, int n) { total<<<1, 32>>>(a, b, n, n); }\n'
    kernel = analyze(Source("a.cu", text), lambda _path, _name: header).kernel("total")
    assert kernel is not None
    declined = propose("add-restrict", kernel, None)
    assert isinstance(declined, Declined)
    assert declined.reason.startswith("total stands in a header, which other files may include, so launches may be")


def test_a_header_of_a_whole_program_is_edited() -> None:
    header = Source("total.cuh", TOTAL.encode())
    text = b'#include "total.cuh"\nint main() { float *a, *b; total<<<1, 32>>>(a, b, 9, 9); }\n'
    kernel = analyze(Source("a.cu", text), lambda _path, _name: header).kernel("total")
    assert kernel is not None
    made = propose("add-restrict", kernel, None)
    assert isinstance(made, Rewrite)
    assert (made.source, made.beside) == (header, "")


RELYING = [k for k in all_rewrites() if set(k.relies_on) - {Reliance.SHARED} and "fix" not in k.goals]
"""Those that need room in shared memory edit a kernel of which no launch gives some of that room away."""


@pytest.mark.sampled(12)
@pytest.mark.nvcc
@pytest.mark.parametrize("kind", RELYING, ids=lambda kind: kind.name)
def test_a_kernel_beside_gives_the_same(kind: RewriteKind, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first Before of each page: what the old kernel gave, the new one gives, by verification of the whole text."""
    monkeypatch.setattr(emulation, "BUDGET", Budget(4_000_000, 60_000_000, 200_000))
    made = offered(code(sections(kind.doc)["Before"])[0], kind.name)
    if isinstance(made, Declined):
        assert "so launches may be unseen, and the new code relies on" in made.reason
        return
    old = [kernel.span.text for kernel in program(made.source.text()).defined_kernels]
    now = made.apply()
    assert all(text in now.text() for text in old)
    report = verify(made.source, now, goal=kind.goals[0], backend="emulator", again=True)
    assert report.status is Status.CORRECT, (report.status, report.reason, report.notes)
