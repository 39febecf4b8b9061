"""The model for one task: found, or the sentence that says what is missing."""

from __future__ import annotations

import importlib.util

from warpwright.assist.engine import Engine
from warpwright.assist.weights import INSTALL, find_adapter, find_model, look_for_model
from warpwright.missing import Missing
from warpwright.progress import Progress, silent


def open_engine(spec: str | None, progress: Progress = silent) -> Engine | Missing:
    """An Engine for the model that is asked for (None: the default). It starts its child with the first request.

    The default is opened with an adapter only: without one it writes in a minute nothing that may be shown.
    """
    if importlib.util.find_spec("llama_cpp") is None:
        return Missing("llama-cpp-python", "The model's runtime, llama-cpp-python, is not installed.", INSTALL)
    there = look_for_model(spec)
    if isinstance(there, Missing):
        return there
    adapter = find_adapter(there)
    if there.is_default and adapter is None:
        reason = f"No taught model is installed: {there.name} without an adapter writes no kernels."
        return Missing("taught model", reason, "Train an adapter (docs/upskill.md), or name a model of your own.")
    model = find_model(spec, progress)
    return model if isinstance(model, Missing) else Engine(model, adapter)
