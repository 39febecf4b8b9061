from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from warpwright.assist.engine import Engine
from warpwright.assist.weights import ModelFile, assemble_default


@pytest.fixture(scope="session")
def model() -> ModelFile:
    found = assemble_default()
    assert isinstance(found, ModelFile), found
    return found


@pytest.fixture(scope="session")
def engine(model: ModelFile) -> Iterator[Engine]:
    """The real model, shared by all tests of this folder: one start, one child."""
    with Engine(model) as engine:
        yield engine


@pytest.fixture
def unused_engine() -> Engine:
    """An engine whose model does not exist: it serves where no request is made."""
    return Engine(ModelFile(Path("/nonexistent.gguf"), "none"))
