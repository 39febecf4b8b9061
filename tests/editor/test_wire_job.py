"""A kernel wired into PyTorch from the editor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from warpwright.editor.job_request import JobError
from warpwright.editor.wire_job import wire
from warpwright.missing import Missing
from warpwright.progress import never_cancelled
from warpwright.verify import wire as wiring

TEXT = """\
// y[i] = 2 * x[i]
__global__ void twice_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}
"""


def wired(folder: Path) -> Any:
    request = {"path": str(folder / "a.cu"), "text": TEXT, "open": {}, "settings": {}, "kernel": "twice_kernel"}
    return wire(request, lambda *_: None, never_cancelled)


@pytest.mark.nvcc
def test_the_package_lies_in_a_new_folder_beside_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wiring, "find_torch", lambda: Missing("torch", "There is no torch.", ""))
    monkeypatch.setattr(wiring, "package_tests", lambda *_: "not tested")
    answer = wired(tmp_path)
    assert answer["folder"] == str(tmp_path / "twice_torch")
    assert answer["summary"].startswith(f"Wrote {tmp_path / 'twice_torch'} for f32. f32: correct")
    assert "The operator was not compiled: There is no torch." in answer["summary"]
    assert "its fake kernel, backward and loader" in Path(answer["text"]).read_text(encoding="utf-8")
    assert (tmp_path / "twice_torch" / "twice" / "csrc" / "twice_autograd.cpp").is_file()
    with pytest.raises(JobError, match="is there already"):
        wired(tmp_path)
