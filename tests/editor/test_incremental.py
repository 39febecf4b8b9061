"""A tree that was reparsed edit by edit gives the facts that a fresh one gives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.kernels import CONFLICT
from warpwright.editor.analysis import analyse
from warpwright.editor.settings import Settings
from warpwright.editor.text import edit_between
from warpwright.facts.document import facts_document
from warpwright.syntax.source import Source

SNIPPETS = st.sampled_from(["", ";", "{", "}", "(", "if (x % 2) ", "/*", "*/", "\n", "//", "x", "#if 0\n", "é", '"'])
EDITS = st.lists(st.tuples(st.integers(0, len(CONFLICT)), st.integers(0, 12), SNIPPETS), min_size=1, max_size=6)


@examples(40)
@given(EDITS)
def test_undoing_edits_restores_the_facts(edits: list[tuple[int, int, str]]) -> None:
    texts = [CONFLICT]
    for at, length, snippet in edits:
        last = texts[-1]
        texts.append(last[:at] + snippet + last[at + length :])
    source = Source("/src/a.cu", CONFLICT.encode())
    for text in [*texts[1:], *texts[-2::-1]]:
        edit = edit_between(source.data, text.encode())
        source = source.edited([edit]) if edit else source
        analyse(source, lambda path, name: None, Settings())
    after = analyse(source, lambda path, name: None, Settings())
    fresh = analyse(Source("/src/a.cu", CONFLICT.encode()), lambda path, name: None, Settings())
    assert facts_document([after.program]) == facts_document([fresh.program])
    assert [(f.rule, f.span.start, f.message) for f in after.findings] == [
        (f.rule, f.span.start, f.message) for f in fresh.findings
    ]
