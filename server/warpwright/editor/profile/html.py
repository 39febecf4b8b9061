"""A profile as one HTML file: the annotated source, with a bar for each count, in light and in dark.

The file needs nothing else: no network, no font, no script library. What comes from the user's text is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import PurePath

from warpwright.editor.page_theme import THEME_BUTTON, highlighted, page
from warpwright.editor.profile.beside import beside, change, measures
from warpwright.editor.profile.page import SCRIPT, STYLE
from warpwright.editor.profile.view import (
    BASES,
    INPUTS,
    INSTRUCTIONS,
    Counts,
    FileView,
    Row,
    View,
    excess,
    fault_words,
    faults_words,
    made_by,
    run_of,
)
from warpwright.facts.profile import Backend, Line, Traffic

Pair = tuple[int, int | None]
WASTEFUL = 2.0
NOTABLE = 1.05
"""Times the fewest from which it is said: less would read as 1.0."""


@dataclass(frozen=True, slots=True)
class _Column:
    """One column of transactions. `pair` reads it off counts; `ideal` says what the fewest are."""

    key: str
    title: str
    pair: Callable[[Counts], Pair | None]
    help: str


_MEMORIES = (
    _Column(
        "global",
        "Global sectors",
        lambda counts: counts.global_sectors,
        "32-byte sectors that global memory requests moved. The green part of a bar is the ideal for the active lanes, "
        "the orange part the excess, and the figure after the number their ratio.",
    ),
    _Column(
        "shared",
        "Shared wavefronts",
        lambda counts: counts.shared_wavefronts,
        "Passes over the banks of shared memory. More than the ideal is a bank conflict.",
    ),
    _Column(
        "local",
        "Local sectors",
        lambda counts: counts.local_sectors,
        "Sectors of the threads' own memory: arrays that registers cannot hold, and spilled registers.",
    ),
)


def profile_html(view: View, earlier: View | None = None) -> str:
    """The whole page; with the profile of an earlier text, what each line did before and now comes first."""
    compared = _beside(earlier, view) if earlier is not None else ()
    return page(f"{view.profile.kernel}: profile", STYLE, profile_body(view, compared), SCRIPT)


def profile_body(
    view: View, above: Iterable[str] = (), below: Iterable[str] = (), was: Counts | None = None
) -> Iterator[str]:
    """What the page says, with sections `above` and `below` the source; `was`: the last other version's totals."""
    memories = [column for column in _MEMORIES if column.pair(view.total) is not None]
    yield from _header(view, view.profile.function or view.profile.kernel)
    yield from _tiles(view, memories, was)
    yield from _faults(view)
    yield from above
    for file in view.files:
        yield from _file(view, file, memories)
    yield from below
    yield from _legend(view, memories)


def _beside(before: View, now: View) -> Iterator[str]:
    """The two texts as a diff, with what each line did before and now."""
    columns = measures(before, now)
    names = f"{escape(before.files[0].path)} → {escape(now.files[0].path)}"
    yield f'<section class="file"><div class="bar"><h2>{names}</h2></div><div class="scrolled"><table>'
    heads = "".join(f"<th>{escape(each.name)}</th>" for each in columns)
    yield f'<thead><tr><th class="n">Before</th><th>Now</th><th class="source">Source</th>{heads}</tr></thead><tbody>'
    pairs = list(beside(before, now))
    for lines, marked in zip(pairs, highlighted([each.row.text for each in pairs]), strict=True):
        kind = {"-": "went", "+": "came", " ": "same"}[lines.sign]
        numbers = [str(row.number) if row is not None else "" for row in (lines.before, lines.now)]
        cells = "".join(
            f'<td class="figure">{escape(each.words(lines)).replace("-&gt;", "→")}</td>' for each in columns
        )
        yield (
            f'<tr class="{kind}"><td class="n">{numbers[0]}</td><td class="figure">{numbers[1]}</td>'
            f'<td class="source"><pre>{lines.sign} {marked}</pre></td>{cells}</tr>'
        )
    yield '<tr><td class="n"></td><td></td><td class="source"><b>Total</b></td>'
    for each in columns:
        yield f'<td class="figure"><b>{change(*each.pair(before.total, now.total)).replace("->", "→")}</b></td>'
    yield "</tr></tbody></table></div></section>"


