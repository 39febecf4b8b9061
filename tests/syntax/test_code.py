"""A text without what comments and literals say: what C++ takes for a comment, and what only looks like one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.texts import texts_in
from warpwright.syntax.code import code_of, comments_of, without_comments
from warpwright.syntax.nodes import descendants
from warpwright.syntax.source import Source

REPOSITORY = Path(__file__).parents[2]

COMMENTS = {
    b"a; // volatile": b"volatile",
    b"a; // one \\\nvolatile\nb;": b"volatile",
    b"a; // one \\  \r\nvolatile\r\nb;": b"volatile",
    b"a /* \n volatile \n */ b": b"volatile",
    b"a /* volatile": b"volatile",
    b"a; // \xe9 volatile \xff\nb": b"volatile",
    b"#error it's volatile\nint b;": b"volatile",
    b'printf("volatile");': b"volatile",
    b'f(R"x(a " )" volatile)x");': b"volatile",
    b'f(u8R"(// \n volatile)");': b"volatile",
    b'f(L"a\\" volatile");': b"volatile",
    b'f("a\\\n volatile");': b"volatile",
    b"f('\"', \"volatile\", '\\'');": b"volatile",
}
CODE = {
    b"f('\"'); volatile int a; g('\"');": b"volatile",
    b"n = 1'000'000; volatile int a; m = 0x1'f;": b"volatile",
    b'f(R"(// )"); volatile int a;': b"volatile",
    b'f("//"); volatile int a;': b"volatile",
    b"#include <a//volatile.h>\n": b"volatile",
    b'#if __has_include("a//volatile.h")\n': b"volatile",
    b"#error don't /* \nvolatile int a; // */": b"volatile",
    b"f(\"it's\"); /* ' */ volatile int a;": b"volatile",
    b"char c = 'a\nvolatile int a;": b"volatile",
    b"a = b / c; volatile int d; e = f / g;": b"volatile",
}


@pytest.mark.parametrize("text", COMMENTS, ids=repr)
def test_what_is_said_is_no_code(text: bytes) -> None:
    code = code_of(text)
    assert COMMENTS[text] not in code
    assert len(code) == len(text)
    assert code.count(b"\n") == text.count(b"\n")


@pytest.mark.parametrize("text", CODE, ids=repr)
def test_what_is_code_stays(text: bytes) -> None:
    assert text.index(CODE[text]) == code_of(text).index(CODE[text])


def test_different_literals_stay_different() -> None:
    assert code_of(b"f('a')") != code_of(b"f('b')")
    assert code_of(b'f("a b")') != code_of(b'f("ab")')
    assert code_of(b'f("a" /* one */)') != code_of(b'f("b" /* one */)')


@given(st.binary(max_size=60) | st.text("ab/*\"'\\\nR()#'1 ", max_size=60).map(str.encode))
def test_every_text_keeps_its_places(text: bytes) -> None:
    for made in (code_of(text), without_comments(text)):
        assert len(made) == len(text)
        assert [i for i, c in enumerate(made) if c in b"\r\n"] == [i for i, c in enumerate(text) if c in b"\r\n"]


SAMPLES = [Source(str(each), each.read_bytes()) for each in (REPOSITORY / "csrc_samples").rglob("*.cu")]
CASES = [
    Source(each.name, each.text.encode())
    for folder in ("tests/facts", "tests/rules/cases")
    for each in texts_in(REPOSITORY / folder)
    if each.name.endswith(".cu")
]


@pytest.mark.parametrize("sources", [SAMPLES, CASES], ids=["samples", "cases"])
def test_the_grammar_and_the_lexer_see_the_same_comments(sources: list[Source]) -> None:
    assert len(sources) > 50
    for source in sources:
        if not source.root.has_error:
            seen = [(node.start_byte, node.end_byte) for node in descendants(source.root, "comment")]
            assert comments_of(source.data) == seen, source.path
