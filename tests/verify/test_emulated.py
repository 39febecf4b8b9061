"""The ladder on the CPU: honest, wrong, racy, wild, endless and cheating candidates, each compiled and run."""

from __future__ import annotations

from pathlib import Path

import pytest
from verify.conftest import SAMPLES
from warpwright.progress import CancelledError
from warpwright.syntax.source import Source, read_source
from warpwright.verify import emulation
from warpwright.verify.acceptable import acceptable
from warpwright.verify.budget import Budget
from warpwright.verify.report import Level, Report, Status, What
from warpwright.verify.verify import verify

pytestmark = [pytest.mark.nvcc, pytest.mark.usefixtures("no_gpu", "small")]

TRANSPOSE = "memory/transpose_tiled"
SAXPY = "elementwise/saxpy"
SUMS = "reductions/reduce_interleaved"


LESS = Budget(10_000_000, 400_000_000, 200_000)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less work than a user's verification, to end sooner; what is endless is found sooner too."""
    monkeypatch.setattr(emulation, "BUDGET", LESS)


def run_changed(sample: str, *edits: tuple[str, str], goal: str = "speed") -> Report:
    source = read_source(SAMPLES / sample / "kernel.cu")
    text = source.text()
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return verify(source, Source(source.path, text.encode()), goal=goal)


def run_texts(folder: Path, original: str, candidate: str, goal: str = "speed") -> Report:
    path = str(folder / "a.cu")
    return verify(Source(path, original.encode()), Source(path, candidate.encode()), goal=goal)


def copying(statement: str) -> str:
    """A file with a kernel that does this for each element, and its launch."""
    return f"""// warpwright: array in[n] in
// warpwright: array out[n] out
__global__ void copy(const float* in, float* out, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {{ {statement} }}
}}
void host(const float* in, float* out, int n) {{ copy<<<(n + 127) / 128, 128>>>(in, out, n); }}
"""


def line_of(sample: str, words: str) -> int:
    lines = read_source(SAMPLES / sample / "kernel.cu").text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if words in line)


def test_an_honest_candidate_is_correct_and_never_faster() -> None:
    report = run_changed(TRANSPOSE, ("tile[TILE][TILE];", "tile[TILE][TILE + 1];"))
    assert report.status is Status.CORRECT
    assert report.levels[-1] is Level.CORRECT
    assert report.predicted is not None
    assert report.badge() == f"correct (emulator), predicted {report.predicted.speedup:.1f}x (H200), not timed"
    assert 1.2 < report.predicted.speedup < 3.0, "it takes 32 wavefronts for each that it needs from the tile"
    assert acceptable(report, "speed") and acceptable(report, "fix")
    assert not acceptable(report, "memory"), "padding takes more shared memory"

    shown = report.to_json()
    assert (shown["backend"], shown["speed"]) == ("emulator", [])
    assert (shown["predicted_speedup"], shown["predicted_for"]) == (report.predicted.speedup, "H200")
    assert {case["distribution"] for case in shown["cases"]} == {
        *("normal", "integers", "large", "zeros", "special", "threshold"),
        *("small", "offset", "ties", "huge", "ordered", "equal"),
        *("only in changed", "some elements of each input changed", "picked blocks"),
    }
    assert all(case["ok"] and case["max_abs"] == case["max_rel"] == 0.0 for case in shown["cases"])
    shapes = [case["shape"] for case in shown["cases"]]
    assert {"width": 509, "height": 251} in shapes
    assert all({shape[size] % 8 for shape in shapes} == set(range(8)) for size in ("width", "height"))
    assert any(note.startswith("not run whole at ") and "width = 4096, height = 4096" in note for note in report.notes)


def large_shift(rows: int, columns: int, place: str) -> str:
    return f"""__global__ void shift(const short* in, short* out, long long rows, long long columns) {{
    long long x = blockIdx.x * (long long)blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x < columns && y < rows) out[{place}] = in[{place}] >> 1;
}}
int main() {{
    long long rows = {rows}, columns = {columns};
    short *in, *out;
    cudaMalloc(&in, rows * columns * sizeof(short));
    cudaMalloc(&out, rows * columns * sizeof(short));
    shift<<<dim3((columns + 255) / 256, rows), 256>>>(in, out, rows, columns);
}}
"""


