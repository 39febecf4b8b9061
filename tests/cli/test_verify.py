"""`warpwright verify`: the ladder from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.kernels import CLEAN, CONFLICT
from support.command import Ran, run_command

pytestmark = pytest.mark.nvcc

PADDED = CONFLICT.replace("tile[32][32]", "tile[32][33]")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "before.cu").write_text(CONFLICT, encoding="utf-8")
    (tmp_path / "after.cu").write_text(PADDED, encoding="utf-8")
    return tmp_path


def test_a_good_candidate(folder: Path) -> None:
    ran = run_command("verify", "before.cu", "after.cu", "--goal", "fix", cwd=folder)
    assert ran.status == 0
    rungs = {line.split()[0]: line.split()[1] for line in ran.stdout.splitlines()[2:7]}
    assert rungs["parsed"] == rungs["compiled"] == rungs["re-analysed"] == "yes"
    memory = next(line.split() for line in ran.stdout.splitlines() if "shared memory" in line)
    assert memory == ["shared", "memory", "4096", "B", "4224", "B", "+128", "B"]


@pytest.mark.slow
def test_as_markdown(folder: Path) -> None:
    ran = run_command("verify", "before.cu", "after.cu", "--goal", "fix", "--format", "markdown", cwd=folder)
    assert ran.status == 0
    assert ran.stdout.startswith("# `transpose`: ")
    assert "| shared memory | 4096 B | 4224 B | \\+128 B |" in ran.stdout


def test_json(folder: Path) -> None:
    ran = run_command("verify", "before.cu", "after.cu", "--goal", "fix", "--format", "json", cwd=folder)
    assert ran.status == 0
    report = ran.json
    assert {"status", "backend", "compile", "cases", "speed", "predicted_speedup", "reason"} <= report.keys()
    assert report["compile"]["shared_bytes"] == 4224
    assert report["compile"]["original"]["shared_bytes"] == 4096


@pytest.mark.slow
def test_more_memory_is_no_way_to_save_it(folder: Path) -> None:
    assert run_command("verify", "before.cu", "after.cu", "--goal", "memory", cwd=folder).status == 1


def test_a_candidate_that_does_not_compile(folder: Path) -> None:
    (folder / "after.cu").write_text(PADDED.replace("threadIdx.x];", "undeclared];", 1), encoding="utf-8")
    ran = run_command("verify", "before.cu", "after.cu", "--format", "json", cwd=folder)
    assert ran.status == 1
    assert ran.json["status"] == "does-not-compile"
    assert "undeclared" in ran.json["reason"]


@pytest.mark.slow
def test_a_candidate_with_a_new_defect(folder: Path) -> None:
    """The original is the good one here."""
    ran = run_command("verify", "after.cu", "before.cu", "--format", "json", cwd=folder)
    assert ran.status == 1
    assert [finding["rule"] for finding in ran.json["new_findings"]] == ["bank-conflict"]


def test_which_kernel(folder: Path) -> None:
    (folder / "two.cu").write_text(CONFLICT + CLEAN, encoding="utf-8")
    (folder / "two_after.cu").write_text(PADDED + CLEAN, encoding="utf-8")
    ran = run_command("verify", "two.cu", "two_after.cu", "--kernel", "scale", "--format", "json", cwd=folder)
    assert ran.json["kernel"] == "scale"
    ran = run_command("verify", "two.cu", "two_after.cu", "--kernel", "none", cwd=folder)
    assert ran.status == 2
    assert "no kernel 'none'; it has: transpose, scale" in ran.stderr


def test_all_kernels_that_a_change_may_reach(folder: Path) -> None:
    """A helper that both call changes: neither kernel's own text tells of it."""
    helper = "__device__ float twice(float a) { return 2 * a; }\n"
    kernels = "".join(
        f"__global__ void {name}(float* a, int n) {{\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) a[i] = twice(a[i]);\n}\n"
        for name in ("first", "second")
    )
    (folder / "old.cu").write_text(helper + kernels, encoding="utf-8")
    (folder / "new.cu").write_text(helper.replace("2 * a", "a + a") + kernels, encoding="utf-8")
    ran = run_command("verify", "old.cu", "new.cu", "--goal", "fix", "--format", "json", cwd=folder)
    assert [report["kernel"] for report in ran.json] == ["first", "second"]
    assert {report["status"] for report in ran.json} == {"correct"}
    (folder / "new.cu").write_text(helper + kernels.replace("twice(a[i])", "a[i] + a[i]", 1), encoding="utf-8")
    ran = run_command("verify", "old.cu", "new.cu", "--goal", "fix", "--format", "json", cwd=folder)
    assert ran.json["kernel"] == "first"


def test_a_kernel_by_itself_needs_a_reference(folder: Path) -> None:
    ran = run_command("verify", "before.cu", cwd=folder)
    assert ran.status == 2
    assert "nothing to verify before.cu against" in ran.stderr
    assert "Traceback" not in ran.stderr


REFERENCE = """\
def reference(*, n, factor, **inputs):
    print("noise on standard output")
    return {"data": inputs["data"][:n] * FACTOR}
"""
SCALE = """\
__global__ void scale(float* data, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] *= factor;
}
"""


def scale_with(folder: Path, reference: str) -> Ran:
    (folder / "scale.cu").write_text(SCALE, encoding="utf-8")
    (folder / "sample.toml").write_text('[kernels.scale]\nreference = "reference.py"\n', encoding="utf-8")
    (folder / "reference.py").write_text(reference, encoding="utf-8")
    return run_command("verify", "scale.cu", "--backend", "emulator", "--format", "json", cwd=folder)


