from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from warpwright.assist.child_engine import ChildEngine
from warpwright.assist.weights import ModelFile, assemble_default


@pytest.fixture(scope="session")
def engine() -> Iterator[ChildEngine]:
    model = assemble_default()
    assert isinstance(model, ModelFile), model
    with ChildEngine(model) as engine:
        yield engine


@pytest.fixture
def unused_engine() -> ChildEngine:
    """An engine whose model does not exist: it serves where no request is made."""
    return ChildEngine(ModelFile(Path("/nonexistent.gguf"), "none"))
