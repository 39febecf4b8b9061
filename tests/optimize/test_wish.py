"""A wish in a user's words becomes what the search can do, and what it cannot do is said."""

from __future__ import annotations

import pytest
from warpwright.optimize.wish import Wish, WishError, parse_wish
from warpwright.rewrites.base import Rewrite
from warpwright.syntax.source import Source

BEFORE = Source("a.cu", b"__global__ void k(float *a) { a[0] = 1; }\n")


@pytest.mark.parametrize(
    ("text", "wish"),
    [
        ("more aggressive", Wish(aggressive=True)),
        ("Be MORE aggressive, whatever it takes!", Wish(aggressive=True)),
        ("less aggressive please", Wish(exact=True)),
        ("not so aggressive", Wish(exact=True)),
        ("no fast-math", Wish(exact=True)),
        ("the same results to the bit", Wish(exact=True)),
        ("use less memory", Wish(goal="memory")),
        ("fewer registers", Wish(goal="memory")),
        ("keep it readable", Wish(readable=True)),
        ("simple, no inline tricks", Wish(readable=True)),
        ("make it faster but keep it readable", Wish(goal="speed", readable=True)),
        ("fix it", Wish(goal="fix")),
    ],
)
def test_words_are_understood(text: str, wish: Wish) -> None:
    assert parse_wish(text) == wish


def test_words_continue_a_search() -> None:
    readable = parse_wish("keep it readable", parse_wish("use less memory"))
    assert readable == Wish(goal="memory", readable=True)
    assert parse_wish("faster", parse_wish("more aggressive", readable)) == Wish("speed", True, False, True)
    assert parse_wish("exact", parse_wish("more aggressive")) == Wish(exact=True)


@pytest.mark.parametrize("text", ["", "   ", "blue", "unreadable", "aggression"])
def test_what_is_not_understood_is_said(text: str) -> None:
    with pytest.raises(WishError, match="more aggressive, exact, readable"):
        parse_wish(text)


@pytest.mark.parametrize(
    ("steps", "text", "allowed"),
    [
        (1, b"a[0] = 2;", True),
        (3, b"a[0] = 2;", False),
        (1, b"*reinterpret_cast<float4 *>(a) = make_float4(1, 1, 1, 1);", False),
        (1, b"a[0] = __shfl_xor_sync(~0u, 1.0f, 16);", False),
        (1, b"a[0] = 2;\n" * 40, False),
    ],
)
def test_readable_is_short_and_without_tricks(steps: int, text: bytes, allowed: bool) -> None:
    step = Rewrite("r", "R", BEFORE, (), "")
    after = Source("a.cu", BEFORE.data.replace(b"a[0] = 1;", text))
    assert Wish(readable=True).allows(step, ["r"] * steps, BEFORE, after) == allowed
    assert Wish().allows(step, ["r"] * steps, BEFORE, after)
    assert Wish(readable=True).allows(step, ["r"], after, after), "what the user's own text has is no trick"
