"""Whether a kernel is to be shown behind a cursor, and what is known of it without a model or a compiler."""

from __future__ import annotations

import re
from dataclasses import dataclass

from warpwright.assist.comment_request import comment_above, requested_kernel, words_of
from warpwright.assist.notes import asks_for_nothing
from warpwright.assist.python_function import meant_words
from warpwright.assist.readings import by_wordings
from warpwright.assist.signature import parameters
from warpwright.assist.worded_formula import Reading, fits
from warpwright.editor.comment_readings import readings_at
from warpwright.editor.file_style import indentation
from warpwright.editor.formula_comment import formula_above, said_in
from warpwright.editor.open_kernel import OpenKernel, open_kernel
from warpwright.syntax.encoding import encoded
from warpwright.syntax.source import Source

MOST_COMMENTS = 20
"""Below what is shown, that are looked at for the next kernel."""


@dataclass(frozen=True, slots=True)
class GhostRequest:
    """What the comment above a cursor asks for. `words` are "" where it is a formula itself. A model is asked only
    where there are no `readings` and the comment `asks` for a kernel in so many words. The body alone of a `kernel`
    is asked for."""

    readings: tuple[Reading, ...]
    words: str = ""
    asks: bool = False
    kernel: OpenKernel | None = None

    def key(self, source: Source, offset: int) -> str:
        """What the texts for this request depend on, beside settings: what is asked for, and of the file the names that
        are taken, its includes, its indentation and how lines end."""
        names = [each.name or each.formula.outputs[0].name for each in self.readings]
        taken = {name for base in names for name in re.findall(rf"\b{re.escape(base)}\w*", source.text())}
        includes = sorted(set(re.findall(r"^#include .*$", source.text(), re.MULTILINE)))
        lines = b"\r\n" in source.data, source.data[offset - 1 : offset] == b"\n", source.data[offset : offset + 1]
        asked = [(each.formula.text, each.name) for each in self.readings]
        return repr((asked, self.words, self.kernel, sorted(taken), includes, indentation(source.text()), lines))


def ghost_request(source: Source, offset: int, is_meant: bool = False) -> GhostRequest | None:
    """What is to be shown at a byte offset. Who asks for it by a key means the comment (`is_meant`): it need not ask
    for a kernel.

    >>> text = b"// row-wise softmax of x[rows][cols]\\n"
    >>> ghost_request(Source("a.cu", text), len(text)).readings[0].name
    'softmax'
    >>> text = b"// the softmax above is slow\\n"
    >>> ghost_request(Source("a.cu", text), len(text)) is None
    True
    """
    kernel = open_kernel(source, offset)
    if kernel is not None:
        return _body_request(kernel, source.path)
    formula = formula_above(source, offset)
    if formula is not None:
        return GhostRequest((Reading(formula.formula),))
    comment = comment_above(source, offset)
    if comment is None:
        return None
    asked = requested_kernel(source, offset)
    words = words_of(source, comment) if asked is None else asked
    readings = tuple(readings_at(source, words, offset))
    asks = (is_meant or asked is not None) and not asks_for_nothing(words)
    return GhostRequest(readings, words, asks) if readings or asks else None


def next_asked(source: Source, offset: int, text: str) -> tuple[Source, int] | None:
    r"""A file once a text is accepted at a byte offset, and the offset below the next comment there that asks for a
    kernel, too; None where none does.

    >>> source, text = Source("a.cu", b"// relu of x\n\n// notes\n\n// row sums of x\n"), "int a;\n"
    >>> accepted, at = next_asked(source, 13, text)
    >>> accepted.text()[:at].splitlines()
    ['// relu of x', 'int a;', '', '// notes', '', '// row sums of x']
    """
    accepted = Source(source.path, source.data[:offset] + encoded(text) + source.data[offset:])
    below = offset + len(encoded(text))
    comments = [each for each in accepted.root.children if each.type == "comment" and each.start_byte >= below]
    for comment in comments[:MOST_COMMENTS]:
        end = comment.end_byte
        line = end + len(accepted.data[end:]) - len(accepted.data[end:].lstrip(b"\r\n"))
        at = accepted.data.find(b"\n", end, line) + 1 or end
        if ghost_request(accepted, at) is not None:
            return accepted, at
    return None


def _body_request(kernel: OpenKernel, path: str) -> GhostRequest | None:
    """A comment above a signature means the kernel, if it is no note."""
    formula = said_in(list(kernel.comment))
    if formula is not None:
        is_fit = fits(formula, parameters(kernel.given))
        return GhostRequest((Reading(formula),), kernel=kernel) if is_fit else None
    readings = tuple(by_wordings(meant_words(kernel.words, path), kernel.given))
    asks = not asks_for_nothing(kernel.words)
    return GhostRequest(readings, kernel.words, asks, kernel) if readings or asks else None
