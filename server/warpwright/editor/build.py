"""What the compiler made of a text, as far as it is of the text that is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from warpwright.facts.resources import KernelResources
from warpwright.syntax.source import HEADERS

if TYPE_CHECKING:
    from warpwright.toolchain.machine_lines import MachineLines


@dataclass(frozen=True, slots=True)
class Build:
    """What each kernel takes, by architecture and then by demangled name. `text` is what was compiled; `is_stale` is
    true once a file that it includes, or a flag, is another than it was then. `lines` are what the source lines became,
    for the first architecture; None until they are read, and where there is no disassembler."""

    text: bytes
    kernels: Mapping[str, Mapping[str, KernelResources]]
    compiler: str
    is_stale: bool = False
    lines: MachineLines | None = None

    def is_of(self, text: bytes) -> bool:
        """Whether its numbers hold for this text."""
        return not self.is_stale and self.text == text


def build_of(answer: Mapping[str, Any], text: bytes) -> Build:
    """What the job "compile" answered about a text."""
    kernels = {
        arch: {name: KernelResources.from_json(taken) for name, taken in of_arch.items()}
        for arch, of_arch in answer["kernels"].items()
    }
    return Build(text, kernels, answer["compiler"])


def is_compiled(path: str) -> bool:
    """Whether a file is compiled alone: a header is with what includes it; what it lacks alone it lacks in vain."""
    return PurePath(path).suffix.lower() not in HEADERS
