"""What nvcc, gcc's preprocessor and ptxas print, read back; the texts are NVIDIA's, of CUDA 13.0."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from warpwright.toolchain.messages import Note, parse_messages

TEMPLATE = """\
inc.cuh(1): error: class "Q" has no member "foo"
  template <typename T> __attribute__((device)) T f(T x) { return x.foo; }
                                                                    ^
          detected during:
            instantiation of "T f(T) [with T=Q]" at line 6 of a.cu
            [ 5 instantiation contexts not shown ]
            instantiation of "void k(T *, int) [with T=Q]" at line 14 of a.cu

a.cu(8): error: expression must be a modifiable lvalue
    c = 4;
    ^
          detected during instantiation of "void k(T *, int) [with T=float]" at line 13

a.cu(8): error: expression must be a modifiable lvalue
    c = 4;
    ^
          detected during instantiation of "void k(T *, int) [with T=Q]" at line 14

4 errors detected in the compilation of "a.cu".
"""
OVERLOAD = """\
o.cu(8): error: no instance of overloaded function "f" matches the argument list
            argument types are: (float *, float *)
    f(a, a);
    ^
o.cu(4): note #3326-D: function "f(float *, int)" does not match because argument #2 does not match parameter
  __attribute__((device)) void f(float*, int);
                               ^
"""
INCLUDED = """\
In file included from w.cuh:1,
                 from w.cu:1:
x.cuh:2:2: warning: #warning "hello" [-Wcpp]
    2 | #warning "hello"
      |  ^~~~~~~
w.cu(8): warning #186-D: pointless comparison of unsigned integer with zero
    if (u < 0) a[0] = 1;
          ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"
"""


def test_what_was_being_instantiated_is_kept_once_for_equal_errors() -> None:
    first, second = parse_messages(TEMPLATE, "a.cu")
    assert first.path == "inc.cuh"
    assert first.quoted[first.caret :] == "foo; }"
    assert first.notes == (
        Note("a.cu", 6, 'instantiation of "T f(T) [with T=Q]"'),
        Note("a.cu", 14, 'instantiation of "void k(T *, int) [with T=Q]"'),
    )
    assert second.notes == (Note("", 13, 'instantiation of "void k(T *, int) [with T=float]"'),)


def test_more_words_and_notes_belong_to_their_message() -> None:
    (message,) = parse_messages(OVERLOAD, "o.cu")
    assert message.text.endswith("matches the argument list; argument types are: (float *, float *)")
    assert (message.quoted, message.caret) == ("  f(a, a);", 2)
    assert [(note.path, note.line) for note in message.notes] == [("o.cu", 4)]


def test_codes_and_the_way_to_an_included_file() -> None:
    first, second = parse_messages(INCLUDED, "w.cu")
    assert (first.path, first.line, first.code, first.text) == ("x.cuh", 2, "-Wcpp", '#warning "hello"')
    assert first.quoted[first.caret :] == 'warning "hello"'
    assert first.notes == (Note("w.cuh", 1, "included here"), Note("w.cu", 1, "included here"))
    assert (second.code, second.severity, second.notes) == ("186-D", "warning", ())
    assert second.quoted[second.caret :] == "< 0) a[0] = 1;"


@given(st.lists(st.sampled_from([*TEMPLATE.splitlines(), *OVERLOAD.splitlines(), *INCLUDED.splitlines()])))
def test_any_order_of_lines_is_read(lines: list[str]) -> None:
    for message in parse_messages("\n".join(lines), "a.cu"):
        assert message.severity in ("error", "warning")
        assert -1 <= message.caret <= len(message.quoted)


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    parse_messages(text, "a.cu")
