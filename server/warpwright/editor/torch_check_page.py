"""What `torch-check` found as one HTML file. All that comes from the user's program is escaped."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from warpwright.editor.page_theme import REPORT_STYLE, THEME_BUTTON, THEME_SCRIPT, page
from warpwright.verify.torch_check import TorchCheck
from warpwright.verify.torch_check_words import HEAD, explained, headline, row, sight, step_words


def torch_check_html(report: TorchCheck) -> str:
    """The whole page."""
    return page(f"torch-check: {report.operator}", REPORT_STYLE, _body(report), THEME_SCRIPT)


def _body(report: TorchCheck) -> Iterator[str]:
    yield f"<header><div><h1><code>{escape(report.operator)}</code></h1>"
    yield f"<p>{escape(headline(report))}</p></div>{THEME_BUTTON}</header>"
    yield f'<p class="soft">{escape(sight(report))}</p>'
    yield "<section><table><tr>" + "".join(f"<th>{each}</th>" for each in HEAD) + "</tr>"
    for found in report.found:
        cells = [escape(each) for each in row(found)]
        cells = [f"<b>{each}</b>" for each in cells] if found.is_fault else cells
        yield "<tr>" + "".join(f"<td>{each}</td>" for each in cells) + "</tr>"
    yield "</table></section>"
    if report.faults:
        yield "<h2>Faults</h2><section><ul>"
        yield from (f"<li>{escape(explained(each))}</li>" for each in report.faults)
        yield "</ul></section>"
    if report.step is not None:
        yield f"<p>{escape(step_words(report.step))}</p>"
