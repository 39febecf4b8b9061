"""The same kernel under other names, for a model that sees too few kernels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from random import Random

from warpwright.facts.model import Kernel
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import descendants
from warpwright.syntax.source import Source

POINTERS = ("src", "dst", "x", "y", "z", "a", "b", "c", "values", "result", "input", "output", "lhs", "rhs", "data")
ARRAYS = ("tile", "buffer", "staged", "scratch", "cache", "partial", "block_data", "smem", "window", "stage")
SCALARS = ("n", "m", "count", "size", "width", "height", "rows", "cols", "length", "limit", "extent", "total")
KERNELS = ("kernel", "run", "compute", "process", "apply_op", "step", "launch_me", "worker", "pass_one", "device_op")


def renamed(kernel: Kernel, count: int, seed: str) -> Iterator[tuple[Source, str]]:
    """At most `count` different texts of the kernel's file, each with what the kernel is called there. The same seed
    gives the same texts of the same text, wherever it lies."""
    source = kernel.source
    random = Random(f"{seed}:{kernel.name}:{sha256(source.data).hexdigest()}")
    seen = {source.data}
    for _ in range(4 * count):
        if len(seen) > count:
            return
        names = _names(kernel, random)
        text = source.edited(_edits(kernel, names))
        if text.data not in seen:
            seen.add(text.data)
            yield text, names.get(kernel.name, kernel.name)


def _names(kernel: Kernel, random: Random) -> dict[str, str]:
    """New names by old: the kernel's, its parameters' and its shared arrays'; never one that the text already has."""
    taken = set(re.findall(r"\w+", kernel.source.text()))
    pools: dict[tuple[str, ...], list[str]] = {
        pool: [name for name in random.sample(pool, len(pool)) if name not in taken]
        for pool in (POINTERS, ARRAYS, SCALARS, KERNELS)
    }
    wanted: list[tuple[str, tuple[str, ...]]] = [
        (kernel.name, KERNELS),
        *((array.name, ARRAYS) for array in kernel.shared_arrays),
    ]
    wanted += [(each.name, POINTERS if each.is_pointer else SCALARS) for each in kernel.parameters]
    names: dict[str, str] = {}
    for name, pool in wanted:
        if pools[pool] and name not in names:
            names[name] = pools[pool].pop()
    return names


def _edits(kernel: Kernel, names: dict[str, str]) -> list[TextEdit]:
    """The kernel's own name changes in the whole file, the others inside the kernel alone."""
    edits: list[TextEdit] = []
    for node in descendants(kernel.source.root, "identifier"):
        name = kernel.source.node_text(node)
        inside = kernel.span.start <= node.start_byte < kernel.span.end
        if name in names and (inside or name == kernel.name):
            edits.append(TextEdit(node.start_byte, node.end_byte, names[name]))
    return edits
