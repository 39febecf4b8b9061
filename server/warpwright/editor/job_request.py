"""What a job is asked, and the edits that it answers: of what the user sees, not of what is on disk.

A request is {"path", "text", "open": {path: text}, "settings", and what the job needs beside}.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

from warpwright.editor.analysis import Analysis, analyse
from warpwright.editor.includers import includer_of
from warpwright.editor.includes import open_first
from warpwright.editor.settings import Settings, parse_settings
from warpwright.facts.model import Program
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.encoding import encoded
from warpwright.syntax.source import Source, SourceError, read_source

Json = dict[str, Any]


class JobError(Exception):
    """The job cannot be done; the message is one sentence for the user."""


def analysed(request: Json) -> tuple[Analysis, Settings]:
    """The analysis of what is asked about, and the user's settings. Raises JobError where a compiler would see another
    text than the user: a file that is included has unsaved changes."""
    settings, _ = parse_settings(request["settings"])
    opened = opened_in(request)
    source = Source(request["path"], encoded(request["text"]))
    seen = open_first({**opened, source.path: source})
    analysis = analyse(source, seen, settings, unit=includer_of(source, opened))
    if analysis.skipped:
        raise JobError(f"The document was not analysed: {analysis.skipped}.")
    for include in analysis.program.sources.values():
        if include.path in opened and include.path != source.path and not is_saved(include):
            raise JobError(
                f"{Path(include.path).name} has unsaved changes, which a compiler does not see: save it first."
            )
    return analysis, settings


def opened_in(request: Json) -> dict[str, Source]:
    """What is open in the editor, by path."""
    return {path: Source(path, encoded(text)) for path, text in request["open"].items()}


def is_saved(source: Source) -> bool:
    """Whether the file on disk is this text."""
    try:
        return read_source(source.path).data == source.data
    except SourceError:
        return False


def edits_answer(program: Program, kernels: Sequence[str], source: Source, edits: Iterable[TextEdit]) -> Json:
    """Edits of one file for whoever applies them: {"kernels", "read": {path: crc32 of each text that these were read
    from}, "edits": {path: [[start, end, new text]]}}, in bytes. Nobody applies them before `rebase` has looked."""
    listed = [[edit.start, edit.end, edit.new_text] for edit in edits]
    return {
        "kernels": list(kernels),
        "read": {path: crc32(each.data) for path, each in {**program.sources, source.path: source}.items()},
        "edits": {source.path: listed} if listed else {},
    }
