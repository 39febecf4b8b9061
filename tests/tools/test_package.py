"""The wheel and the sdist work by themselves."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_a_bare_environment_checks_and_serves(tmp_path: Path) -> None:
    """Takes what the wheel requires from the package index."""
    package = runpy.run_path(str(ROOT / "tools" / "package.py"))
    sdist, wheel = package["build"](tmp_path)
    assert sdist.name.removesuffix(".tar.gz") == "-".join(wheel.name.split("-")[:2])
    package["try_out"](wheel)
