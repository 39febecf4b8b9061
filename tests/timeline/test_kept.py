"""What a trace said of lines, kept for an editor."""

from __future__ import annotations

from pathlib import Path

import pytest
from warpwright.editor.analysis import analyse
from warpwright.editor.diagnostics import diagnostics
from warpwright.editor.hover import hover
from warpwright.editor.settings import Settings
from warpwright.syntax.encoding import encoded
from warpwright.syntax.source import Source
from warpwright.timeline.host import Cause
from warpwright.timeline.kept import keep, traced
from warpwright.timeline.lines import LineCost
from warpwright.timeline.model import Event, Place, Trace
from warpwright.timeline.proposals import Proposal
from warpwright.timeline.report import Report
from warpwright.timeline.shares import shared

TEXT = "import torch\nfor x in data:\n    total += x.item()\n    other(x)\n"


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script of whose third line a trace was kept."""
    monkeypatch.setenv("WARPWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "train.py"
    path.write_text(TEXT, encoding="utf-8")
    place = Place(str(path), 3)
    cost = LineCost(place, waits={".item()": 100}, idle={Cause.SYNCHRONISATION: 2_000_000})
    help_ = Proposal("synchronisation", "add up on the GPU", (place,), 2_000_000, 1.5, "idle")
    trace = Trace("made", ops=(Event("aten::add", 0, 10_000_000, "1"),))
    keep(Report(trace, shared(trace), (cost, LineCost(Place(str(path), 4))), (), (help_,)))
    return path


def test_a_line_keeps_what_was_said_of_it_while_others_are_edited(script: Path) -> None:
    (first, second) = traced(str(script), TEXT)
    assert (first.line, second.line) == (3, 4)
    assert first.said.endswith(": 100 x .item()")
    assert first.advice == "add up on the GPU: up to 1.50x."
    moved = traced(str(script), TEXT.replace("import torch\n", "import torch\nimport os\n"))
    assert [each.line for each in moved] == [4, 5]
    edited = traced(str(script), TEXT.replace(".item()", ".detach()"))
    assert [each.line for each in edited] == [4]
    assert traced(str(script.with_name("other.py")), TEXT) == ()


def test_an_editor_shows_it_in_a_hover_and_what_would_help_as_a_note(script: Path) -> None:
    source = Source(str(script), encoded(TEXT))
    analysis = analyse(source, lambda _path, _name: None, Settings())
    (note,) = diagnostics(analysis)
    assert (note.rule, note.span.line, source.text(note.span.start, note.span.end)) == (
        "trace", 3, "total += x.item()",
    )  # fmt: skip
    assert note.message.endswith("add up on the GPU: up to 1.50x.")
    shown = hover(analysis, TEXT.index("other"))
    assert shown is not None
    assert shown.markdown.startswith("**Last trace**: ")
    assert hover(analysis, 0) is None
