"""What a rewrite is.

A rewrite is a module in this folder. Its name is the file's (`pad_shared_array.py` is `pad-shared-array`), its
docstring is its page (Before / After / Assumes / Cost), and it has

    title = "Pad the shared array"
    goals = ("speed",)
    relies_on = (Reliance.BLOCK,)

    def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined: ...

`at` is the place that a finding marks; None asks for the best place in the kernel. What raises NoMatchError (`_code`)
declines with its message. A rewrite is a claim; verification is its proof.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from warpwright.facts.model import Kernel
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.source import Source, Span


class Reliance(StrEnum):
    """What the edited kernel takes of its launches that the kernel before it did not: a launch that is not seen may be
    otherwise. In words that follow "relies on"."""

    GRID = "the grid"
    BLOCK = "the size of the block"
    PARAMETERS = "the list of parameters"
    APART = "arrays that do not overlap"
    ALIGNED = "how arrays are aligned"
    SHARED = "room in shared memory"
    SIZES = "the sizes that are handed over"


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Edits to one source. `explanation` teaches: what changes, why it helps, what it costs. `beside` is the name of
    the new kernel where one is written beside the old; empty where the kernel itself is edited."""

    rewrite: str
    title: str
    source: Source
    edits: tuple[TextEdit, ...]
    explanation: str
    safe: bool = True
    beside: str = ""

    def apply(self) -> Source:
        return self.source.edited(list(self.edits))


@dataclass(frozen=True, slots=True)
class Declined:
    """A refusal with its reason, one sentence for the user."""

    rewrite: str
    reason: str


@dataclass(frozen=True, slots=True)
class RewriteKind:
    """A rewrite as it is found by folder. `goals` is of "speed", "memory", "fix"; `relies_on` is what the edited kernel
    needs of every launch beyond what the old one did."""

    name: str
    title: str
    doc: str
    goals: tuple[str, ...]
    relies_on: tuple[Reliance, ...]
    propose: Callable[[Kernel, Span | None], Rewrite | Declined]

    @property
    def summary(self) -> str:
        return self.doc.strip().splitlines()[0]

    @property
    def needs(self) -> str:
        """What it relies on, in words: "the grid and the size of the block"; "nothing more" for nothing."""
        return enumerated(self.relies_on) or "nothing more"


def enumerated(words: Sequence[str]) -> str:
    """
    >>> enumerated(["a", "b", "c"]), enumerated(["a", "b"]), enumerated([])
    ('a, b and c', 'a and b', '')
    """
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
