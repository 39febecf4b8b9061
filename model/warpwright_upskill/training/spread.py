"""One function over many items: here, in processes of this machine, or on the machines of a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import TypeVar

from warpwright.progress import Progress, silent

from warpwright_upskill.console import StageError

_In = TypeVar("_In")
_Out = TypeVar("_Out")
CHUNK = 64
HELP = "Where to verify: a number of processes here, `ray`, or `ray://host:10001`."


def spread(
    function: Callable[[_In], _Out], items: Sequence[_In], where: str = "1", progress: Progress = silent
) -> list[_Out]:
    """`function` of each item, in order. Raises StageError for a place that there is not."""
    chunks = [items[at : at + CHUNK] for at in range(0, len(items), CHUNK)]
    work = partial(_each, function)
    found: list[_Out] = []
    if where == "ray" or where.startswith("ray://"):
        return _on_ray(work, chunks, where, progress)
    if not where.isdecimal() or int(where) < 1:
        raise StageError(f"--workers: {where!r} is neither a number of processes nor `ray` or `ray://host:port`.")
    if where == "1":
        for number, chunk in enumerate(chunks, 1):
            found += work(chunk)
            progress(f"{len(found)} of {len(items)}", number / len(chunks))
        return found
    with ProcessPoolExecutor(int(where), mp_context=get_context("spawn")) as pool:
        for number, part in enumerate(pool.map(work, chunks), 1):
            found += part
            progress(f"{len(found)} of {len(items)}", number / len(chunks))
    return found


def _each(function: Callable[[_In], _Out], items: Sequence[_In]) -> list[_Out]:
    return [function(item) for item in items]


def _on_ray(
    work: Callable[[Sequence[_In]], list[_Out]], chunks: Sequence[Sequence[_In]], where: str, progress: Progress
) -> list[_Out]:
    """On a cluster every machine has warpwright installed; without an address the cluster is this machine."""
    import ray

    try:
        ray.init(where if where != "ray" else None, log_to_driver=False, include_dashboard=False, logging_level="ERROR")
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise StageError(f"--workers {where}: Ray does not answer ({str(error).splitlines()[0]}).") from None
    try:
        remote = ray.remote(num_cpus=1)(_called)
        waiting = [remote.remote(work, chunk) for chunk in chunks]
        found: list[_Out] = []
        for number, each in enumerate(waiting, 1):
            found += ray.get(each)
            progress(f"{len(found)} answers", number / len(waiting))
        return found
    finally:
        ray.shutdown()


def _called(work: Callable[[Sequence[_In]], list[_Out]], chunk: Sequence[_In]) -> list[_Out]:
    return work(chunk)
