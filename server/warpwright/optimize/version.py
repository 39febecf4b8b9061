"""Versions of a kernel: the user's own text, and what rewrites made of it, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from warpwright.facts.analyze import analyze
from warpwright.facts.model import Assumptions, Kernel, Program
from warpwright.rewrites.base import Rewrite
from warpwright.rules.base import Finding
from warpwright.rules.registry import run_rules
from warpwright.syntax.flags import parse_flags
from warpwright.syntax.source import Source, include_reader


@dataclass(frozen=True, slots=True)
class Version:
    """One version of the kernel: the program it is in, how it came to be, and the one file that was changed for it."""

    program: Program
    kernel: Kernel
    changed: str | None = None
    rewrites: tuple[str, ...] = ()
    explanations: tuple[str, ...] = ()

    def findings(self) -> list[Finding]:
        """Those of this kernel."""
        return [finding for finding in run_rules(self.program) if finding.kernel == self.kernel.name]

    def text(self, path: str) -> Source:
        """A file of the program. Raises KeyError."""
        return self.program.source if self.program.source.path == path else self.program.sources[path]

    def after(self, step: Rewrite, edited: Source, arch: str | None, flags: tuple[str, ...]) -> Version:
        """The version after one more rewrite, which gave `edited`, analysed anew for `arch` with nvcc's `flags`."""
        program = self.program
        main = edited if edited.path == program.source.path else program.source
        given = parse_flags(flags, Path())
        assume = Assumptions(arch=arch or Assumptions().arch).compiled_with(given)
        analysed = analyze(main, include_reader({**program.sources, edited.path: edited}, given.folders), assume)
        return Version(
            analysed,
            analysed.kernel(self.kernel.name) or self.kernel,
            edited.path,
            (*self.rewrites, step.rewrite),
            (*self.explanations, step.explanation),
        )
