"""A trace's report as one HTML file, in light and in dark, and as Markdown. All that comes from the user's program is
escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from warpwright.editor.page_theme import REPORT_STYLE, THEME_BUTTON, THEME_SCRIPT, page
from warpwright.editor.timeline.picture import COLOURS, timeline_svg
from warpwright.timeline.kernels import base_name
from warpwright.timeline.places import text_at
from warpwright.timeline.report import Report
from warpwright.timeline.words import does, milliseconds, shown

_MOST_ROWS = 25
Table = tuple[str, Sequence[str], Sequence[Sequence[str]]]


def trace_html(report: Report) -> str:
    """The whole page."""
    return page(f"{report.trace.made_by}: trace", REPORT_STYLE, _body(report), THEME_SCRIPT)


def trace_markdown(report: Report) -> str:
    """The same without the picture, for a pull request or an editor's hover."""
    return "\n".join(_markdown(report)) + "\n"


def headline(report: Report) -> str:
    """In one sentence what the program is bound by."""
    devices = ", ".join(dict.fromkeys(report.trace.devices))
    return f"{milliseconds(report.shared.own)}{f' on {devices}' if devices else ''}, bound by {report.shared.bound}"


def tables(report: Report) -> Iterator[Table]:
    """Titles, heads and rows, as plain text: the lines, the kernels, what is proposed."""
    idle = "GPU idle" if report.has_gpu else "time"
    yield (
        "Lines",
        ("line", idle, "for", "GPU", "does", "text"),
        [
            (
                shown(each.place),
                milliseconds(each.wall),
                str(max(each.idle, key=lambda cause, of=each: of.idle[cause], default="")),  # type: ignore[misc]
                milliseconds(each.gpu) if each.gpu else "",
                does(each),
                text_at(each.place),
            )
            for each in report.lines[:_MOST_ROWS]
        ],
    )
    yield (
        "Kernels",
        ("kernel", "launches", "time", "each", "source"),
        [
            (
                base_name(each.name),
                str(each.count),
                milliseconds(each.time),
                milliseconds(each.time / each.count),
                f"{each.file}:{each.line}" if each.file else "",
            )
            for each in report.kernels[:_MOST_ROWS]
        ],
    )
    yield (
        "Proposals",
        ("up to", "what", "how", "where", "basis"),
        [
            (f"{each.gain:.2f}x", each.kind, each.text, ", ".join(map(shown, each.places)), each.basis)
            for each in report.proposals
        ],
    )


def _body(report: Report) -> Iterator[str]:
    yield f"<header><div><h1><code>{escape(report.trace.made_by)}</code></h1>"
    yield f"<p>{escape(headline(report))}.</p></div>{THEME_BUTTON}</header>"
    yield from (f'<p class="soft">{escape(note)}</p>' for note in report.trace.notes)
    yield f"<section>{timeline_svg(report.shared)}</section><section><table>"
    for cause, share in report.shared.shares().items():
        bar = f'<span class="bar" style="width:{share * 480:.0f}px;background:{COLOURS[cause]}"></span>'
        yield f'<tr><td>{escape(cause)}</td><td class="n">{share:.1%}</td><td style="width:75%">{bar}</td></tr>'
    yield "</table></section>"
    for title, heads, rows in tables(report):
        if rows:
            yield f"<h2>{title}</h2><section><table><tr>{_cells('th', heads)}</tr>"
            yield from (f"<tr>{_cells('td', row)}</tr>" for row in rows)
            yield "</table></section>"


def _cells(tag: str, texts: Iterable[str]) -> str:
    return "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts)


def _markdown(report: Report) -> Iterator[str]:
    yield f"# {_plain(report.trace.made_by)}\n\n{_plain(headline(report))}.\n"
    yield from (f"> {_plain(note)}\n" for note in report.trace.notes)
    yield "| counts for | share |\n|---|---:|"
    yield from (f"| {cause} | {share:.1%} |" for cause, share in report.shared.shares().items())
    for title, heads, rows in tables(report):
        if rows:
            yield f"\n## {title}\n\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}"
            yield from (f"| {' | '.join(map(_plain, row))} |" for row in rows)


def _plain(text: str) -> str:
    """Text that Markdown shows as it is, in a table too."""
    return "".join(f"\\{each}" if each in "\\`*_[]<>|#" else each for each in text).replace("\n", " ")
