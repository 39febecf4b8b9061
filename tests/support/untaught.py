"""The model as it is before it was taught, named by the user."""

from __future__ import annotations

from warpwright.assist.weights import ModelFile, assemble_default


def untaught_model() -> dict[str, str]:
    """The variables that name it."""
    found = assemble_default()
    assert isinstance(found, ModelFile), found
    return {"WARPWRIGHT_MODEL": str(found.path)}
