"""Findings of files that are not open, as plain data; run by `worker`, so that nobody who types waits for them."""

from __future__ import annotations

import logging
import os
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from warpwright.editor.analysis import analyse
from warpwright.editor.diagnostics import Diagnostic, diagnostics
from warpwright.editor.includes import open_first
from warpwright.editor.settings import parse_settings
from warpwright.editor.stoppable import TookTooLongError, done_within
from warpwright.editor.text import Encoding, Text
from warpwright.progress import CancelledError, IsCancelled, Progress
from warpwright.syntax.source import Source, SourceError, Span, read_source

log = logging.getLogger(__name__)
FILE_SECONDS = 20.0
MOST_ENTRIES = 20_000
"""Files and folders of an opened folder that are listed, so that a home folder costs no more than a project."""
Json = dict[str, Any]
Place = tuple[int, int, int, int]
"""Line and character of the start and of the end, 0-based, in the units agreed with the editor."""


def check_files(request: Json, _progress: Progress, is_cancelled: IsCancelled) -> Json:
    """The findings of each of `files` ({"path", "settings"}) as it is on disk; `encoding` is that of their places.

    A file that cannot be read, or is not followed within FILE_SECONDS, has none.
    {"files": [[{"place", "severity", "rule", ...}, ...], ...]}
    """
    checked: list[list[Json]] = []
    for file in request["files"]:
        if is_cancelled():
            raise CancelledError
        try:
            one = partial(_checked, file["path"], file["settings"], request["encoding"])
            checked.append(done_within(FILE_SECONDS, one))
        except TookTooLongError as error:
            log.warning("%s is not analysed: %s", file["path"], error)
            checked.append([])
    return {"files": checked}


def cuda_files(folder: Path, most: int) -> tuple[list[Path], bool]:
    """The first `most` .cu files of a folder and those below it by name, hidden folders left out, and whether there may
    be more."""
    found: list[Path] = []
    pending = [folder]
    listed = 0
    while pending:
        entries = _entries(pending.pop(), MOST_ENTRIES - listed)
        listed += len(entries)
        files, folders = _parted(entries)
        if len(found) + len(files) > most or listed == MOST_ENTRIES:
            return [*found, *files][:most], True
        found += files
        pending += reversed(folders)
    return found, False


def _entries(folder: Path, most: int) -> list[os.DirEntry[str]]:
    """What is in a folder, by name; nothing in one that may not be looked into."""
    try:
        with os.scandir(folder) as entries:
            return sorted(islice(entries, most), key=lambda entry: entry.name)
    except OSError:
        return []


def _parted(entries: list[os.DirEntry[str]]) -> tuple[list[Path], list[Path]]:
    """The .cu files and the folders. A link to a folder is left out, as it may lead back."""
    files = [Path(entry.path) for entry in entries if entry.name.endswith(".cu") and _is_file(entry)]
    folders = [Path(each.path) for each in entries if each.name[0] != "." and each.is_dir(follow_symlinks=False)]
    return files, folders


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # a link that leads in a circle
        return False


def _checked(path: str, given: Json, encoding: Encoding) -> list[Json]:
    try:
        source = read_source(path)
    except SourceError:
        return []
    analysis = analyse(source, open_first({}), parse_settings(given)[0])
    texts: dict[str, Text] = {}
    return [_plain(diagnostic, texts, encoding) for diagnostic in diagnostics(analysis)]


def _plain(diagnostic: Diagnostic, texts: dict[str, Text], encoding: Encoding) -> Json:
    return {
        "place": _place(diagnostic.span, texts, encoding),
        "severity": diagnostic.severity.value,
        "rule": diagnostic.rule,
        "page": diagnostic.page,
        "message": diagnostic.message,
        "related": [
            {"path": each.span.path, "place": _place(each.span, texts, encoding), "message": each.message}
            for each in diagnostic.related
        ],
        "data": diagnostic.data,
    }


def _place(span: Span, texts: dict[str, Text], encoding: Encoding) -> Place:
    text = texts.setdefault(span.path, _text(span.source))
    start, end = text.position(span.start, encoding), text.position(span.end, encoding)
    return start.line, start.character, end.line, end.character


def _text(source: Source) -> Text:
    return Text.of_bytes(source.data)
