"""Which modules the doctest run leaves alone: the harness's import torch, which a machine without a GPU may lack."""

from __future__ import annotations

import importlib.util

_NEED_TORCH = ("buffers", "compare", "correctness", "session", "timing")

collect_ignore = [] if importlib.util.find_spec("torch") else [f"warpwright_harness/{name}.py" for name in _NEED_TORCH]
