"""The work behind the compiler's part in the editor: one document's text through nvcc; run by `worker`.

The text is the buffer's. What it includes nvcc reads from disk: where one of those files has unsaved changes nothing is
compiled, and a remark at the `#include` says so, since a result would be of a text that the user does not see.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path, PurePath

from warpwright.editor.analysis import compiled_as, compiler_options, options_refused, options_trouble
from warpwright.editor.includes import open_first, with_folders
from warpwright.editor.job_request import Json, is_saved
from warpwright.editor.settings import Settings, parse_settings
from warpwright.progress import IsCancelled, Progress
from warpwright.syntax.encoding import encoded
from warpwright.syntax.source import Source
from warpwright.toolchain.compilation import Compiled, Ending
from warpwright.toolchain.compile import compile_cubin
from warpwright.toolchain.messages import CompilerMessage
from warpwright.toolchain.remarks import Remark, line_span, remarks_of, ways_to_includes
from warpwright.toolchain.spilled import with_spills

_DRIVER = "nvcc: "


def compile_document(request: Json, progress: Progress, is_cancelled: IsCancelled) -> Json:
    """Compile a document for each architecture. The answer:

    `status`: "compiled"; "errors"; "waiting" for a file to be saved; "missing" where there is no compiler; "failed".
    `reason`: of the last two, one sentence. `remarks`: see `Remark`. `kernels`: {architecture: {name: what the kernel
    takes, as KernelResources}}, of all architectures or of none. `compiler`: "nvcc 13.0.88". `refused`: sentences on
    options that were left out, and on files of them that were not read.
    """
    settings, _ = parse_settings(request["settings"])
    source = Source(request["path"], encoded(request["text"]))
    refused = [
        each for each in (options_trouble(source.path, settings), *options_refused(source.path, settings)) if each
    ]
    return {**_compiled(source, settings, request, progress, is_cancelled), "refused": refused}


def _compiled(source: Source, settings: Settings, request: Json, progress: Progress, is_cancelled: IsCancelled) -> Json:
    opened = {path: Source(path, encoded(text)) for path, text in request["open"].items() if path != source.path}
    architectures, flags, folders = compiler_arguments(source.path, settings)
    ways = ways_to_includes(source, with_folders(open_first(opened), folders))
    unsaved = {path for path, other in opened.items() if Path(path).is_absolute() and not is_saved(other)}
    if waiting := _waiting(ways, unsaved):
        return _answer("waiting", remarks=waiting)
    done: list[Compiled] = []
    for index, arch in enumerate(architectures):
        progress(f"Compiling {PurePath(source.path).name} for {arch}", index / len(architectures))
        compiled = compile_cubin(
            source, arch=arch, flags=flags, timeout=settings.compile_seconds, is_cancelled=is_cancelled
        )
        if waiting := _waiting({path: line_span(source, 1) for path in compiled.included}, unsaved):
            return _answer("waiting", remarks=waiting)
        if compiled.ending is Ending.ERRORS and not _is_refused(compiled):
            return _answer("errors", compiled, remarks=remarks_of(compiled.messages, source, ways))
        if not compiled.ok:
            return _answer("missing" if compiled.ending is Ending.MISSING else "failed", compiled)
        done.append(compiled)
    remarks = remarks_of(_merged(done), source, ways)
    kernels = {
        each.arch: {name: asdict(taken) for name, taken in with_spills(each, is_cancelled).items()} for each in done
    }
    return {**_answer("compiled", done[-1], remarks=remarks), "kernels": kernels}


def compiler_arguments(path: str, settings: Settings) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The architectures that a file is compiled for, nvcc's options for it, and the folders of its includes."""
    assume, folders = compiled_as(path, settings)
    return settings.architectures or (assume.arch,), compiler_options(path, settings), folders


def _answer(status: str, compiled: Compiled | None = None, *, remarks: Iterable[Remark] = ()) -> Json:
    return {
        "status": status,
        "reason": compiled.reason if compiled is not None and status in ("missing", "failed") else "",
        "compiler": compiled.compiler if compiled is not None else "",
        "remarks": [remark.to_json() for remark in remarks],
        "kernels": {},
    }


def _waiting(ways: Mapping[str, tuple[int, int]], unsaved: set[str]) -> list[Remark]:
    return [
        Remark(start, end, "information", f"{PurePath(path).name} has unsaved changes: nvcc compiles once it is saved.")
        for path, (start, end) in ways.items()
        if path in unsaved
    ]


def _is_refused(compiled: Compiled) -> bool:
    """Whether nvcc rejects its own arguments, such as an architecture, and not the text."""
    return all(not each.line and each.text.startswith(_DRIVER) for each in compiled.messages)


def _merged(done: list[Compiled]) -> Iterator[CompilerMessage]:
    """What is said for all architectures alike once, the rest with the architecture."""
    for compiled in done:
        for message in compiled.messages:
            if all(message in other.messages for other in done):
                yield message
            else:
                yield replace(message, text=f"{message.text} ({compiled.arch})")