@pytest.mark.slow
def test_a_size_of_the_programs_own_that_is_too_large_is_run_in_part_or_named(tmp_path: Path) -> None:
    right, other = "y * columns + x", "x + columns * y"
    part = run_texts(tmp_path, large_shift(7000, 6000, right), large_shift(7000, 6000, other))
    assert (part.status, part.uncovered) == (Status.CORRECT, ())
    assert any(c.shape == {"rows": 7000, "columns": 6000} and c.distribution == "picked blocks" for c in part.cases)
    none = run_texts(tmp_path, large_shift(50000, 48000, right), large_shift(50000, 48000, other))
    assert none.status is Status.CORRECT
    assert [str(each.what) for each in none.uncovered] == ["size"]
    assert none.uncovered[0].text.startswith("rows = 50000, columns = 48000, the program's own size, was not run")


@pytest.mark.slow
def test_a_size_that_the_text_fixes_is_run_whole_though_it_is_large(tmp_path: Path) -> None:
    text = """#define N 512
    __global__ void turn(float* out, const float* in) {
        int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
        out[x * N + y] = in[y * N + x];
    }
    void host(float* out, const float* in) { turn<<<dim3(N / 32, N / 32), dim3(32, 32)>>>(out, in); }
    """
    other = "out[y * N + x] = in[x * N + y];"
    steps = text.replace("out[x * N + y] = in[y * N + x];", other)
    assert LESS.launch < 40 * 512 * 512, "what a launch takes"
    assert run_texts(tmp_path, text, steps).status is Status.CORRECT
    assert run_texts(tmp_path, text, steps.replace("in[x", "in[1 + x")).status is not Status.CORRECT
    large = run_texts(tmp_path, text.replace("512", "2048"), steps.replace("512", "2048"))
    assert large.status is Status.NOT_RUN
    assert "no shape is small enough to emulate" in large.reason


@pytest.mark.slow
def test_another_order_of_a_sum_is_correct_within_what_rounding_moves() -> None:
    text = read_source(SAMPLES / SUMS / "kernel.cu").text()
    body = text[text.index("for (") : text.index("if (threadIdx.x == 0)")]
    sequential = """for (int width = blockDim.x / 2; width > 0; width /= 2) {
        if (threadIdx.x < width) partial[threadIdx.x] += partial[threadIdx.x + width];
        __syncthreads();
    }
    """
    report = run_changed(SUMS, (body, sequential))
    assert report.status is Status.CORRECT, report.reason
    assert max(case.max_abs or 0.0 for case in report.cases) > 0.0
    assert all(case.max_abs == 0.0 for case in report.cases if case.distribution == "integers")


def test_a_lower_precision_is_wrong() -> None:
    report = run_changed(
        SAXPY,
        ("#include <cstdio>", "#include <cstdio>\n#include <cuda_fp16.h>"),
        ("a * x[i] + y[i]", "a * __half2float(__float2half(x[i])) + y[i]"),
    )
    assert report.status is Status.WRONG
    assert " values): y[" in report.reason and " and should be " in report.reason
    assert not acceptable(report, "speed")


def test_a_deleted_barrier_is_a_race_with_both_lines() -> None:
    report = run_changed(TRANSPOSE, ("    __syncthreads();\n", ""))
    assert report.status is Status.UNSAFE
    assert "with no __syncthreads() between" in report.reason
    assert f"line {line_of(TRANSPOSE, 'tile[threadIdx.y + j][threadIdx.x] =')}" in report.reason
    assert not any(acceptable(report, goal) for goal in ("speed", "memory", "fix"))


def test_a_missing_guard_writes_out_of_bounds() -> None:
    report = run_changed(SAXPY, ("if (i < n)", "if (i <= n)"))
    assert report.status is Status.UNSAFE
    assert f"line {line_of(SAXPY, 'a * x[i] + y[i]')} of kernel.cu" in report.reason
    assert "past the end of " in report.reason


