from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

FakeNvcc = Callable[[str], Path]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each test compiles into a cache of its own, so that nothing kept from before answers."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("WARPWRIGHT_CACHE_DIR", str(cache))
    return cache


@pytest.fixture
def fake_nvcc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNvcc:
    """A compiler that answers `--version` and does the given shell lines when it is asked to compile."""

    def make(body: str) -> Path:
        script = tmp_path / "nvcc"
        script.write_text(
            "#!/bin/sh\n"
            'case "$*" in\n'
            '  *--version*) echo "Cuda compilation tools, release 13.0, V13.0.88"; exit 0;;\n'
            "  *--dryrun*) exit 0;;\n"
            "esac\n" + body + "\n"
        )
        script.chmod(0o755)
        monkeypatch.setenv("WARPWRIGHT_NVCC", str(script))
        return script

    return make
