"""Does machine code read a clock? What such a kernel gives may depend on when it runs, and no test can show that.

A cubin is an ELF file; its sections `.text.*` hold instructions of 16 bytes. S2R, CS2R and S2UR read the special
register whose number stands in bits 72 to 79; that holds from sm_70 to sm_120 and is tested against nvdisasm.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_READS_REGISTER = frozenset({0x919, 0x805, 0x9C3})
_CLOCKS = {0x50: "clock", 0x51: "clock", 0x52: "globaltimer", 0x53: "globaltimer"}


def clocks_read(cubin: bytes) -> frozenset[str]:
    """The clocks that the code of a cubin reads, "clock" and "globaltimer"; none where it cannot be read as ELF."""
    found = set()
    for start, size in _code(cubin):
        for low, high in struct.iter_unpack("<QQ", cubin[start : start + size - size % 16]):
            if low & 0xFFF in _READS_REGISTER and (name := _CLOCKS.get(high >> 8 & 0xFF)):
                found.add(name)
    return frozenset(found)


def _code(cubin: bytes) -> Iterator[tuple[int, int]]:
    """Offset and size of each section of instructions (ELF-64: section headers)."""
    try:
        if cubin[:5] != b"\x7fELF\x02":
            return
        (start,) = struct.unpack_from("<Q", cubin, 0x28)
        size, count, names_at = struct.unpack_from("<HHH", cubin, 0x3A)
        headers = [struct.unpack_from("<IIQQQQ", cubin, start + index * size) for index in range(count)]
        names = headers[names_at][4]
    except (struct.error, IndexError):
        return
    for name, _, _, _, offset, length in headers:
        if cubin.startswith(b".text.", names + name):
            yield offset, length
