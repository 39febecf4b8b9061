"""The kernels of a trace by their time, and where the source of each is."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from warpwright.files import read_file
from warpwright.syntax.encoding import shown_bytes
from warpwright.timeline.model import Activity, Trace, Work

_SUFFIXES = (".cu", ".cuh", ".cpp", ".h", ".hpp", ".py")
_MOST_FILES = 4000
_MOST_BYTES = 1 << 20
_SKIPPED = {"node_modules", "build", "site-packages", "__pycache__"}
_TEMPLATE = re.compile(r"<[^<>]*>")


@dataclass(frozen=True, slots=True)
class KernelCost:
    """All launches of one kernel: how many, their time in nanoseconds, and where its text is ("", 0 where that is not
    known)."""

    name: str
    count: int
    time: int
    file: str = ""
    line: int = 0


def base_name(name: str) -> str:
    """The name of a kernel's function, without its type, arguments and namespaces.

    >>> base_name("void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float> >(int, float)")
    'vectorized_elementwise_kernel'
    >>> base_name("saxpy(int, float*)"), base_name("triton_poi_fused_add_0"), base_name("(anonymous namespace)::k<3>()")
    ('saxpy', 'triton_poi_fused_add_0', 'k')
    """
    text = name.replace("(anonymous namespace)", "anonymous")
    while (shorter := _TEMPLATE.sub("", text)) != text:
        text = shorter
    return text.partition("(")[0].strip().rpartition(" ")[2].rpartition("::")[2] or name


def dearest_kernels(trace: Trace, span: tuple[int, int], sources: Mapping[str, tuple[str, int]]) -> list[KernelCost]:
    """The kernels that ran in the window, the most time first; `sources` are places of kernels by their names."""
    by_name: dict[str, list[Activity]] = defaultdict(list)
    for each in trace.activities:
        if each.kind is Work.KERNEL and span[0] <= each.start < span[1]:
            by_name[each.name].append(each)
    found = [
        KernelCost(name, len(some), sum(each.end - each.start for each in some), *sources.get(base_name(name), ("", 0)))
        for name, some in by_name.items()
    ]
    return sorted(found, key=lambda each: (-each.time, each.name))


def kernel_sources(folder: Path, names: Iterable[str]) -> dict[str, tuple[str, int]]:
    """Where in a folder kernels of these names are defined: file and line. A name that two files define is left out."""
    wanted = set(names)
    if not wanted:
        return {}
    pattern = re.compile(r"(?:__global__[^;{}()]*(?:\([^()]*\)[^;{}()]*)?|@triton\.jit[^\n]*\n\s*def\s+)\b(\w+)\s*\(")
    found: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for path in _files(folder):
        try:
            text = shown_bytes(read_file(path, _MOST_BYTES))
        except OSError:
            continue
        if "__global__" not in text and "@triton" not in text:
            continue
        for match in pattern.finditer(text):
            if match[1] in wanted:
                found[match[1]].add((str(path), text.count("\n", 0, match.start(1)) + 1))
    return {name: next(iter(places)) for name, places in found.items() if len(places) == 1}


def _files(folder: Path) -> Iterable[Path]:
    seen = 0
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith(".") and each not in _SKIPPED)
        for name in sorted(files):
            if name.endswith(_SUFFIXES):
                seen += 1
                if seen > _MOST_FILES:
                    return
                yield Path(root, name)
