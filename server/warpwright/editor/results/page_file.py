"""The page of a kernel's results as a file in the user's cache: one for each file and kernel, the last one written."""

from __future__ import annotations

import logging
from pathlib import Path

from warpwright.editor.profile.store import other_version
from warpwright.editor.profile.view import view_of
from warpwright.editor.report_file import report_name, written_text
from warpwright.editor.results.candidates import MOST_CANDIDATES, candidates_of
from warpwright.editor.results.page import results_html
from warpwright.facts.model import Program
from warpwright.facts.profile import Profile
from warpwright.verify.history import HistoryError, Run, past_runs

log = logging.getLogger(__name__)


def written_page(kernel: str, file: str, profile: Profile | None, program: Program) -> Path | None:
    """Where the page was written; None where it cannot be. `file` is the one that defines the kernel."""
    view = view_of(profile, program) if profile is not None else None
    other = other_version(profile) if profile is not None else None
    page = results_html(kernel, view, candidates_of(_runs(file, kernel)), other)
    return written_text(report_name(program.source.path, kernel, "results.html"), page)


def _runs(file: str, kernel: str) -> list[Run]:
    """Those of the past; none where they cannot be read, which the profile does not depend on."""
    try:
        return past_runs(file, kernel, MOST_CANDIDATES)
    except HistoryError as error:
        log.warning("%s", error)
        return []
