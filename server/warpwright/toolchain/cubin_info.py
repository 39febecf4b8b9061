"""What a cubin records of its kernels beside their code: the launch bounds they were compiled for, and what spills.

A cubin is an ELF file with a section `.nv.info.<kernel>` of attributes for each kernel: a byte of format, a byte of
name and either two bytes of value or, in the format EIFMT_SVAL, their length and then the value. `cuobjdump -elf`
prints them by name; their numbers are not documented, so a cubin that does not read like one of these says nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from warpwright.syntax.encoding import shown_bytes

_ATTRIBUTES = b".nv.info."
_SIZED = 4  # EIFMT_SVAL
_MAX_THREADS = 0x05  # EIATTR_MAX_THREADS: __launch_bounds__ or .maxntid, in three dimensions
_REQUIRED_THREADS = 0x10  # EIATTR_REQNTID
_MAX_REGISTERS = 0x1B  # EIATTR_MAXREG_COUNT: what launch bounds or -maxrregcount leave; 255 where nothing limits it
_ANNOTATIONS = 0x55  # EIATTR_ANNOTATIONS: kinds and offsets of instructions
_SPILL = 1  # the annotation that cuobjdump prints as SpillRefill
_NO_LIMIT = 255


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """`max_threads` of a block and `max_registers` of a thread, None where nothing limits them; `spills` are the
    offsets, in bytes from the kernel's start, of the instructions that spill a register or read it back."""

    max_threads: int | None = None
    max_registers: int | None = None
    spills: frozenset[int] = frozenset()


def kernel_info(cubin: bytes) -> dict[str, KernelInfo]:
    """By mangled name. Empty for what is no cubin; a section that is cut off is left out.

    >>> kernel_info(b"not an ELF file")
    {}
    """
    try:
        return {name: _read(section) for name, section in _sections(cubin)}
    except (struct.error, ValueError):
        return {}


def _sections(cubin: bytes) -> Iterator[tuple[str, bytes]]:
    """The attribute sections of a 64-bit little-endian ELF file, with the kernels' names."""
    if not cubin.startswith(b"\x7fELF\x02\x01"):
        return
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names_index = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", cubin, table + number * size) for number in range(count)]
    names = headers[names_index][4]
    for header in headers:
        start = names + header[0]
        name = cubin[start : cubin.index(b"\0", start)]
        if name.startswith(_ATTRIBUTES):
            yield shown_bytes(name.removeprefix(_ATTRIBUTES)), cubin[header[4] : header[4] + header[5]]


def _read(section: bytes) -> KernelInfo:
    threads = registers = None
    spills: list[int] = []
    at = 0
    while at + 4 <= len(section):
        form, attribute, value = struct.unpack_from("<BBH", section, at)
        at += 4
        data = b""
        if form == _SIZED:
            data, at = section[at : at + value], at + value
        if attribute in (_MAX_THREADS, _REQUIRED_THREADS) and len(data) >= 12:
            x, y, z = struct.unpack_from("<III", data)
            threads = x * y * z
        elif attribute == _MAX_REGISTERS and form != _SIZED and value != _NO_LIMIT:
            registers = value
        elif attribute == _ANNOTATIONS:
            words = struct.unpack_from(f"<{len(data) // 4}I", data)
            spills += [offset for kind, offset in zip(words[::2], words[1::2], strict=False) if kind == _SPILL]
    return KernelInfo(threads, registers, frozenset(spills))
