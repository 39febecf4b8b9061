"""What is claimed of a candidate, and what goes with it up the ladder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from warpwright.progress import IsCancelled, Progress, never_cancelled, silent
from warpwright.rules.base import Finding
from warpwright.syntax.source import Source
from warpwright.toolchain.compilation import TorchBuild
from warpwright.verify.memory import Memory

Choice = Literal["auto", "cuda", "emulator"]
"""Where kernels are run: "auto" is a GPU where there is one, else the emulator."""


@dataclass(frozen=True, slots=True)
class Claim:
    """That `candidate` may replace `original` for one kernel (None: the one whose text changed).

    `goal` is "speed", "memory", "fix" or "reference"; a fix is not timed, and may be of an original that does not
    compile: then it is compiled and analysed. For "reference" both are one text, which is compared with its reference
    in torch, and on a GPU timed: it is correct or not, and no faster than itself. Both whole files are analysed for
    `arch` (None: the GPU's, or sm_90 without one) and compiled, with the same flags, for the GPU's, or without one for
    `arch`; `flags_from` says for the report where the flags were read. What was verified before and has a lasting
    verdict is not run again unless `again` is true (see `history`). `unit` is the file to compile where the two texts
    are of a file that it includes, such as a header with kernels.
    """

    original: Source
    candidate: Source
    kernel: str | None = None
    goal: str = "speed"
    expect_gone: Finding | None = None
    progress: Progress = silent
    is_cancelled: IsCancelled = never_cancelled
    arch: str | None = None
    flags: tuple[str, ...] = ()
    flags_from: str = ""
    backend: Choice = "auto"
    again: bool = False
    unit: Source | None = None

    @property
    def changed(self) -> list[tuple[str, bytes]]:
        """The name and the text of each included file that is not as it is on disk, of both sides."""
        return [(each.path, each.data) for side in (self.original, self.candidate) for each in side.changed]

    def of_unit(self) -> Claim:
        """The same of the files that are compiled."""
        if self.unit is None:
            return self
        first, second = self.unit.including(self.original), self.unit.including(self.candidate)
        return replace(self, original=first, candidate=second, unit=None)


@dataclass(frozen=True, slots=True)
class Climb:
    """A claim about files that are compiled, while it is tested."""

    claim: Claim
    memory: Memory
    torch: TorchBuild | None
    """Of a torch extension: what its host code is compiled with."""
    allowed: tuple[str, ...] = ()
    """The folders that the candidate may include from."""
    reads: tuple[str, ...] = ()
    """What its compiler may read."""

    @property
    def compiled_with(self) -> tuple[str, ...]:
        return (*self.claim.flags, *(self.torch.flags if self.torch is not None else ()))
