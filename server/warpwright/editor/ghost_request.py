"""Whether a kernel is to be shown behind a cursor, and what is known of it without a model or a compiler."""

from __future__ import annotations

from dataclasses import dataclass

from warpwright.assist.comment_request import comment_above, requested_kernel, words_of
from warpwright.assist.readings import by_wordings
from warpwright.assist.worded_formula import Reading
from warpwright.editor.formula_comment import formula_above
from warpwright.syntax.source import Source


@dataclass(frozen=True, slots=True)
class GhostRequest:
    """What the comment above a cursor asks for. `words` are "" where it is a formula itself. A model is asked only
    where there are no `readings` and the comment `asks` for a kernel in so many words."""

    readings: tuple[Reading, ...]
    words: str = ""
    asks: bool = False


def ghost_request(source: Source, offset: int) -> GhostRequest | None:
    """What is to be shown at a byte offset.

    >>> text = b"// row-wise softmax of x[rows][cols]\\n"
    >>> ghost_request(Source("a.cu", text), len(text)).readings[0].name
    'softmax'
    >>> text = b"// the softmax above is slow\\n"
    >>> ghost_request(Source("a.cu", text), len(text)) is None
    True
    """
    formula = formula_above(source, offset)
    if formula is not None:
        return GhostRequest((Reading(formula.formula),))
    comment = comment_above(source, offset)
    if comment is None:
        return None
    asked = requested_kernel(source, offset)
    words = words_of(source, comment) if asked is None else asked
    readings = tuple(by_wordings(words))
    return GhostRequest(readings, words, asked is not None) if readings or asked is not None else None
