"""What one compiled kernel takes of a multiprocessor, as ptxas reports it. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SpillPlace:
    """Instructions of one place in the source that spill registers (stores) or read them back (loads).

    `places` are (file, line): the innermost, then the calls that it was inlined into; empty where none is known. Bytes
    are per thread and execution.
    """

    places: tuple[tuple[str, int], ...]
    stores: int
    loads: int
    store_bytes: int
    load_bytes: int


@dataclass(frozen=True, slots=True)
class KernelResources:
    """One instance of a kernel, compiled for `arch`, such as "sm_90"; "" where the report does not say it.

    `name` is demangled, with template arguments. Registers, spills (bytes) and the stack (bytes) are per thread, shared
    memory (static bytes) and barriers per block. `constant_bytes` is its parameter bank and the constants it reads.
    `max_threads` of a block and `max_registers` of a thread are what `__launch_bounds__` and -maxrregcount allow, None
    where they set no limit. `spills` is empty where it spills nothing, and where its machine code was not looked at.
    """

    name: str
    mangled_name: str
    registers: int
    spill_store_bytes: int
    spill_load_bytes: int
    stack_bytes: int
    shared_bytes: int
    constant_bytes: int
    barriers: int
    arch: str = ""
    max_threads: int | None = None
    max_registers: int | None = None
    spills: tuple[SpillPlace, ...] = ()

    @classmethod
    def from_json(cls, taken: Mapping[str, Any]) -> KernelResources:
        """What `asdict` made, after a way through JSON.

        >>> from dataclasses import asdict
        >>> each = KernelResources("k", "k", 255, 8, 4, 8, 0, 0, 0, spills=(SpillPlace((("a.cu", 3),), 2, 1, 8, 4),))
        >>> import json
        >>> KernelResources.from_json(json.loads(json.dumps(asdict(each)))) == each
        True
        """
        spills = (
            SpillPlace(**{**place, "places": tuple((file, line) for file, line in place["places"])})
            for place in taken.get("spills", ())
        )
        return cls(**{**taken, "spills": tuple(spills)})

    @property
    def spill_bytes(self) -> int:
        return self.spill_store_bytes + self.spill_load_bytes
