"""What comes of one run of the compiler, by what it was to make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from warpwright.facts.resources import KernelResources
from warpwright.syntax.names import unqualified
from warpwright.toolchain.messages import CompilerMessage


class Ending(StrEnum):
    COMPILED = "compiled"
    ERRORS = "errors"  # the compiler rejected the text
    TIMEOUT = "timeout"
    MISSING = "missing"  # there is no compiler
    BROKEN = "broken"  # the compiler failed without saying what is wrong with the text


@dataclass(frozen=True, slots=True)
class Compilation:
    """What came of one run of the compiler, whatever it was to make. `reason` is one sentence where it is not ok.

    `compiler` and `flags` say what was run, for reports. `included` are the files that the text includes, the system's
    too; none where the compiler did not come so far.
    """

    ending: Ending
    messages: tuple[CompilerMessage, ...] = ()
    reason: str = ""
    compiler: str = ""
    arch: str = ""
    flags: tuple[str, ...] = ()
    included: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.ending is Ending.COMPILED


@dataclass(frozen=True, slots=True)
class Compiled(Compilation):
    """Machine code. `kernels` is keyed by the demangled name, such as `reduce<float, 256>`.

    `cubin` is a file in the user's cache, None unless `ok`.
    """

    kernels: Mapping[str, KernelResources] = field(default_factory=lambda: {})
    cubin: Path | None = None

    def instances(self, kernel: str) -> tuple[KernelResources, ...]:
        """The compiled kernels that the text calls `kernel`: one for each instance of a template or overload."""
        return tuple(r for name, r in self.kernels.items() if unqualified(name) == unqualified(kernel))


@dataclass(frozen=True, slots=True)
class CompiledPtx(Compilation):
    """PTX. `kernels` maps the demangled name, such as `reduce<float, 256>`, to the one in `text`; "" unless `ok`."""

    kernels: Mapping[str, str] = field(default_factory=lambda: {})
    text: str = ""

    def instances(self, kernel: str) -> tuple[str, ...]:
        """The mangled names of what the text calls `kernel`: one for each instance of a template or overload."""
        return tuple(mangled for name, mangled in self.kernels.items() if unqualified(name) == unqualified(kernel))


@dataclass(frozen=True, slots=True)
class TorchBuild:
    """What nvcc is told to build an extension for one installation of torch; see `verify.torch_build`."""

    version: str
    flags: tuple[str, ...]
    libraries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CompiledLibrary(Compilation):
    """A shared library in the user's cache, None unless `ok`. It is not loaded here."""

    library: Path | None = None
