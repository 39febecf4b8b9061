"""What every first verification waits for, begun while the candidates are still being made."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from warpwright.problems.extension.entries import is_extension
from warpwright.progress import CancelledError
from warpwright.syntax.source import Source
from warpwright.toolchain.compile import compile_cubin
from warpwright.verify import emulation
from warpwright.verify.harness import find_gpu, has_driver, likely_arch
from warpwright.verify.verify import DEFAULT_ARCH


@contextmanager
def getting_ready(original: Source, arch: str | None, flags: tuple[str, ...]) -> Iterator[None]:
    """Meanwhile the original is compiled, whose result is kept, and the process starts that will run it. What is not
    done at the end is given up."""
    is_over = threading.Event()

    def start() -> None:
        if has_driver():
            with suppress(CancelledError):
                find_gpu(is_over.is_set)
        else:
            emulation.prepare()

    def compile_original() -> None:
        made_for = arch or (likely_arch() if has_driver() else "") or DEFAULT_ARCH
        with suppress(CancelledError):
            compile_cubin(original, arch=made_for, flags=flags, is_cancelled=is_over.is_set)

    if is_extension(original):  # built otherwise, and not emulated
        yield
        return
    with ThreadPoolExecutor(2) as threads:
        threads.submit(start)
        threads.submit(compile_original)
        try:
            yield
        finally:
            is_over.set()
