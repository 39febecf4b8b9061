"""Many files checked side by side, each in one of a few processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing.process import BaseProcess

import click

from warpwright.cli.findings import Checked
from warpwright.cli.log import log_to_stderr


def check_many(check: partial[Checked], paths: Sequence[str], total: int) -> Iterator[Checked]:
    """What comes of each of them, as it comes; a terminal shows how far it is of a `total`."""
    tick = _Ticker(total)
    try:
        # A process that is killed takes the others' files with it: what is left is begun anew, then one by one.
        left = yield from _in_pool(check, paths, min(os.cpu_count() or 1, 16), tick)
        if left:
            left = yield from _in_pool(check, left, min(os.cpu_count() or 1, 16), tick)
        for path in left:
            if (yield from _in_pool(check, [path], 1, tick)):
                yield Checked(path, failure=f"{path}: the process that analysed it ended, again and again")
    finally:
        tick.clear()


def _in_pool(
    check: partial[Checked], paths: Sequence[str], processes: int, tick: _Ticker
) -> Generator[Checked, None, list[str]]:
    """What comes of each file, and those of which nothing came because a process ended."""
    left: list[str] = []
    futures: dict[Future[Checked], str] = {}
    with ProcessPoolExecutor(processes, initializer=_start_worker) as pool:
        try:
            with _ctrl_c_held():
                for path in paths:
                    try:
                        futures[pool.submit(check, path)] = path
                    except BrokenProcessPool:
                        left.append(path)
            for future in as_completed(futures):
                try:
                    checked = future.result()
                except BrokenProcessPool:
                    left.append(futures[future])
                    continue
                tick()
                yield checked
        except BaseException:
            # Nobody waits for the rest: end what is running, so that Ctrl-C is felt at once.
            for worker in multiprocessing.active_children():
                worker.terminate()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return sorted(left)


def _start_worker() -> None:
    """Set up a process of the pool, and end it with the command, which may be killed without a word to it."""
    log_to_stderr()
    command = multiprocessing.parent_process()
    if command is not None:
        threading.Thread(target=_end_with, args=(command,), daemon=True).start()


def _end_with(command: BaseProcess) -> None:
    command.join()
    os._exit(1)


@contextmanager
def _ctrl_c_held() -> Iterator[None]:
    """Ctrl-C waits until the processes have started: an interrupt half-way leaves a pool that cannot be ended.

    The processes inherit the block: Ctrl-C reaches every process of a terminal, and this one handles it for all.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Ticker:
    """How far a long check is, on a terminal, from its second second on."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        self.start = time.monotonic()
        self.live = sys.stderr.isatty()

    def __call__(self) -> None:
        self.done += 1
        if self.live and time.monotonic() - self.start > 1:
            click.echo(f"\rchecked {self.done} of {self.total} files", nl=False, err=True)

    def clear(self) -> None:
        if self.live:
            click.echo("\r\033[K", nl=False, err=True)