def test_a_loop_without_an_end_is_stopped() -> None:
    report = run_changed(SAXPY, ("if (i < n)", "for (volatile int v = 0; i == 5; v = v + 1) {}\n    if (i < n)"))
    assert report.status is Status.TIMEOUT
    assert report.reason.startswith("The candidate does not finish at n = ")
    assert f"line {line_of(SAXPY, 'if (i < n)')} of kernel.cu" in report.reason


def test_a_candidate_that_waits_for_ever_is_unsafe_and_says_for_what(tmp_path: Path) -> None:
    plain = copying("out[i] = in[i];")
    waits = copying("if (threadIdx.x == 0) while (*(volatile float*)in != 12345.0f) {} out[i] = in[i];")
    report = run_texts(tmp_path, plain, waits)
    assert report.status is Status.UNSAFE
    assert "goes round a loop until byte 0 of in changes, and no thread changes it any more" in report.reason
    assert "line 5" in report.reason


@pytest.mark.slow
def test_an_original_that_waits_for_ever_is_not_its_candidates_fault(tmp_path: Path) -> None:
    waits = copying("if (threadIdx.x == 0) while (*(volatile float*)in != 12345.0f) {} out[i] = in[i];")
    also = waits.replace("!= 12345.0f", "!= 54321.0f")
    for candidate in (copying("out[i] = in[i];"), also, copying("for (volatile int v = 0;; v = v + 1) {}")):
        report = run_texts(tmp_path, waits, candidate)
        assert report.status is Status.NOT_RUN
        assert "the original is not sound here: line 5 of a.cu: thread" in report.reason


def test_right_for_one_size_only_is_wrong() -> None:
    report = run_changed(SAXPY, ("y[i] = ", "if (n != 1009) y[i] = "))
    assert report.status is Status.WRONG


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("new", "status", "words"),
    [
        ("", Status.WRONG, "out[0] was not written"),
        ("out[i] = in[i] + (n == 1000 ? 1 : 0);", Status.WRONG, "n = 1000"),
        ("out[i] = out[i];", Status.WRONG, "out[0] was not written"),
        ("out[i] = out[i] + in[i];", Status.UNSAFE, "which nothing has written"),
        ("const_cast<float*>(in)[i] = 1; out[i] = in[i];", Status.UNSAFE, "it changes its input in"),
        ("out[i] = in[i] * (1 + 1e-3f);", Status.WRONG, "and should be"),
        ("if (i & 1) out[i] = in[i];", Status.WRONG, "out[0] was not written"),
    ],
    ids=[
        "leaves-poison",
        "one-size",
        "keeps-what-was-there",
        "adds-to-what-was-there",
        "changes-input",
        "nearly",
        "every-other",
    ],
)
def test_cheats(tmp_path: Path, new: str, status: Status, words: str) -> None:
    report = run_texts(tmp_path, copying("out[i] = in[i];"), copying(new))
    assert (report.status, words in report.reason) == (status, True), report.reason
    assert not any(acceptable(report, goal) for goal in ("speed", "memory", "fix"))


def test_outputs_that_depend_on_nothing_prove_nothing(tmp_path: Path) -> None:
    """No value that is tried lies in that range, so the two look alike."""
    text = "out[i] = in[i] > 2.5e38f && in[i] < 3e38f ? {} : 0.0f;"
    report = run_texts(tmp_path, copying(text.format("1.0f")), copying(text.format("2.0f")))
    assert report.status is Status.NOT_RUN
    assert report.reason.endswith("are the same whatever its inputs hold, so comparing proves nothing.")


def test_where_the_original_is_at_fault_the_shape_proves_nothing() -> None:
    """The sample's threads leave before a barrier; what its candidate does is then not compared."""
    report = run_changed("stencils/stencil_1d", ("threadIdx.x", " threadIdx.x"))
    assert report.status is Status.NOT_RUN
    assert "the original is not sound here" in report.reason
    assert not report.cases


