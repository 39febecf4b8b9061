"""The text that the parser sees, after edits too."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.readable import readable
from warpwright.syntax.source import Source

TEXT = b"""#define STEP(i) o[i] = 1;
#define EACH(i, n) for (int i = 0; i < n; i++)
__global__ void k(float *o, int n) {
    EACH(i, n) { STEP(i) STEP(i + 1) }
    STEP(2)
}
"""
PIECES = st.sampled_from([b"", b";", b"}", b"STEP(1) ", b"EACH(j, 2) ", b" ", b"\n", b"#define A { f(); }\n", b"("])


@given(st.integers(0, len(TEXT)), st.integers(0, 12), PIECES)
def test_an_edited_text_reads_as_the_whole_new_text(start: int, length: int, piece: bytes) -> None:
    edited = Source("a.cu", TEXT).edited([TextEdit(start, min(len(TEXT), start + length), piece.decode())])
    assert str(edited.root) == str(Source("a.cu", edited.data).root)


@given(st.lists(st.sampled_from([*TEXT.split(b" "), b"{", b"}", b"\n", b"//", b'"']), max_size=30))
def test_offsets_hold(words: list[bytes]) -> None:
    data = b" ".join(words)
    assert len(readable(data)) == len(data)
