"""A model's changes to a kernel: blocks of lines as they are and as they shall be, read strictly.

    @why The load does not depend on the loop.
    @original
        sum += a[i] * scale[0];
    @updated
        sum += a[i] * s;
    @end

`@` is no character of CUDA, so that no line of code is a mark. What is not exactly this is refused whole: the text is
untrusted, and half of a change is none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.assist.screen import DEVICE_FUNCTIONS, added_refusal
from warpwright.facts.model import Kernel
from warpwright.syntax.edits import OverlappingEditsError, TextEdit, apply_edits
from warpwright.syntax.encoding import decoded, encoded
from warpwright.syntax.nodes import walk
from warpwright.syntax.source import Source

MOST_BLOCKS = 8
MOST_LINES = 60  # of one side of a block
LONGEST_ANSWER = 16_000  # characters
LONGEST_WHY = 240
LONGEST_GROWTH = 4_000  # bytes that a kernel may gain

GRAMMAR = "\n".join(
    (
        f"root ::= why block{{1,{MOST_BLOCKS}}}",
        f'why ::= "@why " [ -~]{{1,{LONGEST_WHY}}} "\\n"',
        f'block ::= "@original\\n" line{{1,{MOST_LINES}}} "@updated\\n" line{{0,{MOST_LINES}}} "@end\\n"',
        r'line ::= ([\t !-?A-~] [\t -~]*)? "\n"',
    )
)
"""GBNF of an answer. That the lines are the kernel's and that the result is a kernel it cannot say."""

_BLOCK = re.compile(r"@original\n((?:(?!@).*\n)+)@updated\n((?:(?!@).*\n)*)@end\n")
_ANSWER = re.compile(rf"@why (?P<why>[^\n]{{1,{LONGEST_WHY}}})\n(?P<blocks>(?:{_BLOCK.pattern})+)")


@dataclass(frozen=True, slots=True)
class Proposal:
    """Edits of the kernel's file, all of them within the kernel, and the model's own words."""

    why: str
    edits: tuple[TextEdit, ...]


def read_blocks(answer: str, kernel: Kernel) -> Proposal | str:
    """The changes that an answer makes to a kernel, or one clause that says why it is not taken.

    Each `original` must be whole lines of the kernel that stand there once; no two may meet; the result must be the
    one kernel of that name, with nothing that `screen` refuses and the original did not have.

    >>> from warpwright.facts.analyze import analyze
    >>> (kernel,) = analyze(Source("a.cu", b"__global__ void k(float *a) {\\n  a[0] = 1;\\n}\\n")).defined_kernels
    >>> read_blocks("@why Because.\\n@original\\n  a[0] = 1;\\n@updated\\n  a[0] = 2;\\n@end\\n", kernel).edits
    (TextEdit(start=30, end=42, new_text='  a[0] = 2;\\n'),)
    >>> read_blocks("@why Because.\\n@original\\n  a[0] = 3;\\n@updated\\n@end\\n", kernel)
    'the lines `a[0] = 3;` are not in the kernel'
    """
    if len(answer) > LONGEST_ANSWER:
        return f"it is longer than {LONGEST_ANSWER} characters"
    if not answer.isascii() or not all(character.isprintable() or character in "\n\t" for character in answer):
        return "it has characters that code has not"
    found = _ANSWER.fullmatch(answer.rstrip() + "\n")
    if found is None:
        return "it is not in the form of @why, @original, @updated and @end"
    end_of_line = "\r\n" if b"\r\n" in kernel.source.data[kernel.span.start : kernel.span.end] else "\n"
    blocks = [[side.replace("\n", end_of_line) for side in block] for block in _BLOCK.findall(found["blocks"])]
    if len(blocks) > MOST_BLOCKS:
        return f"it has more than {MOST_BLOCKS} blocks"
    edits: list[TextEdit] = []
    for original, updated in blocks:
        if any(len(lines.split("\n")) > MOST_LINES + 1 for lines in (original, updated)):
            return f"a block has more than {MOST_LINES} lines"
        place = _place(original, kernel)
        if isinstance(place, str):
            return place
        if original != updated:
            edits.append(TextEdit(place, place + len(encoded(original)), updated))
    if not edits:
        return "it changes nothing"
    return _screened(found["why"], tuple(edits), kernel)


def _place(original: str, kernel: Kernel) -> int | str:
    """Where the lines begin in the kernel's file, or why they are not taken."""
    shown = " ".join(original.split())[:60]
    if not shown:
        return "a block's original is blank"
    data, needle = kernel.source.data, encoded(original)
    # A line that the kernel shares with other code, its first or its last, belongs to it from the kernel's own text on.
    first = data.rfind(b"\n", 0, kernel.span.start) + 1
    start = first if not data[first : kernel.span.start].strip() else kernel.span.start
    behind = data.find(b"\n", kernel.span.end) + 1 or len(data)
    end = behind if not data[kernel.span.end : behind].strip() else kernel.span.end
    text = data[start:end]
    places = [m.start() for m in re.finditer(rb"(?m)^" + re.escape(needle), text)]
    if not places:
        return f"the lines `{shown}` are not in the kernel"
    if len(places) > 1:
        return f"the lines `{shown}` are in the kernel {len(places)} times"
    return start + places[0]


def _screened(why: str, edits: tuple[TextEdit, ...], kernel: Kernel) -> Proposal | str:
    source = kernel.source
    try:
        changed = apply_edits(source.data, edits)
    except OverlappingEditsError:
        return "two of its blocks change the same lines"
    if len(changed) - len(source.data) > LONGEST_GROWTH:
        return f"it makes the kernel more than {LONGEST_GROWTH} bytes longer"
    tail = len(source.data) - kernel.span.end
    span = kernel.span.start, len(changed) - tail
    after = Source(source.path, changed)
    whole = [n for n in walk(after.root) if n.type == "function_definition" and n.end_byte == span[1]]
    outer = [n for n in whole if n.start_byte == span[0] or _starts_template(n, span[0])]
    if not outer or (outer[0].has_error and not (kernel.node is not None and kernel.node.has_error)):
        return "what it makes is not one whole function in the kernel's place"
    before, now = (decoded(data) for data in (source.data, changed[span[0] : span[1]]))
    refused = added_refusal(
        kernel.span.text, now, known=frozenset(re.findall(r"[A-Za-z_]\w*", before)) | DEVICE_FUNCTIONS
    )
    return refused or Proposal(why, edits)


def _starts_template(node: Node, start: int) -> bool:
    parent = node.parent
    return parent is not None and parent.type == "template_declaration" and parent.start_byte == start
