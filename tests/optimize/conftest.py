from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from warpwright.assist.engine import Engine
from warpwright.assist.weights import ModelFile, assemble_default


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    model = assemble_default()
    assert isinstance(model, ModelFile), model
    with Engine(model) as engine:
        yield engine


@pytest.fixture
def unused_engine() -> Engine:
    """An engine whose model does not exist: it serves where no request is made."""
    return Engine(ModelFile(Path("/nonexistent.gguf"), "none"))
