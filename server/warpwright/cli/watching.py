"""A command that is run again as often as one of its files changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

import click

from warpwright.cli.inputs import find_inputs
from warpwright.cli.terminal import say_note
from warpwright.syntax.stamp import stamp_of

_SECONDS = 0.3


def watch(once: Callable[[], tuple[int, set[str]]], paths: Sequence[str]) -> int:
    """Until Ctrl-C. `once` gives its exit status and the files that it read; of folders new files count too."""
    while True:
        before = _stamps(paths, ())
        _, read = once()
        if {**_stamps(paths, read), **before} == (now := _stamps(paths, read)):  # nothing changed meanwhile
            say_note(f"watching {len(now)} file{'' if len(now) == 1 else 's'}; Ctrl-C ends it")
            while _stamps(paths, read) == now:
                time.sleep(_SECONDS)
        click.clear()


def _stamps(paths: Sequence[str], read: Iterable[str]) -> dict[str, object]:
    inputs = find_inputs(tuple(paths))
    return {path: stamp_of(path) for path in sorted({*read, *map(str, (*inputs.named, *inputs.walked))})}
