"""What a rewrite is.

A rewrite is a module in this folder. Its name is the file's (`pad_shared_array.py` is `pad-shared-array`), its
docstring is its page (Before / After / Assumes / Cost), and it has

    title = "Pad the shared array"
    goals = ("speed",)

    def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined: ...

`at` is the place that a finding marks; None asks for the best place in the kernel. A rewrite is a claim; verification
is its proof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warpwright.facts.model import Kernel
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.source import Source, Span


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Edits to one source. `explanation` teaches: what changes, why it helps, what it costs."""

    rewrite: str
    title: str
    source: Source
    edits: tuple[TextEdit, ...]
    explanation: str
    safe: bool = True

    def apply(self) -> Source:
        return self.source.edited(list(self.edits))


@dataclass(frozen=True, slots=True)
class Declined:
    """A refusal with its reason, one sentence for the user."""

    rewrite: str
    reason: str


@dataclass(frozen=True, slots=True)
class RewriteKind:
    """A rewrite as it is found by folder. `goals` is of "speed", "memory", "fix"."""

    name: str
    title: str
    doc: str
    goals: tuple[str, ...]
    propose: Callable[[Kernel, Span | None], Rewrite | Declined]

    @property
    def summary(self) -> str:
        return self.doc.strip().splitlines()[0]
