"""What every stage says to a person, and how it fails: one sentence, exit status 2, never a traceback."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from warpwright.assist.engine import EngineError
from warpwright.progress import Progress as Report
from warpwright.syntax.source import SourceError


class StageError(Exception):
    """A stage cannot go on; the message is one sentence: what happened and what to do."""


def fail(message: str) -> NoReturn:
    raise StageError(message)


def stage(command: click.Command) -> NoReturn:
    """Run a stage's command: exit 0 when it did its work, 2 when it could not."""
    settle_libraries()
    try:
        command()
    except (StageError, SourceError, EngineError) as error:
        _say(str(error))
        sys.exit(2)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("warpwright"):
            raise
        _say(f"The Python package {error.name} is not installed; run `pip install 'warpwright[upskill]'`.")
        sys.exit(2)
    sys.exit(0)


def settle_libraries() -> None:
    # Read by libraries when they are imported: no network, no progress bar but ours, and threads that wait for each
    # other sleep, since beside other work on the same cores spinning makes training several times slower.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TQDM_DISABLE", "1")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    # peft imports it where it is installed, and it tells who has no GPU of a package that would be faster.
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)


def _say(sentence: str) -> None:
    Console(stderr=True).print(f"error: {sentence}", style="bold red", highlight=False, markup=False, soft_wrap=True)


@contextmanager
def progress_bar(title: str, total: int) -> Iterator[Report]:
    """A bar on stderr that is told `(message, share done)`.

    Where stderr is no terminal: a line every tenth, and one for each message without a share.
    """
    console = Console(stderr=True)
    if console.is_terminal:
        with Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left:"),
            TimeRemainingColumn(),
            console=console,
        ) as bar:
            task = bar.add_task(title, total=total)
            yield lambda message, share: bar.update(
                task, description=f"{title}: {message}", completed=None if share is None else round(share * total)
            )
        return
    told = -1
    started = time.monotonic()

    def line(message: str, share: float | None) -> None:
        nonlocal told
        if share is None:
            print(f"{title}: {message}", file=sys.stderr, flush=True)
        elif int(share * 10) > told:
            told = int(share * 10)
            left = (time.monotonic() - started) * (1 - share) / share if share else 0
            estimate = f", about {left:.0f} s left" if 0 < share < 1 else ""
            print(f"{title}: {share:.0%} {message}{estimate}", file=sys.stderr, flush=True)

    yield line
