"""The model for one task: found, or the sentence that says what is missing."""

from __future__ import annotations

import importlib.util

from warpwright.assist.engine import Engine
from warpwright.assist.weights import INSTALL, find_adapter, find_model
from warpwright.missing import Missing
from warpwright.progress import Progress


def open_engine(spec: str | None, progress: Progress) -> Engine | Missing:
    """An Engine for the model that is asked for (None: the default). It starts its child with the first request."""
    if importlib.util.find_spec("llama_cpp") is None:
        return Missing("llama-cpp-python", "The model's runtime, llama-cpp-python, is not installed.", INSTALL)
    model = find_model(spec, progress)
    if isinstance(model, Missing):
        return model
    return Engine(model, find_adapter(model))