def _header(view: View, name: str) -> Iterator[str]:
    profile = view.profile
    yield "<header><div>"
    yield f'<h1><code>{escape(name)}</code> <span class="badge {profile.basis.value}">{profile.basis.value}</span></h1>'
    yield f"<p>{escape(_sentence(made_by(profile)))}. {escape(_sentence(run_of(profile)))}.</p>"
    yield "</div>"
    yield f"{THEME_BUTTON}</header>"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _tiles(view: View, memories: list[_Column], was: Counts | None) -> Iterator[str]:
    total, kind = view.total, view.instruction_set.value.upper()
    before = was or total
    yield '<section class="tiles">'
    executed = _and_was("executed by warps", before.instructions, total.instructions)
    yield _tile(f"{kind} instructions", f"{total.instructions:,}", executed)
    yield _tile("Threads per instruction", f"{total.threads_per_instruction:.1f}", "of 32 lanes")
    for column in memories:
        pair = column.pair(total)
        if pair is not None:
            ratio = excess(pair)
            below = "" if pair[1] is None else "ideal" if pair[0] <= pair[1] else f"ideal {pair[1]:,}"
            grave = ratio is not None and ratio >= WASTEFUL
            times = f' <small class="times">{ratio:.1f}×</small>' if ratio is not None and ratio >= NOTABLE else ""
            below = _and_was(below, (column.pair(before) or (0, None))[0], pair[0])
            yield _tile(column.title, f"{pair[0]:,}{times}", below, "bad" if grave else "")
    if total.branches:
        share = _and_was(f"of {total.branches:,} branches", before.divergent_branches, total.divergent_branches)
        yield _tile("Divergent branches", f"{total.divergent_branches:,}", share)
    if view.profile.backend is Backend.EMULATOR:
        faults = len(view.profile.own_faults)
        below = "found by this run" if faults else faults_words(view.profile) or "none in this run"
        yield _tile("Faults", str(faults), below, "bad" if faults else "")
    yield "</section>"


def _and_was(text: str, before: int, now: int) -> str:
    """With the count of the last other version, where it differs."""
    was = f"last other version: {before:,}" if before != now else ""
    return "; ".join(part for part in (text, was) if part)


def _tile(title: str, figure: str, below: str, kind: str = "") -> str:
    return f'<div class="tile {kind}"><h2>{title}</h2><b>{figure}</b><span>{below}</span></div>'


def _faults(view: View) -> Iterator[str]:
    """The faults in one list, each linked to its line where that is shown."""
    profile = view.profile
    if not profile.faults:
        return
    yield '<section class="faults"><h2>Faults</h2><ol>'
    for fault in profile.faults:
        where = f"{PurePath(fault.file).name}:{fault.line}"
        link = f'<a href="#{_anchor(fault.file, fault.line)}">{escape(where)}</a>'
        yield f"<li>{escape(where) if fault in view.elsewhere else link} {escape(fault_words(fault))}</li>"
    yield "</ol></section>"


def _file(view: View, file: FileView, memories: list[_Column]) -> Iterator[str]:
    kind = view.instruction_set.value.upper()
    button = '<button type="button">Show the whole file</button>'
    path, name = escape(file.path), escape(PurePath(file.path).name)
    yield f'<section class="file" data-path="{path}"><div class="bar"><h2 title="{path}">{name}</h2>{button}</div>'
    yield '<div class="scrolled"><table class="kernel"><thead><tr>'
    yield '<th class="n" data-sort="line">Line</th><th class="source">Source</th>'
    yield f'<th data-sort="instructions">{kind} instructions</th><th data-sort="threads">Threads</th>'
    for column in memories:
        yield f'<th data-sort="{column.key}">{column.title}</th>'
    yield '<th data-sort="divergent">Divergent branches</th></tr></thead><tbody>'
    for row, marked in zip(file.rows, highlighted([row.text for row in file.rows]), strict=True):
        yield _row(view, file, row, marked, memories)
    yield "</tbody></table></div></section>"


def _row(view: View, file: FileView, row: Row, marked: str, memories: list[_Column]) -> str:
    classes = " ".join(
        name
        for name, holds in (
            ("quiet", row.counts is None),
            ("outside", not file.first <= row.number <= file.last),
            ("fault", bool(row.faults)),
        )
        if holds
    )
    counts = row.counts
    order = _order(row, memories)
    cells = [f'<td class="n">{row.number}</td>', f'<td class="source"><pre>{marked or " "}</pre>{_callouts(row)}</td>']
    if counts is None or row.line is None:
        cells += ["<td></td>"] * (3 + len(memories))
    else:
        share = f"{100 * counts.instructions / view.total.instructions:.1f} %" if view.total.instructions else ""
        cells.append(_barred(counts.instructions, None, view.largest.instructions, share, "work"))
        cells.append(f'<td class="figure"><i>{counts.threads_per_instruction:.1f}</i></td>')
        for column in memories:
            pair, most = column.pair(counts), column.pair(view.largest)
            title = escape(_traffic_words(row.line, column.key), quote=True)
            cells.append(
                "<td></td>" if pair is None else _barred(pair[0], pair[1], most[0] if most else 0, "", title=title)
            )
        cells.append(_divergence(counts))
    return f'<tr id="{_anchor(file.path, row.number)}" class="{classes}" {order}>{"".join(cells)}</tr>'


