"""Other texts of the same kernel: names, sizes and element types varied, for a model that sees too few kernels.

A variant is a new claim: it goes through the whole ladder like any other text, and its numbers are counted again.
For example `constexpr int TILE = 32` and `float tile[TILE][TILE]` become `TILE = 16` and `double staged[TILE][TILE]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
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
_SIZE = re.compile(
    rb"^[ \t]*(?:(?:static\s+)?constexpr\s+(?:unsigned\s+)?int\s+(\w+)\s*=|#define\s+(\w+))\s+(\d+)\b", re.M
)
_FLOAT = re.compile(rb"\bfloat\b")
_FLOAT_LITERAL = re.compile(rb"(\d\.\d*)f\b")


@dataclass(frozen=True, slots=True)
class Variant:
    """A text and what was varied in it, in words."""

    source: Source
    kernel: str
    how: str


def vary(kernel: Kernel, source: Source, count: int, seed: int) -> Iterator[Variant]:
    """At most `count` different texts of `source`, in which `kernel` is defined. The same seed gives the same texts of
    the same text, wherever it lies."""
    random = Random(f"{seed}:{kernel.name}:{sha256(source.data).hexdigest()}")
    seen = {source.data}
    for _ in range(4 * count):
        if len(seen) > count:
            return
        how: list[str] = []
        renames = _renames(kernel, random)
        edits = _rename_edits(kernel, source, renames) + _size_edits(source, random, how)
        how.insert(0, "renamed")
        text = source.edited(edits).data
        if random.random() < 0.3 and _FLOAT.search(text) and b"double" not in text:
            text = _FLOAT_LITERAL.sub(rb"\1", _FLOAT.sub(b"double", text))
            how.append("double for float")
        if text not in seen:
            seen.add(text)
            yield Variant(Source(source.path, text), renames.get(kernel.name, kernel.name), ", ".join(how))


def _renames(kernel: Kernel, random: Random) -> dict[str, str]:
    """New names by old: the kernel's, its parameters' and its shared arrays'; never one that the text already has."""
    text = kernel.source.text()
    taken = set(re.findall(r"\w+", text))
    pools: dict[tuple[str, ...], list[str]] = {
        pool: [name for name in random.sample(pool, len(pool)) if name not in taken]
        for pool in (POINTERS, ARRAYS, SCALARS, KERNELS)
    }
    renames: dict[str, str] = {}
    wanted: list[tuple[str, tuple[str, ...]]] = [
        (kernel.name, KERNELS),
        *((a.name, ARRAYS) for a in kernel.shared_arrays),
    ]
    wanted += [(p.name, POINTERS if p.is_pointer else SCALARS) for p in kernel.parameters]
    for name, pool in wanted:
        if pools[pool] and name not in renames:
            renames[name] = pools[pool].pop()
    return renames


def _rename_edits(kernel: Kernel, source: Source, renames: dict[str, str]) -> list[TextEdit]:
    """The kernel's own name changes in the whole file, the others inside the kernel alone."""
    inside = (kernel.span.start, kernel.span.end)
    edits: list[TextEdit] = []
    for node in descendants(source.root, "identifier"):
        name = source.node_text(node)
        local = inside[0] <= node.start_byte < inside[1]
        if name in renames and (local or name == kernel.name):
            edits.append(TextEdit(node.start_byte, node.end_byte, renames[name]))
    return edits


def _size_edits(source: Source, random: Random, how: list[str]) -> list[TextEdit]:
    """Half or double one named power of two from 8 to 512, as a rule every second time."""
    places = [
        match for match in _SIZE.finditer(source.data) if 8 <= (size := int(match[3])) <= 512 and size & (size - 1) == 0
    ]
    if not places or random.random() < 0.5:
        return []
    match = random.choice(places)
    size = int(match[3])
    new = size * 2 if size < 16 or (size < 512 and random.random() < 0.5) else size // 2
    how.append(f"{(match[1] or match[2]).decode()} {size} to {new}")
    return [TextEdit(match.start(3), match.end(3), str(new))]
