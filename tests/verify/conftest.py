from __future__ import annotations

from pathlib import Path

import pytest

SAMPLES = Path(__file__).parents[2] / "csrc_samples"


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine without a GPU, so that the outcome is the same on one with it."""
    from warpwright.missing import Missing
    from warpwright.verify import verify

    missing = Missing("gpu", "There is no GPU here (no NVIDIA driver).", "Run it on a machine with an NVIDIA GPU.")
    monkeypatch.setattr(verify, "find_gpu", lambda is_cancelled: missing)
