"""What is wrong in a project's settings: a diagnostic in its file, and once a message that names file and line."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from lsprotocol import types

from warpwright.editor.diagnostics import SOURCE
from warpwright.lsp.documents import uri_of

if TYPE_CHECKING:
    from warpwright.editor.project import Problem
    from warpwright.lsp.server import Server

log = logging.getLogger(__name__)
_END_OF_LINE = 1 << 16


def show_project_problems(ls: Server) -> None:
    """Show what is wrong in the files that hold the settings of what is open, and take back what no longer is."""
    found: dict[str, list[Problem]] = {}
    for document in ls.documents:
        project = ls.documents.folders.project_of(document.path)
        if project.problems:
            found[project.path] = list(project.problems)
    for path in found.keys() | ls.wrong_projects:
        problems = found.get(path, [])
        shown = types.PublishDiagnosticsParams(uri=uri_of(path), diagnostics=[_diagnostic(each) for each in problems])
        ls.text_document_publish_diagnostics(shown)
        for problem in problems:
            if str(problem) not in ls.told:
                ls.told.add(str(problem))
                log.warning("%s", problem)
                ls.message(str(problem), types.MessageType.Warning)
    ls.wrong_projects = set(found)


def _diagnostic(problem: Problem) -> types.Diagnostic:
    line = problem.line - 1
    return types.Diagnostic(
        range=types.Range(types.Position(line, 0), types.Position(line, _END_OF_LINE)),
        severity=types.DiagnosticSeverity.Warning,
        source=SOURCE,
        message=problem.sentence,
    )
