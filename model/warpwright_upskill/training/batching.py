"""The order in which rows are trained on, decided before the first step: a seed gives the same steps on any machine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import TypeVar

from warpwright_upskill.rows import PRETRAIN, Row
from warpwright_upskill.training.config import Config

Batch = tuple[Row, ...]
_T = TypeVar("_T")


def steps_of(rows: Sequence[Row], replayed: Sequence[Row], config: Config) -> list[Batch]:
    """All batches of a run: first the kernels' texts, then each epoch's tasks in their shares, with earlier rows."""
    random = Random(config.seed)
    texts = [row for row in rows if row.task == PRETRAIN]
    steps: list[Batch] = []
    for _ in range(config.pretrain_epochs):
        steps += _shuffled(_grouped(texts, config.batch, random), random)
    shares = dict(config.mix)
    own = [row for row in rows if shares.get(row.task, 0.0) > 0]
    old = [row for row in replayed if shares.get(row.task, 0.0) > 0]
    for _ in range(config.epochs):
        batches = _mixed(own, len(own), config, random)
        if old and own:
            batches += _mixed(old, round(len(own) * config.replay / (1 - config.replay)), config, random)
        steps += _shuffled(batches, random)
    return steps[: config.max_steps] if config.max_steps else steps


def _mixed(rows: Sequence[Row], count: int, config: Config, random: Random) -> list[Batch]:
    """About `count` rows in batches of one task each, the tasks in their shares of the batches."""
    by_task = {task: [row for row in rows if row.task == task] for task, share in config.mix if share > 0}
    whole = sum(share for task, share in config.mix if by_task.get(task))
    batches: list[Batch] = []
    for task, share in config.mix:
        if pool := by_task.get(task):
            batches += _grouped(drawn(pool, max(1, round(count * share / whole)), random), config.batch, random)
    return batches


def drawn(pool: Sequence[Row], count: int, random: Random) -> list[Row]:
    """`count` rows; all are used before one is used again.

    >>> rows = [Row(name, "plan", (2, 3, 1), 1) for name in "abc"]
    >>> sorted(row.id for row in drawn(rows, 4, Random(0)))[:3] != ["a", "a", "a"]
    True
    """
    found: list[Row] = []
    while len(found) < count:
        found += random.sample(pool, min(count - len(found), len(pool)))
    return found


def _grouped(rows: Sequence[Row], size: int, random: Random) -> list[Batch]:
    """Batches of `size` rows of about one length, so that little is padded; which of equal rows meet is random."""
    ordered = sorted(_shuffled(rows, random), key=lambda row: len(row.ids))
    return [tuple(ordered[at : at + size]) for at in range(0, len(ordered), size)]


def _shuffled(items: Sequence[_T], random: Random) -> list[_T]:
    return random.sample(items, len(items))


def passes(batch: Sequence[Row], tokens_at_once: int) -> list[Batch]:
    """A batch in parts that each hold at most so many tokens with their padding; a longer row is a part of its own.

    >>> [len(part) for part in passes([Row("", "plan", (2,) * n, 1) for n in (4, 5, 6, 9)], 12)]
    [2, 1, 1]
    """
    parts: list[Batch] = []
    part: list[Row] = []
    for row in sorted(batch, key=lambda each: len(each.ids)):
        if part and len(row.ids) * (len(part) + 1) > tokens_at_once:
            parts.append(tuple(part))
            part = []
        part.append(row)
    return [*parts, tuple(part)] if part else parts


def learning_rate_at(step: int, steps: int, config: Config) -> float:
    """Linear warm-up over the first `warmup` of the steps, then half a cosine down to nothing.

    >>> [round(learning_rate_at(s, 10, Config(learning_rate=1.0)), 3) for s in (0, 1, 9)]
    [1.0, 1.0, 0.03]
    """
    warm = max(1, round(steps * config.warmup))
    if step < warm:
        return config.learning_rate * (step + 1) / warm
    done = (step - warm) / max(1, steps - warm)
    return config.learning_rate * (1 + math.cos(math.pi * done)) / 2
