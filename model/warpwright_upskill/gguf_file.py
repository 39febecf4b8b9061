"""GGUF files as a stage reads them: what is wrong with one ends the stage."""

from __future__ import annotations

from pathlib import Path

from warpwright.assist.taught import gguf_file
from warpwright.assist.taught.gguf_file import GgufError, GgufFile, fingerprint

from warpwright_upskill.console import StageError

__all__ = ["GgufFile", "fingerprint", "read_gguf"]


def read_gguf(path: Path) -> GgufFile:
    """Raises StageError for a file that is not there, is no GGUF or is cut off."""
    try:
        return gguf_file.read_gguf(path)
    except GgufError as error:
        raise StageError(str(error)) from None
