"""Command-line options that several stages share."""

from __future__ import annotations

import math
from pathlib import Path

import click
from warpwright.assist.weights import ModelFile, find_model
from warpwright.missing import Missing

from warpwright_upskill.console import StageError
from warpwright_upskill.examples import TASKS

model_option = click.option(
    "--model", default=None, help="Base model: a GGUF file or a Hugging Face name; default: the server's default model."
)


def find_base(spec: str | None) -> ModelFile:
    """The base model, found as the server finds it. Raises StageError with what to do where it is missing."""
    found = find_model(spec)
    if isinstance(found, Missing):
        raise StageError(str(found))
    return found


def read_mix(text: str) -> tuple[tuple[str, float], ...]:
    """Shares of tasks from the command line.

    >>> read_mix("plan=0.7,repair=0.3")
    (('plan', 0.7), ('repair', 0.3))
    """
    mix: list[tuple[str, float]] = []
    for part in text.split(","):
        task, _, share = part.partition("=")
        try:
            value = float(share)
        except ValueError:
            value = math.nan
        if task not in TASKS or not 0 <= value < math.inf or task in dict(mix):
            raise StageError(f"--mix: {part!r} is no task=share with a task of {', '.join(TASKS)}.")
        mix.append((task, value))
    if not any(share for _, share in mix):
        raise StageError("--mix: gives no task a share.")
    return tuple(mix)


def existing_file(path: Path, what: str) -> Path:
    if not path.is_file():
        raise StageError(f"{path}: no such file; {what}.")
    return path
