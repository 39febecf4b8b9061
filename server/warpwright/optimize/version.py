"""Versions of a kernel: the user's own text, and what rewrites made of it, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from tree_sitter import Node

from warpwright.cuda.functions import function_name
from warpwright.facts.analyze import analyze
from warpwright.facts.compiled import with_compiled
from warpwright.facts.elsewhere import in_project
from warpwright.facts.model import Assumptions, Kernel, Program
from warpwright.facts.resources import KernelResources
from warpwright.rewrites.base import Rewrite
from warpwright.rules.base import Finding
from warpwright.rules.registry import run_rules
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.encoding import decoded
from warpwright.syntax.flags import parse_flags
from warpwright.syntax.names import renamed, unqualified
from warpwright.syntax.nodes import descendants
from warpwright.syntax.source import Source, include_reader


@dataclass(frozen=True)
class Version:
    """One version of the kernel: the program it is in, how it came to be, and the one file that was changed for it.

    The facts are read when they are first asked for: of most versions nobody asks.
    """

    name: str
    """The kernel's."""
    read: Callable[[], Program]
    changed: str | None = None
    rewrites: tuple[str, ...] = ()
    explanations: tuple[str, ...] = ()
    is_beside: bool = False
    """Whether the kernel was written beside the user's: nobody but the version itself launches it."""

    @staticmethod
    def of(program: Program, kernel: Kernel) -> Version:
        """The user's own text."""
        return Version(kernel.name, lambda: program)

    @cached_property
    def program(self) -> Program:
        return self.read()

    @cached_property
    def kernel(self) -> Kernel:
        """Verification refuses a text that does not define it. Raises KeyError for one that was not verified."""
        found = self.program.kernel(self.name)
        if found is None:
            raise KeyError(self.name)
        return replace(found, launched_elsewhere="") if self.is_beside else in_project(found)

    def findings(self) -> list[Finding]:
        """Those of this kernel."""
        return [finding for finding in run_rules(self.program) if finding.kernel == self.name]

    def text(self, path: str) -> Source:
        """A file of the program. Raises KeyError."""
        return self.program.source if self.program.source.path == path else self.program.sources[path]

    def compiled(self, resources: KernelResources | None) -> Version:
        """The version with what its compiled kernel takes, where that is known, whatever the report calls it."""
        if resources is None:
            return self
        own = replace(resources, name=renamed(resources.name, unqualified(resources.name), self.name))
        return replace(self, read=lambda: with_compiled(self.program, [own]))

    def edited(self, step: Rewrite, own: Source) -> Source:
        """The text after one more rewrite; `own` is the user's. A kernel that is written beside holds what was done so
        far, so that the user's kernel, which is for others, stands there as the user wrote it."""
        made = step.apply()
        if not step.beside or self.is_beside or own.path != made.path:
            return made
        before, after = _definitions(own, self.name), _definitions(made, self.name)
        if len(before) != 1 or len(after) != 1:
            return made
        text = own.data[before[0].start_byte : before[0].end_byte]
        return made.edited([TextEdit(after[0].start_byte, after[0].end_byte, decoded(text))])

    def after(self, step: Rewrite, edited: Source, arch: str | None, flags: tuple[str, ...]) -> Version:
        """The version after one more rewrite, which gave `edited`, analysed anew for `arch` with nvcc's `flags`."""

        def read() -> Program:
            program = self.program
            main = edited if edited.path == program.source.path else program.source
            given = parse_flags(flags, Path())
            assume = Assumptions(arch=arch or Assumptions().arch).compiled_with(given)
            return analyze(main, include_reader({**program.sources, edited.path: edited}, given.folders), assume)

        return Version(
            step.beside or self.name,
            read,
            edited.path,
            (*self.rewrites, step.rewrite),
            (*self.explanations, step.explanation),
            self.is_beside or bool(step.beside),
        )


def _definitions(source: Source, kernel: str) -> list[Node]:
    return [
        node
        for node in descendants(source.root, "function_definition")
        if function_name(source, node) == kernel and any(child.type == "__global__" for child in node.children)
    ]
