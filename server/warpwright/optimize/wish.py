"""What a user adds to a search in a few words: "more aggressive", "use less memory", "keep it readable"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from warpwright.rewrites.base import Rewrite
from warpwright.syntax.source import Source

READABLE_STEPS = 2
"""Rewrites in a row that leave a kernel recognisable."""

READABLE_LINES = 24
"""Lines that a readable version may have more than the user's own."""

_TRICKS = re.compile(
    rb"\breinterpret_cast\b|\basm\b|\b__pipeline_\w+|\b__\w+_sync\b|\b__float_as_\w+|\b__\w+_as_float\b"
)
"""What a reader has to look up: other types for the same bytes, inline assembly, copies that run meanwhile, values
handed from lane to lane."""


@dataclass(frozen=True, slots=True)
class Wish:
    """How to search. `goal` is "speed", "memory" or "fix", None where the words name none.

    aggressive: go on from more versions, and from such as are slower until their next step.
    exact: only rewrites after which each result is the same to the last bit.
    readable: short sequences, few lines more, and nothing that a reader has to look up.
    """

    goal: str | None = None
    aggressive: bool = False
    exact: bool = False
    readable: bool = False

    @property
    def wider(self) -> int:
        """How many times as wide the search is."""
        return 2 if self.aggressive else 1

    def allows(self, step: Rewrite, rewrites: Sequence[str], before: Source, after: Source) -> bool:
        """Whether a version may be tried that the last of `rewrites`, `step`, made; `before` is the user's own text."""
        if self.exact and not step.safe:
            return False
        if not self.readable:
            return True
        tricks = Counter(_TRICKS.findall(after.data)) - Counter(_TRICKS.findall(before.data))
        longer = after.data.count(b"\n") - before.data.count(b"\n")
        return len(rewrites) <= READABLE_STEPS and longer <= READABLE_LINES and not tricks


class WishError(ValueError):
    """The words ask for nothing that a search can do; the message is one or two sentences."""


_LESS = r"\b(?:less|not|no|without|never|stop)\b[^,;.]{0,12}"
_CAREFUL = (
    rf"{_LESS}aggressive|{_LESS}(?:fast[ -]?math|unsafe|rounding)|\bexact|\bbit[ -]?(?:wise|identical)"
    r"|\bsame (?:bits|results?|numbers)|\bprecise|\baccura|\bconservative|\bcautious|\bcareful"
)
_BOLD = r"\baggressive|\b(?:harder|bolder|further|everything|whatever it takes)\b"
_READABLE = (
    r"(?<!un)\breadab|\b(?:simpler?|shorter|short|cleaner|clean|plain|understandable|maintainable)\b|\bno.* tricks\b"
)
_GOALS = {
    "memory": r"\bmemory\b|\bregisters?\b|\bfootprint\b|\bspills?\b",
    "speed": r"\b(?:faster|speed|quicker|fast)\b(?![ -]?math)",
    "fix": r"\b(?:fix|repair|correct|mend)\b",
}


def parse_wish(text: str, so_far: Wish | None = None) -> Wish:
    """The wish that the words make of `so_far`, the one of the search that they continue. Raises WishError.

    >>> parse_wish("be more aggressive and use less memory")
    Wish(goal='memory', aggressive=True, exact=False, readable=False)
    >>> parse_wish("keep it readable", parse_wish("less aggressive"))
    Wish(goal=None, aggressive=False, exact=True, readable=True)
    >>> parse_wish("in pink")
    Traceback (most recent call last):
    ...
    warpwright.optimize.wish.WishError: "in pink" asks for nothing that a search knows. Say some of: more aggressive, \
exact, readable, faster, less memory, fix.
    """

    def said(pattern: str) -> bool:
        return re.search(pattern, text, re.IGNORECASE) is not None

    wish = so_far or Wish()
    heard = [said(_CAREFUL), said(_BOLD), said(_READABLE), *map(said, _GOALS.values())]
    if not any(heard):
        raise WishError(
            f'"{text.strip()[:80]}" asks for nothing that a search knows. Say some of: more aggressive, exact, '
            "readable, faster, less memory, fix."
        )
    careful, bold, readable, *_ = heard
    if careful or bold:
        wish = replace(wish, exact=careful, aggressive=not careful)
    goal = next((goal for goal, words in _GOALS.items() if said(words)), wish.goal)
    return replace(wish, goal=goal, readable=readable or wish.readable)
