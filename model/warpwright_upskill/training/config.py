"""One training run's configuration: a typed record, read from TOML or JSON, written beside what was trained."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from warpwright_upskill.console import StageError
from warpwright_upskill.examples import TASKS

TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
_CHOICES = {
    "quantise": ("none", "nf4"),
    "device": ("auto", "cpu", "cuda"),
    "dtype": ("auto", "float32", "bfloat16"),
}
_MAY_BE_ZERO = (
    "rank",
    "examples",
    "max_steps",
    "pretrain_epochs",
    "seed",
    "judge_every",
    "warmup",
    "dropout",
    "replay",
)
_BELOW_ONE = ("dropout", "replay", "warmup")


@dataclass(frozen=True, slots=True)
class Config:
    """How to train; the same configuration, rows and machine give the same adapter.

    - `rank` and `alpha` of the LoRA matrices beside each of the projections `targets`; with rank 0 the projections
      themselves are trained.
    - `mix`: each task's share of the batches; a task without examples gives its share to the others.
    - `pretrain_epochs`: passes over the kernels' text before the tasks, with the loss on all of it.
    - `replay`: the share of the batches that comes from earlier rounds' rows, where such are given.
    - `examples`: rows of each task to train on, evenly spaced; 0 is all of them.
    - `batch`: rows of one step, over all processes; `tokens_at_once` bounds, padding counted, what one pass holds.
    - `quantise` "nf4" keeps the frozen weights in four bits (QLoRA); `recompute` trades time for memory.
    - `judge_every` steps `judged` held-back examples of each task are answered, `answers_at_once` side by side, and
      judged; after `patience` times without a better result training ends, and the best adapter is kept. 0 is never.
    - `save_every` steps the run is saved, to be gone on with after an interruption.
    - `max_steps` 0 is no limit.
    """

    rank: int = 32
    alpha: int = 64
    targets: tuple[str, ...] = TARGETS
    dropout: float = 0.05
    quantise: str = "none"
    recompute: bool = False
    learning_rate: float = 2e-4
    warmup: float = 0.1
    epochs: int = 2
    pretrain_epochs: int = 0
    examples: int = 0
    max_steps: int = 0
    batch: int = 32
    tokens_at_once: int = 32768
    max_tokens: int = 2048
    mix: tuple[tuple[str, float], ...] = (("formula", 0.4), ("plan", 0.3), ("repair", 0.3))
    replay: float = 0.2
    judge_every: int = 0
    judged: int = 200
    answer_tokens: int = 160
    answers_at_once: int = 512
    patience: int = 3
    save_every: int = 200
    seed: int = 0
    device: str = "auto"
    dtype: str = "auto"


def read_config(path: Path | None, changes: Sequence[str] = ()) -> Config:
    """The configuration in `path` (by its ending TOML or JSON), changed by `name=value` pairs.

    >>> read_config(None, ["rank=8", "mix={plan = 0.5, repair = 0.5}", "quantise=nf4"]).mix
    (('plan', 0.5), ('repair', 0.5))
    """
    values: dict[str, Any] = {}
    if path is not None:
        try:
            text = path.read_text(encoding="utf-8")
            values = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
        except OSError as error:
            raise StageError(f"{path}: cannot be read ({error.strerror}).") from None
        except ValueError as error:
            raise StageError(f"{path}: is no {path.suffix[1:].upper() or 'TOML'} ({error}).") from None
        if not isinstance(values, dict):
            raise StageError(f"{path}: holds no table of settings.")
    for change in changes:
        name, is_one, value = change.partition("=")
        if not is_one:
            raise StageError(f"--set: {change!r} is no name=value.")
        try:
            values[name] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            values[name] = value
    return _checked(values)


def _checked(values: Mapping[str, Any]) -> Config:
    kinds = {each.name: type(each.default) for each in fields(Config)}
    given: dict[str, Any] = {}
    for name, value in values.items():
        if name not in kinds:
            raise StageError(f"There is no setting {name!r}; there are {', '.join(kinds)}.")
        if name == "mix":
            given[name] = _mix(value)
        elif name == "targets":
            given[name] = _targets(value)
        else:
            given[name] = _scalar(name, kinds[name], value)
    config = Config(**given)
    if not config.rank and config.quantise != "none":
        raise StageError("rank = 0 trains the weights themselves, which quantise keeps frozen; set one of the two.")
    return config


def _scalar(name: str, kind: type, value: Any) -> Any:
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        raise StageError(f"The setting {name} is {value!r}, but must be of type {kind.__name__}.")
    if name in _CHOICES and value not in _CHOICES[name]:
        raise StageError(f"The setting {name} is {value!r}, but must be one of {', '.join(_CHOICES[name])}.")
    if isinstance(value, (int, float)) and kind is not bool:
        low = value >= 0 if name in _MAY_BE_ZERO else value > 0
        if not low or not math.isfinite(value) or (name in _BELOW_ONE and value >= 1):
            raise StageError(f"The setting {name} is {value!r}, which is out of its range.")
    return value


def _targets(value: Any) -> tuple[str, ...]:
    names = value.split(",") if isinstance(value, str) else value
    unknown = [each for each in names if each not in TARGETS] if isinstance(names, (list, tuple)) else [value]
    if unknown or not names:
        raise StageError(
            f"targets: {unknown[:1] or value!r} is no projection of Gemma 3; choose of {', '.join(TARGETS)}."
        )
    return tuple(names)


def _mix(value: Any) -> tuple[tuple[str, float], ...]:
    """Shares from a table, or from pairs as a saved configuration has them."""
    try:
        shares = {str(task): float(share) for task, share in dict(value).items()}
    except (TypeError, ValueError):
        raise StageError(f"mix: {value!r} is no table of tasks and their shares.") from None
    for task, share in shares.items():
        if task not in TASKS or not 0 <= share < math.inf:
            raise StageError(f"mix: {task} = {share} is no share of a task of {', '.join(TASKS)}.")
    if not any(shares.values()):
        raise StageError("mix: gives no task a share.")
    return tuple(shares.items())


def write_config(config: Config, path: Path) -> None:
    path.write_text(json.dumps(asdict(config), indent=2) + "\n", encoding="utf-8")
