"""No comment is lost: those of text that a rewrite replaces stand above what it makes of it."""

from __future__ import annotations

from warpwright.rewrites._comments import with_comments
from warpwright.rewrites.base import Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.source import Source


def kept(text: str, *changes: tuple[str, str]) -> str:
    """What becomes of a text after changes of parts of it that occur once."""
    source = Source("k.cu", text.encode())
    edits = []
    for old, new in changes:
        assert text.count(old) == 1
        start = len(text[: text.index(old)].encode())
        edits.append(TextEdit(start, start + len(old.encode()), new))
    return with_comments(Rewrite("name", "title", source, tuple(edits), "why")).apply().text()


def test_what_was_replaced_with_its_comments_has_them_above_it() -> None:
    text = "void f() {\n  a(); // één\n  b(); /* two */\n}\n"
    assert kept(text, ("a(); // één\n  b(); /* two */", "c();")) == "void f() {\n  // één\n  /* two */\n  c();\n}\n"


def test_a_comment_that_the_rewrite_moved_is_not_doubled() -> None:
    text = "void f() {\n  a(); // one\n  b();\n}\n"
    assert kept(text, ("a(); // one\n  b();", "b(); // one")) == "void f() {\n  b(); // one\n}\n"
    assert kept(text, ("a(); // one\n  b();", "b(); // so // one")) == "void f() {\n  b(); // so // one\n}\n"
    assert kept(text, ("a();", "c();")) == "void f() {\n  c(); // one\n  b();\n}\n"


def test_of_equal_comments_only_the_lost_one_is_put_back() -> None:
    text = "void f() {\n  a(); // x\n  b(); // x\n}\n"
    assert kept(text, ("b(); // x", "c();")) == "void f() {\n  a(); // x\n  // x\n  c();\n}\n"


def test_no_comment_comes_to_stand_inside_of_a_macro_or_of_another_edit() -> None:
    macro = "#define F \\\n  a(); /* one */ \\\n  b();\nvoid f() { F }\n"
    assert kept(macro, ("a(); /* one */", "c();")) == "/* one */\n" + macro.replace("a(); /* one */", "c();")
    text = "void f() {\n  a(\n    1); b(); // one\n}\n"
    assert kept(text, ("a(\n    1);", "c();"), ("b(); // one", "d();")) == "void f() {\n  // one\n  c(); d();\n}\n"


def test_a_comment_of_several_lines_is_not_split() -> None:
    text = "void f() {\n  /* one\n     two */ a(); // three\n}\n"
    assert kept(text, ("a(); // three", "b();")) == ("void f() {\n  // three\n  /* one\n     two */ b();\n}\n")


def test_line_ends_stay_as_they_are() -> None:
    text = "void f() {\r\n\ta(); // one\r\n}\r\n"
    assert kept(text, ("a(); // one", "b();")) == "void f() {\r\n\t// one\r\n\tb();\r\n}\r\n"
