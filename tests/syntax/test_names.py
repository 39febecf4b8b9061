from __future__ import annotations

from warpwright.syntax.names import unqualified


def test_the_unqualified_name_is_the_identifier() -> None:
    assert unqualified("a::b<c::d<int>, 3>") == "b"
    assert unqualified("plain") == "plain"