def test_a_kernel_by_itself_against_its_reference(folder: Path) -> None:
    """In the emulator, with the reference in a process of its own; what it prints disturbs nothing."""
    pytest.importorskip("torch")
    ran = scale_with(folder, REFERENCE.replace("FACTOR", "factor"))
    assert ran.status == 0, ran.stdout + ran.stderr
    report = ran.json
    assert (report["status"], report["goal"], report["backend"]) == ("correct", "reference", "emulator")
    assert report["environment"]["judge"] == "reference"
    assert {"normal", "special", "only factor changed"} <= {case["distribution"] for case in report["cases"]}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("reference", "status", "words"),
    [
        (REFERENCE.replace("FACTOR", "2.25"), 1, "The kernel is wrong at"),
        ("def reference(**inputs):\n    return {}\n", 2, "does not have the kernel's size"),
        ("def reference(**inputs):\n    raise KeyError('a')\n", 2, "the reference failed (KeyError: 'a')"),
        ("import nothing_of_this_name\n", 2, "cannot be used (ModuleNotFoundError"),
        ("import os\n\ndef reference(**inputs):\n    os._exit(3)\n", 2, "the reference's process ended"),
    ],
)
def test_references_that_disagree_or_fail(folder: Path, reference: str, status: int, words: str) -> None:
    pytest.importorskip("torch")
    ran = scale_with(folder, reference)
    assert words in ran.json["reason"]
    assert ran.status == status


def test_a_python_without_torch_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPWRIGHT_GPU_PYTHON", "/nowhere/python")
    ran = scale_with(folder, REFERENCE)
    assert ran.status == 2
    assert "/nowhere/python cannot be started" in ran.json["reason"]


def test_bad_input(folder: Path) -> None:
    assert run_command("verify", "before.cu", "none.cu", cwd=folder).status == 2
    (folder / "empty.cu").write_text("", encoding="utf-8")
    ran = run_command("verify", "empty.cu", "after.cu", cwd=folder)
    assert ran.status == 2
    assert "no kernel (__global__ function)" in ran.stderr


def test_without_a_compiler(folder: Path) -> None:
    ran = run_command("verify", "before.cu", "after.cu", cwd=folder, env={"WARPWRIGHT_NVCC": "/nowhere/nvcc"})
    assert ran.status == 2
    assert "/nowhere/nvcc" in ran.stdout


def test_macros_and_folders_reach_the_compiler(folder: Path) -> None:
    (folder / "below").mkdir()
    (folder / "below" / "size.h").write_text("#define ROWS SIDE\n", encoding="utf-8")
    for name in ("before.cu", "after.cu"):
        text = (folder / name).read_text(encoding="utf-8").replace("tile[32]", "tile[ROWS]")
        (folder / name).write_text('#include "size.h"\n' + text, encoding="utf-8")
    assert run_command("verify", "before.cu", "after.cu", "--goal", "fix", cwd=folder).status == 1
    given = ("-DSIDE=32", "-I", "below", "--arch", "sm_80")
    ran = run_command("verify", "before.cu", "after.cu", "--goal", "fix", "--format", "json", *given, cwd=folder)
    assert ran.status == 0, ran.stderr
    assert ran.json["compile"]["arch"] == "sm_80"


def test_a_part_is_compiled_in_the_file_that_includes_it_and_run_as_that_launches_it(tmp_path: Path) -> None:
    part = "__global__ void scale(real* a, int n) { int i = threadIdx.x; if (i < n) a[i] = a[i] * FACTOR; }\n"
    (tmp_path / "part.cu").write_text(part, encoding="utf-8")
    (tmp_path / "same.cu").write_text(part.replace("a[i] * FACTOR", "FACTOR * a[i]"), encoding="utf-8")
    (tmp_path / "other.cu").write_text(part.replace("a[i] * FACTOR", "FACTOR + a[i]"), encoding="utf-8")
    (tmp_path / "main.cu").write_text(
        'using real = double;\n#define FACTOR 3\n#include "part.cu"\n'
        "int main() { real* d; cudaMalloc(&d, 96 * sizeof(real)); scale<<<1, 96>>>(d, 96); }\n",
        encoding="utf-8",
    )
    ran = run_command("verify", "part.cu", "same.cu", "--goal", "fix", "--format", "json", cwd=tmp_path)
    assert (ran.status, ran.json["status"], ran.json["kernel"]) == (0, "correct", "scale"), ran.stderr
    ran = run_command("verify", "part.cu", "other.cu", "--goal", "fix", "--format", "json", cwd=tmp_path)
    assert (ran.status, ran.json["status"]) == (1, "wrong")


def test_a_kernel_that_another_file_launches_is_run_as_there(tmp_path: Path) -> None:
    kernel = "__global__ void scale(float* a, int n, int by) { int i = threadIdx.x; if (i < n) a[i * by] *= 2; }\n"
    (tmp_path / "scale.cu").write_text(kernel, encoding="utf-8")
    (tmp_path / "same.cu").write_text(kernel.replace("i * by", "by * i"), encoding="utf-8")
    (tmp_path / "main.cu").write_text(
        "__global__ void scale(float* a, int n, int by);\n"
        "int main() { float* d; cudaMalloc(&d, 7 * 96 * 4); scale<<<1, 96>>>(d, 96, 7); }\n",
        encoding="utf-8",
    )
    ran = run_command("verify", "scale.cu", "same.cu", "--goal", "fix", "--format", "json", cwd=tmp_path)
    assert (ran.status, ran.json["status"]) == (0, "correct"), ran.stderr
    assert "guesses" not in ran.json or not ran.json["guesses"]
    assert not any("no launch" in note.lower() for note in ran.json["notes"])
