"""Command-line options that several stages share."""

from __future__ import annotations

from pathlib import Path

import click
from warpwright.assist.weights import ModelFile, find_model
from warpwright.missing import Missing

from warpwright_upskill.console import StageError

model_option = click.option(
    "--model", default=None, help="Base model: a GGUF file or a Hugging Face name; default: the server's default model."
)


def find_base(spec: str | None) -> ModelFile:
    """The base model, found as the server finds it. Raises StageError with what to do where it is missing."""
    found = find_model(spec)
    if isinstance(found, Missing):
        raise StageError(str(found))
    return found


def existing_file(path: Path, what: str) -> Path:
    if not path.is_file():
        raise StageError(f"{path}: no such file; {what}.")
    return path
