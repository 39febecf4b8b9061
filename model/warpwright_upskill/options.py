"""Command-line options that several stages share."""

from __future__ import annotations

import os
from pathlib import Path

import click
from warpwright.assist.weights import ModelFile, assemble_default, find_model
from warpwright.missing import Missing

from warpwright_upskill.console import StageError

model_option = click.option(
    "--model", default=None, help="Base model: a GGUF file or a Hugging Face name; default: Gemma 3 270M, untaught."
)


def find_base(spec: str | None) -> ModelFile:
    """The base model, which is not taught. Raises StageError with what to do where it is missing."""
    named = spec or os.environ.get("WARPWRIGHT_MODEL")
    found = find_model(named) if named else assemble_default()
    if isinstance(found, Missing):
        raise StageError(str(found))
    return found


def existing_file(path: Path, what: str) -> Path:
    if not path.is_file():
        raise StageError(f"{path}: no such file; {what}.")
    return path
