"""The model for one task: found, or the sentence that says what is missing."""

from __future__ import annotations

import importlib.util

from warpwright.assist.child_engine import ChildEngine
from warpwright.assist.endpoint import Endpoint, named_endpoint
from warpwright.assist.endpoint_engine import EndpointEngine
from warpwright.assist.engine import Engine
from warpwright.assist.weights import INSTALL, ModelFile, find_adapter, find_model, look_for_model
from warpwright.missing import Missing
from warpwright.progress import Progress, silent


def open_engine(spec: str | None, progress: Progress = silent) -> Engine | Missing:
    """An Engine for the model that is asked for (None: the default). A file is loaded with the first request."""
    named = named_model(spec)
    if isinstance(named, Endpoint):
        return EndpointEngine(named)
    if importlib.util.find_spec("llama_cpp") is None:
        return Missing("llama-cpp-python", "The model's runtime, llama-cpp-python, is not installed.", INSTALL)
    if isinstance(named, Missing):
        return named
    model = find_model(spec, progress)
    return model if isinstance(model, Missing) else ChildEngine(model, find_adapter(model))


def named_model(spec: str | None) -> ModelFile | Endpoint | Missing:
    """The model that would be asked, at once: the user's own, by a setting (`spec`) or WARPWRIGHT_MODEL, or the
    default."""
    return named_endpoint(spec) or look_for_model(spec)
