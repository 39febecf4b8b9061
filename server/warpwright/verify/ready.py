"""What every first verification waits for, begun while the candidates are still being made."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from warpwright.cuda.extension.entries import is_extension
from warpwright.facts.resources import KernelResources
from warpwright.progress import CancelledError, IsCancelled
from warpwright.syntax.source import Source
from warpwright.toolchain.compile import compile_cubin
from warpwright.toolchain.driver import has_driver
from warpwright.verify import emulation, harness
from warpwright.verify.harness import Gpu, find_gpu, likely_arch, make_context
from warpwright.verify.verify import DEFAULT_ARCH

Resources = Callable[[], tuple[KernelResources, ...]]


def prepare() -> None:
    """Have the process started that will run kernels, as long before anyone asks for it as may be; returns at once."""
    if has_driver():
        harness.prepare()
    else:
        emulation.prepare()


@contextmanager
def getting_ready(
    original: Source, arch: str | None, flags: tuple[str, ...], is_cancelled: IsCancelled
) -> Iterator[Resources]:
    """Meanwhile the original is compiled, whose result is kept, and the process starts that will run it. What is not
    done at the end is given up. Yields what waits for the compilation and gives what its kernels take, nothing where
    it failed."""
    is_over = threading.Event()

    def must_stop() -> bool:
        return is_over.is_set() or is_cancelled()

    def start() -> None:
        if has_driver():
            with suppress(CancelledError):
                if isinstance(find_gpu(must_stop), Gpu):
                    make_context(must_stop)
        else:
            emulation.prepare()

    def compile_original() -> tuple[KernelResources, ...]:
        made_for = (likely_arch() if has_driver() else "") or arch or DEFAULT_ARCH
        try:
            return tuple(compile_cubin(original, arch=made_for, flags=flags, is_cancelled=must_stop).kernels.values())
        except CancelledError:
            return ()

    if is_extension(original):  # built otherwise, and not emulated
        yield tuple
        return
    with ThreadPoolExecutor(2) as threads:
        threads.submit(start)
        compiled = threads.submit(compile_original)
        try:
            yield compiled.result
        finally:
            is_over.set()
