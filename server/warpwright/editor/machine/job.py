"""The work behind the machine code in the editor; run by `worker`. The compiler's results are in the cache by then."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from warpwright.directories import cache_dir
from warpwright.editor.compile_job import compiler_arguments
from warpwright.editor.job_request import JobError, analysed
from warpwright.editor.settings import Settings, parse_settings
from warpwright.missing import Missing
from warpwright.progress import IsCancelled, Progress
from warpwright.syntax.encoding import encoded, shown
from warpwright.syntax.names import unqualified
from warpwright.syntax.source import Source
from warpwright.toolchain.compile import compile_cubin, compile_ptx
from warpwright.toolchain.find import Toolchain, find_toolchain
from warpwright.toolchain.machine_code import DisassemblyError
from warpwright.toolchain.machine_lines import lines_json, machine_lines
from warpwright.toolchain.machine_view import MachineView, machine_view

Json = dict[str, Any]
MOST_INSTANCES = 24
"""Of a template in one page: a hundred make a page of twenty megabytes."""


def machine_code_lines(request: Json, progress: Progress, is_cancelled: IsCancelled) -> Json:
    """What each line of a document, and of what it includes, became for its first architecture: `lines` is as
    `toolchain.machine_lines` writes it. Raises JobError where it is not known."""
    settings, _ = parse_settings(request["settings"])
    source = Source(request["path"], encoded(request["text"]))
    view, included = _view(source, settings, progress, is_cancelled)
    files = {os.path.normpath(Path(source.path).absolute()), *_own_files(included)}
    return {"lines": lines_json(machine_lines(view, files))}


def machine_code_pages(request: Json, progress: Progress, is_cancelled: IsCancelled) -> Json:
    """Write the pages of one kernel: `page` for a browser, of MOST_INSTANCES instances, and `text` as Markdown.

    `summary` says the instructions and registers of the first instance. Raises JobError.
    """
    from warpwright.editor.machine.html import machine_html
    from warpwright.editor.machine.listing import listing, resources_words
    from warpwright.editor.machine.markdown import machine_markdown

    progress("Reading the kernel", 0.0)
    analysis, settings = analysed(request)
    name = request["kernel"]
    view, _ = _view(analysis.source, settings, progress, is_cancelled)
    kernels = [each for each in view.kernels if unqualified(each.name) == name]
    if not kernels:
        raise JobError(f"nvcc made no instance of {name}: launch it or instantiate it in this file.")
    listings = [listing(each, view, analysis.program.sources.values()) for each in kernels[:MOST_INSTANCES]]
    stem = re.sub(r"\W+", "-", f"{Path(analysis.source.path).stem}-{name}-sass")
    page, text = (cache_dir() / "reports" / f"{stem}{suffix}" for suffix in (".html", ".md"))
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(shown(machine_html(listings, len(kernels) - len(listings))), encoding="utf-8")
        text.write_text(shown(machine_markdown(listings)), encoding="utf-8")
    except OSError as error:
        raise JobError(f"{error.filename} cannot be written ({error.strerror}); set WARPWRIGHT_CACHE_DIR.") from None
    first = kernels[0]
    more = f"; {len(kernels) - 1} more instances" if len(kernels) > 1 else ""
    summary = f"{first.name} on {view.arch}: {len(first.sass):,} SASS instructions, {resources_words(first)}{more}"
    return {"page": str(page), "text": str(text), "summary": summary}


def _view(
    source: Source, settings: Settings, progress: Progress, is_cancelled: IsCancelled
) -> tuple[MachineView, tuple[str, ...]]:
    """What became of a text for the first of its architectures, and the files that it includes. Raises JobError."""
    (arch, *_), flags, _ = compiler_arguments(source.path, settings)
    seconds = settings.compile_seconds
    progress(f"Compiling for {arch}", 0.1)
    compiled = compile_cubin(source, arch=arch, flags=flags, timeout=seconds, is_cancelled=is_cancelled)
    if not compiled.ok:
        raise JobError(compiled.reason)
    ptx = compile_ptx(source, arch=arch, flags=flags, timeout=seconds, is_cancelled=is_cancelled)
    progress("Disassembling", 0.7)
    try:
        view = machine_view(compiled, ptx, is_cancelled)
    except DisassemblyError as error:
        raise JobError(str(error)) from None
    if isinstance(view, Missing):
        raise JobError(str(view))
    return view, compiled.included


def _own_files(included: tuple[str, ...]) -> tuple[str, ...]:
    """The included files that are not the toolkit's."""
    toolchain = find_toolchain()
    folders = toolchain.include_dirs if isinstance(toolchain, Toolchain) else ()
    homes = tuple(folder.resolve() for folder in folders)
    resolved = ((path, Path(path).resolve()) for path in included)
    return tuple(
        os.path.normpath(path) for path, real in resolved if not any(real.is_relative_to(home) for home in homes)
    )
