from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from warpwright.assist.child_engine import ChildEngine
from warpwright.assist.weights import ModelFile, assemble_default


@pytest.fixture(scope="session")
def model() -> ModelFile:
    found = assemble_default()
    assert isinstance(found, ModelFile), found
    return found


@pytest.fixture(scope="session")
def engine(model: ModelFile) -> Iterator[ChildEngine]:
    """The real model, shared by all tests of this folder: one start, one child."""
    with ChildEngine(model) as engine:
        yield engine


@pytest.fixture
def unused_engine() -> ChildEngine:
    """An engine whose model does not exist: it serves where no request is made."""
    return ChildEngine(ModelFile(Path("/nonexistent.gguf"), "none"))
