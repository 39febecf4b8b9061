"""The work behind the machine code in the editor; run by `worker`. The compiler's results are in the cache by then."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from warpwright.editor.compile_job import compiler_arguments
from warpwright.editor.settings import parse_settings
from warpwright.missing import Missing
from warpwright.progress import IsCancelled, Progress
from warpwright.syntax.source import Source
from warpwright.toolchain.compile import compile_cubin, compile_ptx
from warpwright.toolchain.find import Toolchain, find_toolchain
from warpwright.toolchain.machine_code import DisassemblyError
from warpwright.toolchain.machine_lines import lines_json, machine_lines
from warpwright.toolchain.machine_view import machine_view

Json = dict[str, Any]


def machine_code_lines(request: Json, progress: Progress, is_cancelled: IsCancelled) -> Json:
    """What each line of a document, and of what it includes, became for its first architecture.

    `lines` is as `toolchain.machine_lines` writes it, or None, and `reason` one sentence, where it is not known.
    """
    settings, _ = parse_settings(request["settings"])
    source = Source(request["path"], request["text"].encode("utf-8"))
    (arch, *_), flags, _ = compiler_arguments(source.path, settings)
    compiled = compile_cubin(
        source, arch=arch, flags=flags, timeout=settings.compile_seconds, is_cancelled=is_cancelled
    )
    if not compiled.ok:
        return {"lines": None, "reason": compiled.reason}
    ptx = compile_ptx(source, arch=arch, flags=flags, timeout=settings.compile_seconds, is_cancelled=is_cancelled)
    try:
        view = machine_view(compiled, ptx, is_cancelled)
    except DisassemblyError as error:
        return {"lines": None, "reason": str(error)}
    if isinstance(view, Missing):
        return {"lines": None, "reason": str(view)}
    files = {str(Path(source.path).absolute()), *own_files(compiled.included)}
    return {"lines": lines_json(machine_lines(view, files)), "reason": ""}


def own_files(included: tuple[str, ...]) -> tuple[str, ...]:
    """The included files that are not the toolkit's."""
    toolchain = find_toolchain()
    folders = toolchain.include_dirs if isinstance(toolchain, Toolchain) else ()
    homes = tuple(folder.resolve() for folder in folders)
    resolved = ((path, Path(path).resolve()) for path in included)
    return tuple(
        os.path.normpath(path) for path, real in resolved if not any(real.is_relative_to(home) for home in homes)
    )
