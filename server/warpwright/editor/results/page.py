"""The results of one kernel as one HTML file: its profile, where there is one, and its verified candidates, plotted.

Like the profile's page it needs nothing else, and what comes from the user's text is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from html import escape

from warpwright.editor.page_theme import THEME_BUTTON, page
from warpwright.editor.profile.html import profile_body
from warpwright.editor.profile.page import SCRIPT, STYLE
from warpwright.editor.profile.view import View, counts_of
from warpwright.editor.results.candidates import Candidate
from warpwright.editor.results.plot import plot
from warpwright.facts.profile import Profile

_HELP = (
    "Each verification of this kernel in this file, oldest first. A filled point was timed on a GPU beside the text "
    "that it replaces; its bar is the 95 % confidence interval. A hollow point was not timed: it is the cost model's "
    "prediction. What was refuted, or has neither, stands in the strip below."
)
_STYLE = """
.history{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:14px 16px;margin-bottom:18px}
.history p{margin:0 0 10px;color:var(--soft);max-width:100ch}
.plotted{overflow-x:auto;margin-bottom:10px}
.plot{display:block;max-width:none}
.plot .grid{stroke:var(--line)}.plot .grid.one{stroke:var(--soft);stroke-dasharray:4 3}
.plot .strip{fill:var(--row)}
.plot .tick{fill:var(--soft);font-size:11px}
.plot .interval{stroke:currentColor;stroke-width:1.5;fill:none}
.plot .measured{fill:currentColor}
.plot .predicted{fill:var(--card);stroke:currentColor;stroke-width:2}
.plot .sign{fill:currentColor;font-weight:600}
.candidate.good,td.good{color:var(--measured)}.candidate.bad,td.bad{color:var(--bad)}
.candidate.plain,td.plain{color:var(--more)}
.history table td,.history table th{text-align:left;padding:2px 14px 2px 0}
.history table th{position:static;box-shadow:inset 0 -1px var(--line)}
.history td.number{text-align:right;font-variant-numeric:tabular-nums;color:var(--soft)}
.history table{font:inherit}
.history td.verdict{white-space:normal;width:99%;min-width:24ch}
"""


def results_html(kernel: str, view: View | None, candidates: Sequence[Candidate], other: Profile | None = None) -> str:
    """The whole page. `candidates` are oldest first; `other` is the profile of the last other version."""
    history = list(_history(candidates))
    was = counts_of(other.lines) if other is not None else None
    if view is not None:
        return page(f"{kernel}: results", STYLE + _STYLE, profile_body(view, below=history, was=was), SCRIPT)
    nothing = "There is no profile of this kernel as its text is now: run Profile for the counts of each line."
    head = f"<header><div><h1><code>{escape(kernel)}</code></h1><p>{nothing}</p></div>{THEME_BUTTON}</header>"
    return page(f"{kernel}: results", STYLE + _STYLE, [head, *history], SCRIPT)


def _history(candidates: Sequence[Candidate]) -> Iterator[str]:
    yield '<section class="history"><h2>Verified candidates</h2>'
    if not candidates:
        yield "<p>Nothing was verified for this kernel yet: run Optimize, Reduce memory, Fix or Verify.</p></section>"
        return
    yield f'<p>{_HELP}</p><div class="plotted">{plot(candidates)}</div>'
    heads = "".join(f"<th>{name}</th>" for name in ("", "When", "For", "Change", "Verdict", "Speedup"))
    yield f"<table><thead><tr>{heads}</tr></thead><tbody>"
    for each in reversed(candidates):
        when = datetime.fromtimestamp(each.at).astimezone().isoformat(sep=" ", timespec="minutes")[:16]
        yield (
            f'<tr><td class="number">{each.number}</td><td>{when}</td><td>{escape(each.goal)}</td>'
            f'<td>{escape(each.what)}</td><td class="verdict {each.tone}">{escape(each.badge)}</td>'
            f"<td>{_speedup(each)}</td></tr>"
        )
    yield "</tbody></table></section>"


def _speedup(candidate: Candidate) -> str:
    if candidate.speedup is None:
        return "not timed"
    interval = f" ({candidate.ci95[0]:.2f} to {candidate.ci95[1]:.2f})" if candidate.ci95 is not None else ""
    return f"{candidate.speedup:.2f}x{interval}"
