"""The lower rungs of the ladder: what is compiled and analysed is real, and what was not run is said.

`test_emulated` has the upper ones without a GPU, `test_gpu` with one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from verify.conftest import SAMPLES
from warpwright.facts.analyze import analyze
from warpwright.progress import CancelledError
from warpwright.rewrites.base import Rewrite
from warpwright.rewrites.registry import propose
from warpwright.rules.base import Finding
from warpwright.rules.registry import run_rules
from warpwright.syntax.source import Source, read_source
from warpwright.verify.acceptable import acceptable
from warpwright.verify.changes import changed_findings
from warpwright.verify.report import ORIGINAL_REJECTED, Level, Report, Speed, Status
from warpwright.verify.verify import verify

pytestmark = pytest.mark.usefixtures("no_gpu")

TRANSPOSE = SAMPLES / "memory" / "transpose_tiled" / "kernel.cu"


SMALL = ("width = 4096, height = 4096", "width = 96, height = 64")


def changed(path: Path, *edits: tuple[str, str]) -> tuple[Source, Source]:
    """The text of a sample at a size that is soon run, and the same with edits."""
    text = read_source(path).text().replace(*SMALL)
    source = Source(str(path), text.encode())
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return source, Source(source.path, text.encode())


def finding_in(source: Source, rule: str) -> Finding:
    return next(f for f in run_rules(analyze(source)) if f.rule == rule)


@pytest.mark.nvcc
def test_a_candidate_that_was_only_compiled_is_told_as_that_and_not_offered() -> None:
    source = read_source(TRANSPOSE)
    finding = finding_in(source, "bank-conflict")
    kernel = analyze(source).kernel("transpose")
    assert kernel is not None
    rewrite = propose("pad-shared-array", kernel, finding.span)
    assert isinstance(rewrite, Rewrite)
    report = verify(source, rewrite.apply(), kernel="transpose", expect_gone=finding, backend="cuda")
    assert report.status is Status.NOT_RUN
    assert report.levels == (Level.PARSED, Level.COMPILED, Level.ANALYSED)
    assert report.finding_gone is True
    assert report.badge() == "compiled, not run: no GPU here"
    assert not acceptable(report, "speed") and not acceptable(report, "fix")
    assert not acceptable(report, "memory"), "padding takes more shared memory"

    shown = report.to_json()
    assert shown["backend"] == "none"
    assert shown["compile"]["shared_bytes"] == 33 * 32 * 4
    assert shown["compile"]["original"]["shared_bytes"] == 32 * 32 * 4
    assert shown["compile"]["registers"] > 0
    assert shown["compile"]["occupancy"]["fraction"] == 1.0
    assert {"status", "backend", "compile", "cases", "speed", "predicted_speedup", "reason"} <= shown.keys()


@pytest.mark.slow
@pytest.mark.nvcc
def test_a_finding_that_stays_is_said() -> None:
    source, candidate = changed(TRANSPOSE, ("int x = blockIdx.x", "int  x = blockIdx.x"))
    finding = finding_in(source, "bank-conflict")
    for goal in ("speed", "fix"):
        report = verify(source, candidate, goal=goal, expect_gone=finding)
        assert report.finding_gone is False
        assert report.reason == "The finding is still there."
        assert not acceptable(report, goal)


@pytest.mark.nvcc
def test_a_new_finding_is_said() -> None:
    padded, _ = changed(TRANSPOSE)
    _, original = changed(TRANSPOSE, ("tile[TILE][TILE];", "tile[TILE][TILE + 1];"))
    report = verify(original, padded)
    assert [f.rule for f in report.new_findings] == ["bank-conflict"]
    assert report.reason.startswith("It brings a new finding: bank-conflict at line ")
    assert not acceptable(report, "speed")


@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("int x = blockIdx.x", "int x = blockIdz.x", "blockIdz"),
        ("dim3 block(TILE, ROWS);", "dim3 block(TILE, ROWZ);", "ROWZ"),
    ],
    ids=["device", "host"],
)
def test_what_does_not_compile_is_never_offered(old: str, new: str, words: str) -> None:
    report = verify(*changed(TRANSPOSE, (old, new)))
    assert report.status is Status.DOES_NOT_COMPILE
    assert words in report.reason
    assert not any(acceptable(report, goal) for goal in ("speed", "memory", "fix"))


def test_a_syntax_error_needs_no_compiler_to_be_seen() -> None:
    report = verify(*changed(TRANSPOSE, ("if (x < width && y + j < height) {", "if (x < width && y + j < height {")))
    assert report.status is Status.DOES_NOT_COMPILE
    assert "a syntax error at line " in report.reason
    assert report.levels == ()
    assert not acceptable(report, "fix")


@pytest.mark.nvcc
def test_an_impossible_launch_is_wrong_even_where_nothing_runs() -> None:
    report = verify(*changed(TRANSPOSE, ("dim3 block(TILE, ROWS)", "dim3 block(TILE, 64)")))
    assert report.status is Status.WRONG
    assert "a block of 32 x 64 x 1 threads is larger than 1,024" in report.reason
    assert not acceptable(report, "speed")


@pytest.mark.nvcc
@pytest.mark.parametrize("name", [None, "transpose"])
def test_a_candidate_without_the_kernel_is_wrong_even_where_nothing_runs(name: str | None) -> None:
    source = read_source(TRANSPOSE)
    report = verify(source, Source(source.path, b"int main() {}"), kernel=name)
    assert report.status is Status.WRONG
    assert report.reason == "The candidate does not define transpose."
    assert not acceptable(report, "speed")


@pytest.mark.nvcc
def test_an_original_that_does_not_compile_is_nothing_to_compare_with(tmp_path: Path) -> None:
    path = str(tmp_path / "a.cu")
    broken = Source(path, b'#include "nowhere.h"\n__global__ void k(float* a) { a[0] = 1; }')
    report = verify(broken, Source(path, b"__global__ void k(float* a) { a[0] = 1; }"))
    assert report.status is Status.NOT_RUN
    assert report.reason.startswith("The original cannot be compiled here")
    assert not acceptable(report, "fix")


@pytest.mark.nvcc
def test_new_spills_are_said(tmp_path: Path) -> None:
    body = " ".join(f"float v{i} = a[{i} * n];" for i in range(80))
    total = " + ".join(f"v{i} * v{(i * 7 + 3) % 80}" for i in range(80))
    text = f"__global__ void BOUNDS k(float* a, int n) {{ {body} __syncthreads(); a[0] = {total}; }}"
    path = str(tmp_path / "a.cu")
    tight = Source(path, text.replace("BOUNDS", "__launch_bounds__(1024, 2)").encode())
    report = verify(Source(path, text.replace("BOUNDS", "").encode()), tight, kernel="k", backend="cuda")
    assert report.reached(Level.COMPILED)
    assert any(note.startswith("the candidate spills ") for note in report.notes)
    assert not any("spills" in note for note in verify(tight, tight, kernel="k", backend="cuda").notes)


@pytest.mark.nvcc
def test_memory_is_saved_only_where_it_is(tmp_path: Path) -> None:
    body = "t[threadIdx.x] = a[threadIdx.x]; __syncthreads(); a[threadIdx.x] = t[31 - threadIdx.x];"
    text = (
        "__global__ void k(float* a) {{ __shared__ float t[{}]; "
        + body
        + " }}\nvoid f(float* a) {{ k<<<1, 32>>>(a); }}"
    )
    path = str(tmp_path / "a.cu")
    large, small = (Source(path, text.format(n).encode()) for n in (64, 32))
    assert acceptable(verify(large, small, goal="memory"), "memory")
    assert not acceptable(verify(small, large, goal="memory"), "memory")
    assert not acceptable(verify(small, small, goal="memory"), "memory")


@pytest.mark.nvcc
def test_a_fix_of_what_does_not_compile_is_compiled_and_analysed() -> None:
    text = "__global__ void f(float *a) { a[threadIdx.x] *= 1.5f; }\nvoid run(float *a) { f<<<64, 256>>>(a); }\n"
    good, broken = Source("/src/f.cu", text.encode()), Source("/src/f.cu", text.replace("1.5f", "one").encode())
    report = verify(broken, good, kernel="f", goal="fix")
    assert report.status is Status.NOT_RUN
    assert report.levels == (Level.PARSED, Level.COMPILED, Level.ANALYSED)
    assert report.reason == "The original does not compile, so there is nothing to compare with."
    assert acceptable(report, "fix")
    staged = "__shared__ float s[32][32]; s[threadIdx.x % 32][threadIdx.x / 32] = 1; __syncthreads(); a[0] = s[0][0] *"
    conflict = Source("/src/f.cu", text.replace("a[threadIdx.x] *=", staged).encode())
    worse = verify(broken, conflict, kernel="f", goal="fix")
    assert [finding.rule for finding in worse.new_findings] == ["bank-conflict"]
    assert not acceptable(worse, "fix"), "a fix brings no new finding"
    assert verify(good, broken, kernel="f", goal="fix").status is Status.DOES_NOT_COMPILE


def test_a_cancel_stops_a_hanging_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "nvcc"
    script.write_text('#!/bin/sh\ncase "$*" in *--version*) echo V13.0.88;; *--dryrun*) ;; *) sleep 600;; esac\n')
    script.chmod(0o755)
    monkeypatch.setenv("WARPWRIGHT_NVCC", str(script))
    monkeypatch.setenv("WARPWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    source, candidate = changed(TRANSPOSE, ("int x = blockIdx.x", "int  x = blockIdx.x"))
    calls = iter(range(1000))
    with pytest.raises(CancelledError):
        verify(source, candidate, is_cancelled=lambda: next(calls) > 10)


def test_without_a_compiler_nothing_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPWRIGHT_NVCC", "/nowhere/nvcc")
    report = verify(*changed(TRANSPOSE, ("int x = blockIdx.x", "int  x = blockIdx.x")))
    assert report.status is Status.NOT_RUN
    assert report.badge() == "parsed, not compiled, not run: no nvcc here"
    assert "/nowhere/nvcc" in report.reason
    assert not acceptable(report, "fix")


def test_a_cancel_before_the_start_ends_it() -> None:
    source = read_source(TRANSPOSE)
    with pytest.raises(CancelledError):
        verify(source, source, is_cancelled=lambda: True)


CLEAN = (Level.PARSED, Level.COMPILED, Level.ANALYSED, Level.CORRECT)


@pytest.mark.parametrize(
    ("status", "speed", "fix"),
    [
        (Status.FASTER, True, True),
        (Status.INCONCLUSIVE, False, True),
        (Status.CORRECT, False, True),
        (Status.NOT_RUN, False, False),
        (Status.SLOWER, False, False),
        (Status.WRONG, False, False),
        (Status.UNSAFE, False, False),
        (Status.TIMEOUT, False, False),
        (Status.DOES_NOT_COMPILE, False, False),
    ],
)
def test_what_may_be_offered(status: Status, speed: bool, fix: bool) -> None:
    report = Report(status, CLEAN)
    assert (acceptable(report, "speed"), acceptable(report, "fix")) == (speed, fix)
    assert not acceptable(report, "memory")


def test_what_the_emulator_found_correct_may_be_offered_though_it_is_not_timed() -> None:
    report = Report(Status.CORRECT, CLEAN, backend="emulator")
    assert acceptable(report, "speed") and acceptable(report, "fix")
    assert not acceptable(report, "memory")
    assert not acceptable(Report(Status.CORRECT, CLEAN[:2], backend="emulator"), "speed")


def test_what_was_not_run_is_offered_as_a_fix_of_what_does_not_compile_alone() -> None:
    levels = CLEAN[:3]
    nothing_to_compare = Report(Status.NOT_RUN, levels, not_run_because=ORIGINAL_REJECTED)
    assert acceptable(nothing_to_compare, "fix")
    assert not acceptable(nothing_to_compare, "speed") and not acceptable(nothing_to_compare, "memory")
    assert not acceptable(replace(nothing_to_compare, levels=levels[:2]), "fix")
    for because in ("how to run it is not known", "no GPU here, and it cannot be emulated", "not verified", ""):
        assert not acceptable(Report(Status.NOT_RUN, levels, not_run_because=because), "fix")


def test_a_fix_that_leaves_the_finding_is_not_offered_however_fast() -> None:
    report = Report(Status.FASTER, CLEAN, finding_gone=False)
    assert acceptable(report, "speed")
    assert not acceptable(report, "fix")


@pytest.mark.parametrize(
    ("make", "badge"),
    [
        (
            lambda s: Report(Status.FASTER, backend="cuda:NVIDIA H200", speed=(s,)),
            "faster 1.9x (NVIDIA H200, 95% CI 1.86-1.93)",
        ),
        (lambda s: Report(Status.CORRECT, backend="cuda:NVIDIA H200"), "correct (NVIDIA H200)"),
        (lambda s: Report(Status.CORRECT, backend="emulator"), "correct (emulator), not timed"),
        (lambda s: Report(Status.DOES_NOT_COMPILE), "does not compile"),
        (lambda s: Report(Status.WRONG, CLEAN), "wrong"),
    ],
)
def test_badges_say_what_was_proved(make: Callable[[Speed], Report], badge: str) -> None:
    speed = Speed({"n": 1}, 190.0, 100.0, 1.9, (1.86, 1.93))
    assert make(speed).badge() == badge


def test_what_costs_time_alone_does_not_speak_against_the_cure_of_an_error() -> None:
    racing = """__global__ void total(float *sum, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sum[0] += in[i];
}
void run(float *sum, const float *in, int n) { total<<<(n + 255) / 256, 256>>>(sum, in, n); }
"""
    atomic = racing.replace("sum[0] += in[i]", "atomicAdd(&sum[0], in[i])")
    before, after = (run_rules(analyze(Source("a.cu", text.encode()))) for text in (racing, atomic))
    race = next(finding for finding in before if finding.rule == "global-memory-race")
    assert changed_findings(before, after, race) == (True, ())
    _, brought = changed_findings(before, after, None)
    assert [finding.rule for finding in brought] == ["contended-atomic"]
