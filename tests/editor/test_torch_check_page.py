"""`torch-check` as a page."""

from __future__ import annotations

from warpwright.editor.torch_check_page import torch_check_html
from warpwright.verify.torch_check import Found, TorchCheck


def test_faults_stand_out_and_what_a_program_says_is_escaped() -> None:
    found = (Found("eager", "ran", launches=1), Found("float16", "fallback", "<b>aten::mul</b> ran", cause="ops.py:6"))
    page = torch_check_html(TorchCheck("scale<T>", "2.13", "", ("k",), found, {"error": "<x>"}))
    assert "<code>scale&lt;T&gt;</code>" in page
    assert "<td><b>SILENT FALLBACK</b></td>" in page
    assert "&lt;b&gt;aten::mul" in page
    assert "not measured: &lt;x&gt;" in page
