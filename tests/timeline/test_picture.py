"""The picture of a timeline."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from warpwright.editor.timeline.picture import columns, timeline_svg
from warpwright.timeline.host import Cause
from warpwright.timeline.shares import Piece, Shared

WHOLE = Shared(100, 1100, (Piece(100, 133, Cause.GPU, 100), Piece(133, 1100, Cause.PYTHON, 133)))


def test_columns_are_full() -> None:
    for count in (1, 7, 240):
        assert [sum(column.values()) for column in columns(WHOLE, count)] == pytest.approx([1.0] * count)
    assert columns(WHOLE, 10)[0] == pytest.approx({Cause.GPU: 0.33, Cause.PYTHON: 0.67})


def test_it_is_xml() -> None:
    ET.fromstring(timeline_svg(WHOLE))
