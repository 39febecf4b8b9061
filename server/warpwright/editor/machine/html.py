"""Source and machine code side by side as one HTML file: a line lights up its instructions, and they it.

The file needs nothing else: no network, no font, no script library. What comes from the user's text is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from warpwright.editor.machine.listing import LOCAL_MARKS, Listing, function_name, local_words, remarks, widths_words
from warpwright.editor.machine.page import SCRIPT, STYLE
from warpwright.editor.machine.words import widths_by_kind
from warpwright.editor.page_theme import THEME_BUTTON, highlighted, page
from warpwright.facts.model import Space
from warpwright.toolchain.machine_view import Mark, Place, Step
from warpwright.toolchain.opcodes import Family

_GOLDEN_ANGLE = 137.5
"""Between the hues of lines that follow each other: neighbours differ, and few lines share one."""
_HUES = "".join(f'[data-h="{hue}"]{{--h:{hue}}}' for hue in range(360))
"""A hue is an attribute and no inline style, which an editor's view of the page forbids."""
_COUNTED = "its instructions; + where all of them are of functions inlined here"
_CLASSES = {
    Family.LOAD: "memory", Family.STORE: "memory", Family.ATOMIC: "memory", Family.COPY: "memory",
    Family.TEXTURE: "memory", Family.FP64: "double", Family.TENSOR: "tensor", Family.CONTROL: "flow",
    Family.BARRIER: "flow", Family.WARP: "warp", Family.CONVERSION: "convert", Family.SPECIAL: "convert",
}  # fmt: skip
_TARGET = re.compile(r"`?\((\.L_x_\d+)\)")


def machine_html(listings: Sequence[Listing], left_out: int = 0) -> str:
    """The whole page, of kernels of one file; the first is shown first. `left_out` says how many more there are."""
    files = list(dict.fromkeys(block.path for listed in listings for block in listed.blocks))
    title = listings[0].kernel.name if len(listings) == 1 else f"{len(listings)} kernels"
    body = [
        *_header(listings, left_out),
        *(_about(index, listed) for index, listed in enumerate(listings)),
        "<main>",
        *_source(listings[0], files),
        *_code(listings, files),
        "</main>",
    ]
    return page(f"{title}: machine code", STYLE + _HUES, body, SCRIPT)


def _header(listings: Sequence[Listing], left_out: int) -> Iterator[str]:
    first = listings[0]
    if len(listings) == 1:
        name = f"<code>{escape(first.kernel.name)}</code>"
    else:
        options = "".join(f"<option>{escape(listed.kernel.name)}</option>" for listed in listings)
        name = f'<select id="kernel" aria-label="Kernel">{options}</select>'
    flags = f" with <code>{escape(' '.join(first.flags))}</code>" if first.flags else ""
    yield f'<header><div><h1>{name} <span class="badge">{escape(first.arch)}</span></h1>'
    more = f" {left_out:,} more instances are not shown." if left_out else ""
    yield f"<p>Compiled by {escape(first.compiler)}{flags}. Click a line to hold it, Escape to let go.{more}</p></div>"
    yield f"{THEME_BUTTON}</header>"


def _about(index: int, listed: Listing) -> str:
    """What the kernel takes and what it is made of."""
    kernel, taken = listed.kernel, listed.kernel.resources
    marked = kernel.marked()
    most = ", ".join(f"{count:,} {family.value}" for family, count in kernel.families().most_common(3))
    tiles = [_tile("SASS instructions", f"{len(kernel.sass):,}", most), _tile("Registers", f"{taken.registers}", "")]
    spilled = f"{taken.spill_store_bytes:,} out, {taken.spill_load_bytes:,} in" if taken.spill_bytes else "none"
    tiles.append(_tile("Bytes spilled", spilled, "a thread" if taken.spill_bytes else "", bad=bool(taken.spill_bytes)))
    if taken.stack_bytes:
        tiles.append(_tile("Stack", f"{taken.stack_bytes:,}", "bytes a thread"))
    if taken.shared_bytes:
        tiles.append(_tile("Static shared memory", f"{taken.shared_bytes:,}", "bytes a block"))
    if marked[Mark.FP64]:
        tiles.append(_tile("Double precision", f"{marked[Mark.FP64]:,}", "instructions"))
    if used := local_words(marked):
        tiles.append(_tile("Local memory", f"{sum(marked[mark] for mark in LOCAL_MARKS):,}", used))
    for (space, kind), widths in widths_by_kind(sorted(kernel.accesses().items())).items():
        if space == Space.LOCAL.value:
            continue
        count = sum(number for _, number in widths)
        said = ", ".join(f"{number:,} of {width} B" for width, number in sorted(widths))
        said = f"each {widths[0][0]} bytes wide" if len(widths) == 1 else said
        hint = widths_words(space, kind, widths)
        tiles.append(_tile(f"{space.capitalize()} {kind}s", f"{count:,}", said, hint=hint))
    return f'<div class="about{" on" if not index else ""}">{"".join(tiles)}</div>'


def _tile(name: str, figure: str, below: str, *, bad: bool = False, hint: str = "") -> str:
    kind, said = " bad" if bad else "", f' title="{escape(hint, quote=True)}"' if hint else ""
    return f'<div class="tile{kind}"{said}><h2>{name}</h2><b>{figure}</b><span>{escape(below)}</span></div>'


