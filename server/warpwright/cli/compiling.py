"""What the compiler says of files, for `warpwright check --compile` and `warpwright facts --compile`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from warpwright.cli.inputs import Compiled, Resources, nvcc_flags
from warpwright.cli.terminal import CannotRun, say_warning
from warpwright.facts.resources import KernelResources
from warpwright.missing import Missing
from warpwright.progress import IsCancelled, Progress
from warpwright.syntax.source import SourceError, read_source
from warpwright.toolchain.compile import compile_cubin
from warpwright.toolchain.find import find_toolchain
from warpwright.toolchain.spilled import with_spills

AT_ONCE = 8
"""Compilers that run at the same time, at most: one can take a gigabyte."""


def compile_files(
    paths: Iterable[str | Path], compiled: Compiled, progress: Progress, is_cancelled: IsCancelled
) -> Resources:
    """Compile each file as the command line says; one that does not compile is named in a warning and left out.

    A file that cannot be read is left to whoever reads it next. Raises CannotRun where there is no compiler, and
    CancelledError.
    """
    toolchain = find_toolchain()
    if isinstance(toolchain, Missing):
        raise CannotRun(str(toolchain))
    names = list(dict.fromkeys(map(str, paths)))
    found: dict[str, tuple[KernelResources, ...]] = {}

    def build(path: str) -> tuple[KernelResources, ...] | str:
        try:
            source = read_source(path)
        except SourceError:
            return ()
        made = compile_cubin(
            source,
            arch=compiled.assumptions(source).arch,
            flags=nvcc_flags(compiled, source),
            is_cancelled=is_cancelled,
        )
        return tuple(with_spills(made, is_cancelled).values()) if made.ok else made.reason

    with ThreadPoolExecutor(min(os.cpu_count() or 1, AT_ONCE)) as pool:
        builds = {pool.submit(build, path): path for path in names}
        try:
            for done, future in enumerate(as_completed(builds), 1):
                path, result = builds[future], future.result()
                if isinstance(result, str):
                    say_warning(f"{path}: judged by its text alone: {result}")
                else:
                    found[path] = result
                progress(f"Compiled {done} of {len(names)} files", done / len(names))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    return found
