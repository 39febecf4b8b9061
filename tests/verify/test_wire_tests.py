"""The tests of a package, run in a process of their own as on a machine with a GPU."""

from __future__ import annotations

import pytest
from warpwright.missing import Missing
from warpwright.progress import never_cancelled
from warpwright.verify import wire_tests
from warpwright.verify.harness import Gpu
from warpwright.verify.wire_tests import FailedTestsError, package_tests


def said(text: str) -> str:
    files = {"made/__init__.py": "ANSWER = 42\n", "tests/test_made.py": text}
    return package_tests(files, lambda *_: None, never_cancelled)


def test_without_a_gpu_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire_tests, "find_gpu", lambda _: Missing("gpu", "There is no GPU here.", ""))
    assert said("") == "The package was not built and its tests were not run: There is no GPU here."


def test_what_fails_is_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire_tests, "find_gpu", lambda _: Gpu("a GPU", "sm_90", {}))
    with pytest.raises(FailedTestsError, match="1 failed, 1 passed"):
        said("import made\ndef test_it():\n    assert made.ANSWER == 42\ndef test_no():\n    assert 1 == 2\n")


@pytest.mark.slow
def test_what_passes_or_is_left_out_is_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire_tests, "find_gpu", lambda _: Gpu("a GPU", "sm_90", {}))
    assert "1 passed" in said("import made\ndef test_it():\n    assert made.ANSWER == 42\n")
    assert said("import pytest\npytest.skip('no', allow_module_level=True)\n").startswith(
        "The package's tests were not run"
    )
