"""What a document is compiled with in the background."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from warpwright.editor.analysis import options_refused
from warpwright.editor.compile_job import compile_document, compiler_arguments
from warpwright.editor.settings import Settings
from warpwright.progress import never_cancelled, silent

KERNEL = "__global__ void k(float *a) { a[threadIdx.x] = SIZE; }\n"


def entry(folder: Path, command: str) -> None:
    commands = [{"directory": str(folder), "file": "a.cu", "command": f"nvcc {command} -c a.cu"}]
    (folder / "compile_commands.json").write_text(json.dumps(commands))


def test_the_projects_options_and_the_settings_architectures(tmp_path: Path) -> None:
    entry(tmp_path, "-DSIZE=3 --use_fast_math -arch=sm_80")
    path = str(tmp_path / "a.cu")
    architectures, options, _ = compiler_arguments(path, Settings())
    assert architectures == ("sm_80",)
    assert {"-DSIZE=3", "--use_fast_math"} <= set(options)
    assert compiler_arguments(path, Settings(architectures=("sm_90", "sm_120")))[0] == ("sm_90", "sm_120")


def test_no_program_of_the_project_is_run(tmp_path: Path) -> None:
    path = str(tmp_path / "src" / "a.cu")
    (tmp_path / "src").mkdir()
    for given in ("../tools/gcc", "/usr/bin/g++", "g++-12"):
        commands = [{"directory": str(tmp_path / "src"), "file": "a.cu", "command": f"nvcc -ccbin {given} -c a.cu"}]
        (tmp_path / "compile_commands.json").write_text(json.dumps(commands))
        _, options, _ = compiler_arguments(path, Settings())
        assert not [option for option in options if option.startswith("-ccbin")]
        assert "NVCC_CCBIN" in options_refused(path, Settings())[0]


def request(path: Path, text: str, **settings: object) -> dict[str, object]:
    return {"path": str(path), "text": text, "open": {str(path): text}, "settings": settings}


@pytest.mark.nvcc
def test_what_only_one_architecture_is_told_names_it(tmp_path: Path) -> None:
    text = "#if __CUDA_ARCH__ >= 900\n#warning new\n#endif\n" + KERNEL.replace("SIZE", "1")
    asked = request(tmp_path / "a.cu", text, architectures=["sm_80", "sm_90"])
    answer = compile_document(asked, silent, never_cancelled)
    assert answer["status"] == "compiled"
    assert [remark["message"] for remark in answer["remarks"]] == ["#warning new (sm_90)"]
    assert set(answer["kernels"]) == {"sm_80", "sm_90"}
    assert answer["kernels"]["sm_80"]["k"]["arch"] == "sm_80"


@pytest.mark.nvcc
def test_an_architecture_that_nvcc_does_not_know_is_no_error_of_the_text(tmp_path: Path) -> None:
    asked = request(tmp_path / "a.cu", KERNEL.replace("SIZE", "1"), architectures=["sm_999"])
    answer = compile_document(asked, silent, never_cancelled)
    assert (answer["status"], answer["remarks"]) == ("failed", [])
    assert "sm_999" in answer["reason"] or "compute_999" in answer["reason"]