def _source(listed: Listing, files: Sequence[str]) -> Iterator[str]:
    """The lines of the files, each with the hue that its instructions have too."""
    yield '<section class="pane source"><div class="bar"><h2>Source</h2></div><div class="scroll"><table>'
    for index, path in enumerate(files):
        source = listed.sources[path]
        yield f'<tbody data-path="{escape(source.path)}">'
        count = len(source.line_starts) - (not source.data or source.data.endswith(b"\n"))
        yield f'<tr class="file"><td colspan="3">{escape(source.path)}</td></tr>'
        texts = highlighted([source.line_text(line) for line in range(1, count + 1)])
        for line, text in enumerate(texts, 1):
            yield (
                f'<tr data-at="{index}:{line}" data-line="{line}" data-h="{_hue(line)}"><td class="n">{line}</td>'
                f'<td class="count" title="{_COUNTED}"></td><td>{text or " "}</td></tr>'
            )
        yield "</tbody>"
    yield "</table></div></section>"


def _hue(line: int) -> int:
    return int(line * _GOLDEN_ANGLE) % 360


def _code(listings: Sequence[Listing], files: Sequence[str]) -> Iterator[str]:
    yield '<section class="pane"><div class="bar"><span id="kinds">'
    yield '<button type="button" data-kind="sass">SASS</button> <button type="button" data-kind="ptx">PTX</button>'
    yield '</span><h2></h2><span id="marks"></span></div>'
    yield '<div class="scroll">'
    for index, listed in enumerate(listings):
        marked = listed.kernel.marked()
        yield f'<ul data-kernel="{index}" hidden>'
        for mark in Mark:
            if marked[mark]:
                yield f'<button type="button" data-mark="{_name(mark)}">{mark.value} {marked[mark]:,}</button>'
        yield "</ul>"
        yield f'<section data-kernel="{index}"{" hidden" if index else ""}><table class="sass">'
        yield from _sass_rows(index, listed, files)
        yield '</table><table class="ptx" hidden>'
        yield from _ptx_rows(listed, files)
        yield "</table></section>"
    yield "</div></section>"


def _sass_rows(index: int, listed: Listing, files: Sequence[str]) -> Iterator[str]:
    function = ""
    for step in listed.kernel.sass:
        each = step.instruction
        if each.function != function:
            function = each.function
            yield f'<tr class="part"><td colspan="4">Called: {escape(function_name(function))}</td></tr>'
        if each.label:
            anchor = _anchor(index, each.label)
            yield f'<tr class="label" id="{anchor}"><td></td><td></td><td colspan="2">{escape(each.label)}:</td></tr>'
        marks = " ".join(_name(mark) for mark in step.marks)
        chips = "".join(_chip(words, step) for words in remarks(step))
        places = listed.places(each.places)
        yield (
            f'<tr class="step {marks}{" code" if each.places else ""}"{_at(places, files)}>'
            f'{_line(places)}<td class="n">{each.offset:04x}</td><td class="text">{_instruction(index, step)}</td>'
            f'<td class="marks"><div>{chips}</div></td></tr>'
        )


def _ptx_rows(listed: Listing, files: Sequence[str]) -> Iterator[str]:
    function = ""
    for each in listed.kernel.ptx:
        if each.function != function:
            function = each.function
            yield f'<tr class="part"><td colspan="3">Called: {escape(function_name(function))}</td></tr>'
        if each.label:
            yield f'<tr class="label"><td></td><td></td><td>{escape(each.label)}:</td></tr>'
        head, space, rest = each.text.partition(" ")
        places = listed.places(each.places)
        yield (
            f'<tr class="step{" code" if each.places else ""}"{_at(places, files)}>{_line(places)}'
            f'<td class="n">{each.row}</td><td class="text"><b>{escape(head)}</b>{space}{escape(rest)}</td></tr>'
        )


def _at(places: Iterable[Place], files: Sequence[str]) -> str:
    """Which lines a row belongs to, the innermost first, and its hue."""
    shown = [(files.index(path), line) for path, line in dict.fromkeys(places) if path in files]
    if not shown:
        return ""
    at = " ".join(f"{file}:{line}" for file, line in shown)
    return f' data-at="{at}" data-h="{_hue(shown[0][1])}"'


def _line(places: Sequence[Place]) -> str:
    """The cell with the source line, and the call that it was inlined at."""
    if not places:
        return "<td></td>"
    inlined = f'<small title="inlined at line {places[1][1]}">‹{places[1][1]}</small>' if len(places) > 1 else ""
    return f'<td class="line">{places[0][1]}{inlined}</td>'


def _instruction(index: int, step: Step) -> str:
    each = step.instruction
    guard = f"<i>{escape(each.guard)}</i> " if each.guard else ""
    kind = "double" if Mark.FP64 in step.marks else _CLASSES.get(step.family, "")
    operands = escape(each.operands)
    operands = _TARGET.sub(lambda found: f'<a href="#{_anchor(index, found[1])}">{found[1]}</a>', operands)
    return f'{guard}<b class="{kind}">{escape(each.opcode)}</b> {operands}'


def _chip(words: str, step: Step) -> str:
    if words.endswith("-bit"):
        name = "wide"
    elif any(words == mark.value for mark in step.marks):
        name = words.lower().replace(" ", "-")
    else:
        name = "access"
    return f'<span class="mark {name}">{escape(words)}</span>'


def _name(mark: Mark) -> str:
    """A mark as the name of a class."""
    return "wide" if mark is Mark.WIDE else mark.value.lower().replace(" ", "-")


def _anchor(index: int, label: str) -> str:
    return f"k{index}-{label.strip('.')}"