def _order(row: Row, memories: list[_Column]) -> str:
    """What the page's script sorts by."""
    counts = row.counts
    values: dict[str, float] = {"line": row.number}
    if counts is not None:
        values |= {
            "instructions": counts.instructions,
            "threads": counts.threads_per_instruction,
            "divergent": counts.divergent_branches,
        }
        values |= {column.key: (column.pair(counts) or (0, None))[0] for column in memories}
    return " ".join(
        f'data-{name}="{value:g}"' if value % 1 else f'data-{name}="{int(value)}"' for name, value in values.items()
    )


def _barred(value: int, ideal: int | None, most: int, note: str, kind: str = "need", title: str = "") -> str:
    """A cell with its number and a bar: the part up to the fewest possible, and the excess."""
    full = 100 * value / most if most else 0.0
    needed = full if ideal is None or not value else full * min(1.0, ideal / value)
    ratio = value / ideal if ideal else None
    if ratio is not None and ratio >= NOTABLE:
        note = f'<em class="{"bad" if ratio >= WASTEFUL else "more"}">{ratio:.1f}×</em>'
    elif note:
        note = f"<small>{note}</small>"
    bar = _bar((kind, needed), ("excess", full - needed))
    said = f' title="{title}"' if title else ""
    return f'<td class="figure"{said}><div><i>{value:,}</i>{note}{bar}</div></td>'


def _bar(*parts: tuple[str, float]) -> str:
    """Parts of a bar one behind the other, each as long as its percentage. It has no inline style: an editor's view of
    the page forbids that."""
    rects, at = [], 0.0
    for kind, share in parts:
        if share > 0.005:
            rects.append(f'<rect class="{kind}" x="{at:.2f}%" width="{share:.2f}%" height="100%"/>')
        at += share
    return f'<svg aria-hidden="true">{"".join(rects)}</svg>'


def _divergence(counts: Counts) -> str:
    if not counts.branches:
        return "<td></td>"
    share = 100 * counts.divergent_branches / counts.branches
    kind = "bad" if share >= 50 else "more" if counts.divergent_branches else "none"
    said = f"{counts.divergent_branches:,} of {counts.branches:,} conditional branches diverged"
    rounded = "&lt;1" if 0 < share < 1 else f"{share:.0f}"
    figure = f'<i>{counts.divergent_branches:,}</i><em class="{kind}">{rounded} %</em>'
    return f'<td class="figure" title="{said}"><div>{figure}{_bar(("excess", share))}</div></td>'


def _callouts(row: Row) -> str:
    return "".join(f'<p class="callout">{escape(fault_words(fault))}</p>' for fault in row.faults)


def _traffic_words(line: Line, space: str) -> str:
    return "\n".join(_traffic_line(each) for each in line.traffic if each.space.value == space)


def _traffic_line(each: Traffic) -> str:
    """`load of in, 4 bytes a lane: 1,024 requests, 32.0 active lanes, 32.0 sectors a request (ideal 4.0)`."""
    of = f" of {each.array}" if each.array else ""
    text = (
        f"{each.kind.value}{of}, {each.bytes} byte{'s' if each.bytes != 1 else ''} a lane: {each.requests:,} requests"
    )
    text += f", {each.active_lanes:.1f} active lanes"
    for unit, got, ideal in (
        ("sectors", each.sectors_per_request, each.ideal_sectors_per_request),
        ("wavefronts", each.wavefronts_per_request, each.ideal_wavefronts_per_request),
    ):
        if got is not None:
            fewest = f" (ideal {ideal:.1f})" if ideal is not None and ideal < got else ""
            text += f", {got:.1f} {unit} a request{fewest}"
    return text


def _legend(view: View, memories: list[_Column]) -> Iterator[str]:
    profile = view.profile
    kind = view.instruction_set
    yield '<section class="legend"><h2>What the columns say</h2><dl>'
    yield f"<dt>{_sentence(profile.basis.value)}</dt><dd>{escape(BASES[profile.basis])}</dd>"
    yield f"<dt>Data</dt><dd>{escape(INPUTS[profile.inputs])}</dd>"
    share = "The percentage is of the whole run."
    yield f"<dt>{kind.value.upper()} instructions</dt><dd>{escape(INSTRUCTIONS[kind])} {share}</dd>"
    yield "<dt>Threads</dt><dd>Average active lanes per instruction, of 32; predicated-off lanes do not count.</dd>"
    for column in memories:
        yield f"<dt>{column.title}</dt><dd>{escape(column.help)}</dd>"
    yield (
        "<dt>Divergent branches</dt><dd>Conditional branches of which the lanes of one warp took both sides, and their "
        "share of those executed.</dd>"
    )
    for note in profile.notes:
        yield f"<dt>Note</dt><dd>{escape(note)}</dd>"
    yield "</dl></section>"


def _anchor(path: str, line: int) -> str:
    return f"{re.sub(r'[^A-Za-z0-9]+', '-', path).strip('-')}-{line}"
