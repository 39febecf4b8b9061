"""What is released has one version, and the changelog says what is in it."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from warpwright import __version__

RELEASE = runpy.run_path(str(Path(__file__).resolve().parents[2] / "tools" / "release.py"))


def test_the_version_has_its_notes() -> None:
    assert set(RELEASE["versions"]().values()) == {__version__}
    notes = RELEASE["notes"](f"v{__version__}")
    assert notes.startswith("### ") and "\n## [" not in notes


def test_a_tag_of_another_version_is_refused() -> None:
    with pytest.raises(RELEASE["ReleaseError"], match="has version"):
        RELEASE["notes"]("v9.9.9")
