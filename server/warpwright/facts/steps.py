"""How much an analysis may do. It is counted and never timed, so that the same text has the same facts everywhere."""

from __future__ import annotations

from dataclasses import dataclass

NODE = 2
"""Steps of an expression or statement that is made from the text, in those of one that is run."""
FRAGMENT = 4
"""Of a macro, constant or type that is read as a text of its own, beside one for each `FRAGMENT_BYTES` of it."""
FRAGMENT_BYTES = 32
NAME_BYTES = 8
"""Of the name of a type that is looked up, for each of which it takes one step more."""
FILE_STEPS = 400_000
LINE_STEPS = 60
"""For the names of a file and its includes, and again for their launches: so many, and so many for each line."""


class OutOfStepsError(Exception):
    """The steps are used up; what was found so far holds."""


@dataclass(slots=True)
class Steps:
    """What is left of a share. Whoever finds nothing left goes no deeper and says that a part is not known.

    Kernels have shares of their own, so that the facts of one do not depend on what another took.

    >>> steps = Steps(3)
    >>> steps.take(2), steps.take(2), steps.spent
    (True, False, True)
    """

    left: int

    def take(self, count: int = 1) -> bool:
        """Count so much work; False where there were fewer steps left than that."""
        self.left -= count
        return self.left >= 0

    @property
    def spent(self) -> bool:
        return self.left < 0


def file_steps(lines: int) -> Steps:
    """The share of what is read of a file as a whole."""
    return Steps(FILE_STEPS + LINE_STEPS * lines)
