"""What one compiled kernel takes of a multiprocessor, as ptxas reports it. Plain data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KernelResources:
    """One instance of a kernel, compiled for `arch`, such as "sm_90"; "" where the report does not say it.

    `name` is demangled, with template arguments. Registers, spills (bytes) and the stack (bytes) are per thread, shared
    memory (static bytes) and barriers per block. `constant_bytes` is its parameter bank and the constants it reads.
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

    @property
    def spill_bytes(self) -> int:
        return self.spill_store_bytes + self.spill_load_bytes