@pytest.mark.slow
def test_a_fix_of_what_the_original_does_wrong_in_every_run_is_cured(tmp_path: Path) -> None:
    races = """__global__ void turn(float *out, const float *in) {
    __shared__ float s[64];
    s[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = s[63 - threadIdx.x];
}
void host(const float *given) {
    float *in, *out;
    cudaMalloc(&in, 64 * sizeof(float));
    cudaMalloc(&out, 64 * sizeof(float));
    cudaMemcpy(in, given, 64 * sizeof(float), cudaMemcpyHostToDevice);
    turn<<<1, 64>>>(out, in);
}
"""
    waits = races.replace("    out[", "    __syncthreads();\n    out[")
    fixed = run_texts(tmp_path, races, waits, goal="fix")
    assert fixed.status is Status.CURED and acceptable(fixed, "fix") and not acceptable(fixed, "speed")
    assert run_texts(tmp_path, races, waits).status is Status.NOT_RUN
    for other in (
        waits.replace("out[", "if (threadIdx.x & 1) out["),
        races.replace("63 - threadIdx.x", "threadIdx.x ^ 32"),
    ):
        assert not acceptable(run_texts(tmp_path, races, other, goal="fix"), "fix")


def test_sizes_at_which_the_original_waits_for_ever_are_not_covered(tmp_path: Path) -> None:
    """The first thread of the second block waits for what nobody writes: one block alone ends."""
    waits = "volatile float* seen = out; if (blockIdx.x == 1 && threadIdx.x == 0) while (seen[0] != 1e30f) {} "
    report = run_texts(tmp_path, copying(waits + "out[i] = in[i];"), copying(waits + "out[i] = in[i] * 1.0f;"))
    assert report.status is Status.CORRECT
    sizes = [each.text for each in report.uncovered if each.what is What.SIZE]
    assert len(sizes) > len({tuple(case.shape.items()) for case in report.cases})
    assert all("was left out: " in text for text in sizes)
    assert report.coverage().startswith("not covered: ")
    assert not any("was left out: the original" in note for note in report.notes)


def test_what_cannot_be_emulated_is_said_by_name_and_line(tmp_path: Path) -> None:
    honest = copying("out[i] = in[i];")
    report = run_texts(tmp_path, honest, copying('asm volatile("griddepcontrol.wait;"); out[i] = in[i];'))
    assert report.status is Status.NOT_RUN
    assert report.reason == (
        "There is no GPU here (no NVIDIA driver). copy cannot be emulated: a.cu:5: programmatic dependent launch "
        "(griddepcontrol) is not emulated (`griddepcontrol.wait`)."
    )
    assert report.badge() == "compiled, not run: no GPU here, and it cannot be emulated"
    assert not acceptable(report, "speed"), "what was not run is never offered"


def test_a_cancel_ends_it() -> None:
    source = read_source(SAMPLES / SAXPY / "kernel.cu")
    said: list[str] = []
    with pytest.raises(CancelledError):
        verify(
            source,
            source,
            progress=lambda text, share: said.append(text),
            is_cancelled=lambda: any(text.startswith("Emulating at ") for text in said),
        )
    assert said[-1].startswith("Emulating at ")


@pytest.mark.slow
def test_a_kernel_in_a_header_is_run_as_the_file_that_includes_it_launches_it(tmp_path: Path) -> None:
    text = copying("out[i] = 2.0f * in[i];")
    kernel, host = text[: text.index("void host")], text[text.index("void host") :]
    header, main = Source(str(tmp_path / "kernels.h"), kernel.encode()), tmp_path / "main.cu"
    Path(header.path).write_bytes(header.data)
    main.write_text(f'#include "kernels.h"\n{host}')
    for edit, status in (("in[i] * 2.0f", Status.CORRECT), ("2.5f * in[i]", Status.WRONG)):
        candidate = Source(header.path, kernel.replace("2.0f * in[i]", edit).encode())
        assert verify(header, candidate, unit=read_source(main)).status is status
