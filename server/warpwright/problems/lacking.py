"""What stops the search for a problem."""

from __future__ import annotations

ARRAY_EXAMPLE = "array a[n] in"


class LackingError(Exception):
    """A part of the problem that nothing says; the message is one sentence, `example` a directive that would say it."""

    def __init__(self, message: str, example: str = ARRAY_EXAMPLE) -> None:
        super().__init__(message)
        self.example = example
