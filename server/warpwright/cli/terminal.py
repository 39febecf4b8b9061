"""What the commands share towards the person: errors, notes, progress, and Ctrl-C."""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import IO, Any

import click

from warpwright.progress import IsCancelled, Progress

COULD_NOT_RUN = 2  # the exit status where the input, the machine or the usage is to blame

QUIET_SECONDS = 1.0


class NumberRange(click.FloatRange):
    """As click's, without NaN, which is neither below nor above a bound."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        if math.isnan(found):
            self.fail(f"{value!r} is not a number", param, ctx)
        return found


class CannotRun(click.ClickException):
    """The command cannot do what was asked; the message is one sentence. Exit status 2."""

    exit_code = COULD_NOT_RUN

    def show(self, file: IO[Any] | None = None) -> None:
        say_error(self.format_message())


def say_error(message: str) -> None:
    click.echo(f"{click.style('error', fg='red', bold=True)}: {message}", err=True)


def say_warning(message: str) -> None:
    click.echo(f"{click.style('warning', fg='yellow', bold=True)}: {message}", err=True)


def say_note(message: str) -> None:
    click.echo(f"{click.style('note', fg='cyan')}: {message}", err=True)


def print_or_write(text: str, target: Path | None, *, styled: bool) -> None:
    """Print a text, or write it to a file, without colours where it is `styled`. Raises CannotRun."""
    if target is None:
        click.echo(text)
        return
    try:
        target.write_text(click.unstyle(text) if styled else text, encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise CannotRun(f"{target} cannot be written ({error.strerror})") from None
    say_note(f"written to {target}")


@contextmanager
def progress_line() -> Iterator[Progress]:
    """A Progress on stderr: one line that moves on a terminal, else a line for each step that takes over a second."""
    start = time.monotonic()
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress as Line
        from rich.progress import SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

        text = TextColumn("{task.description}", markup=False)
        columns = (SpinnerColumn(), text, TaskProgressColumn(), TimeElapsedColumn())
        with Line(*columns, console=Console(stderr=True), transient=True) as line:
            task = line.add_task("starting", total=None)

            def moving(message: str, share: float | None) -> None:
                line.update(task, description=message, total=None if share is None else 1.0, completed=share or 0.0)

            yield moving
        return

    current = ""
    ended = threading.Event()

    def lines(message: str, share: float | None) -> None:
        nonlocal current
        current = message

    def show() -> None:
        said = ""
        while not ended.wait(QUIET_SECONDS):
            if current != said:
                said = current
                click.echo(f"  {time.monotonic() - start:5.1f} s  {said}", err=True)

    shown = threading.Thread(target=show, daemon=True)
    shown.start()
    try:
        yield lines
    finally:
        ended.set()
        shown.join()


@contextmanager
def stop_on_ctrl_c() -> Iterator[IsCancelled]:
    """The first Ctrl-C asks the work to stop and keep what it has; the second ends the command at once."""
    asked = False

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        click.echo("\nStopping; Ctrl-C again stops at once.", err=True)

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)
