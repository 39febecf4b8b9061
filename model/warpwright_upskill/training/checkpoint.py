"""A training run's state on disk, to be gone on with after an interruption to the same result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from warpwright_upskill.console import StageError
from warpwright_upskill.rows import Row
from warpwright_upskill.training.config import Config

FILE = "unfinished.pt"


@dataclass(slots=True)
class State:
    """`step` steps are done. `best` are the weights of the best judgement so far, None before the first."""

    step: int = 0
    losses: list[float] = field(default_factory=list)
    judged: list[dict[str, Any]] = field(default_factory=list)
    best: dict[str, Any] | None = None


def run_key(config: Config, base: str, rows: Sequence[Row], replayed: Sequence[Row]) -> str:
    """Names what a run depends on: a run of another configuration, model or data is another run."""
    said = {**asdict(config), "save_every": 0, "device": "", "base": base}
    digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode())
    for row in (*rows, *replayed):
        digest.update(repr((row.id, row.task, row.ids, row.answer_at, row.split)).encode())
    return digest.hexdigest()


def save_run(folder: Path, key: str, state: State, weights: dict[str, Any], optimizer: Any) -> None:
    """Written whole or not at all: an interruption while saving leaves the run as it was saved before."""
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f".{FILE}.part"
    saved = {name: getattr(state, name) for name in ("step", "losses", "judged", "best")}
    torch.save({"key": key, **saved, "weights": weights, "optimizer": optimizer.state_dict()}, unfinished)
    unfinished.replace(folder / FILE)


def load_run(folder: Path, key: str) -> tuple[State, dict[str, Any], dict[str, Any]] | None:
    """State, weights and the optimizer's state of a run that was interrupted; None where there is none.

    Raises StageError for a run of other settings or other rows.
    """
    import torch

    path = folder / FILE
    if not path.is_file():
        return None
    try:
        saved = torch.load(path, map_location="cpu", weights_only=True)
        state = State(saved["step"], saved["losses"], saved["judged"], saved["best"])
        weights, optimizer, of = saved["weights"], saved["optimizer"], saved["key"]
    except Exception as error:  # whatever a damaged file makes pickle and zipfile raise
        raise StageError(f"{path}: is damaged ({type(error).__name__}); remove it to begin again.") from None
    if of != key:
        raise StageError(f"{path}: is of a run with other settings, weights or rows; remove it, or give another --out.")
    return state, weights, optimizer
