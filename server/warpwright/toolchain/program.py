"""How a project's program is built and tested, as its file says (see `verify.program_run`)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ProgramTest:
    """How a project's program is built and tested, as its file says: command lines for a shell, in `folder`.

    `compare` is "output" or "status", `seconds` the longest that one build or one run may take, `tolerance` by what
    share numbers with a fraction may differ, and `reads` are the folders outside of the project that it needs.
    """

    folder: Path
    run: str
    build: str = ""
    compare: str = "output"
    seconds: float = 300.0
    tolerance: float = 0.0
    reads: tuple[str, ...] = ()
