"""Where warpwright keeps files of its own on the user's machine."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_dir, user_data_dir


def cache_dir() -> Path:
    """What can be made again: assembled weights, compilations. WARPWRIGHT_CACHE_DIR overrides it."""
    return Path(os.environ.get("WARPWRIGHT_CACHE_DIR") or user_cache_dir("warpwright", appauthor=False))


def data_dir() -> Path:
    """What took the user's own machine time to make: trained adapters. WARPWRIGHT_DATA_DIR overrides it."""
    return Path(os.environ.get("WARPWRIGHT_DATA_DIR") or user_data_dir("warpwright", appauthor=False))
