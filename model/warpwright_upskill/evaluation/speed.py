"""How fast a model answers, and what it holds in memory: idle, and beside two processes that never rest."""

from __future__ import annotations

import multiprocessing
import os
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from warpwright.assist.child_engine import ChildEngine
from warpwright.assist.engine import CompletionRequest, Engine
from warpwright.assist.formula_task import FormulaRequest, formula_prompt

TOKENS = 32
REPEATS = 3
SECONDS = 120.0
_COMMENTS = ("sum of every column", "softmax of each row", "relu of a plus b", "mean of the squares")


def measured(engine: Engine, before: str) -> dict[str, Any]:
    """First token with a warm prefix, tokens per second and the largest memory; `before` is what every prompt begins
    with. Raises EngineError."""
    _first(engine, before, 0)
    alone = _rates(engine, before)
    with _busy():
        beside = _rates(engine, before)
    load = os.getloadavg()[0]
    return {"idle": alone, "beside_two_busy": beside, "memory_mb": _memory(engine), "load_of_machine": round(load, 1)}


def _rates(engine: Engine, before: str) -> dict[str, float]:
    first = [_first(engine, before, number) for number in range(1, REPEATS + 1)]
    started = time.perf_counter()
    asked = f"{before}{formula_prompt(FormulaRequest(_COMMENTS[0]))}"
    done = engine.complete(CompletionRequest(asked, TOKENS, 1.0, seed=1, seconds=SECONDS))
    seconds = time.perf_counter() - started
    rate = done.tokens / seconds if done.tokens else 0.0
    return {"first_token_ms": round(1000 * statistics.median(first)), "tokens_per_second": round(rate, 1)}


def _first(engine: Engine, before: str, number: int) -> float:
    started = time.perf_counter()
    asked = f"{before}{formula_prompt(FormulaRequest(_COMMENTS[number % len(_COMMENTS)]))}"
    engine.complete(CompletionRequest(asked, 1, seconds=SECONDS))
    return time.perf_counter() - started


def _memory(engine: Engine) -> int | None:
    """The most that the model's process held, in MB."""
    status = Path(f"/proc/{engine.pid}/status") if isinstance(engine, ChildEngine) else None
    if status is None or not status.exists():
        return None
    lines = status.read_text(encoding="utf-8").splitlines()
    found = next((line for line in lines if line.startswith("VmHWM:")), "VmHWM: 0 kB")
    return int(found.split()[1]) // 1000


@contextmanager
def _busy() -> Iterator[None]:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_spin, daemon=True) for _ in range(2)]
    for each in processes:
        each.start()
    try:
        time.sleep(1.0)
        yield
    finally:
        for each in processes:
            each.kill()
            each.join()


def _spin() -> None:
    while True:
        pass
