"""Where warpwright keeps files of its own on the user's machine."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from platformdirs import user_cache_dir, user_config_dir, user_data_dir


def cache_dir() -> Path:
    """What can be made again: assembled weights, compilations. WARPWRIGHT_CACHE_DIR overrides it."""
    return Path(os.environ.get("WARPWRIGHT_CACHE_DIR") or user_cache_dir("warpwright", appauthor=False))


def data_dir() -> Path:
    """What took the user's own machine time to make: trained adapters. WARPWRIGHT_DATA_DIR overrides it."""
    return Path(os.environ.get("WARPWRIGHT_DATA_DIR") or user_data_dir("warpwright", appauthor=False))


def config_dir() -> Path:
    """What the user decided, such as which folders are trusted. WARPWRIGHT_CONFIG_DIR overrides it, where it is an
    absolute path: a relative one would be a project's."""
    given = os.environ.get("WARPWRIGHT_CONFIG_DIR", "")
    return Path(given) if Path(given).is_absolute() else Path(user_config_dir("warpwright", appauthor=False))


def read_kept(path: Path) -> Any:
    """What `write_kept` left there; None where there is nothing, or what is no JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def write_kept(path: Path, content: object) -> None:
    """Keep what JSON can say, whole or not at all; where it cannot be written it is made again the next time."""
    with suppress(OSError):
        write_whole(path, json.dumps(content, indent=1) + "\n")


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    Path(name).replace(path)
