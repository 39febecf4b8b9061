"""`__constant__` and `__device__` variables of a loaded module: which there are, and what they hold.

A cubin is an ELF file; its symbol table names the variables with their sizes, and the driver says where they lie.
Sources: the ELF-64 object file format (section headers, symbol table); the CUDA Driver API (cuModuleGetGlobal).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from warpwright_harness.device import LaunchRefusedError, Module, read_memory, write_memory

_SYMBOL_TABLE = 2
_OBJECT = 1
_WRITABLE = ".nv.global"
_CONSTANT = ".nv.constant3"


@dataclass(frozen=True)
class Variable:
    """One variable of a module by its mangled name; `size` is in bytes."""

    name: str
    size: int
    is_constant: bool


def variables_in(cubin: bytes) -> tuple[Variable, ...]:
    """What the symbol table of a cubin says. Raises ValueError where it is not an ELF file of 64 bits."""
    if cubin[:5] != b"\x7fELF\x02":
        raise ValueError("the cubin is not an ELF file of 64 bits")
    (start,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names_at = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", cubin, start + index * size) for index in range(count)]
    section_names = [_text(cubin, headers[names_at][4] + header[0]) for header in headers]
    found: list[Variable] = []
    for header in headers:
        if header[1] != _SYMBOL_TABLE:
            continue
        strings = headers[header[6]][4]
        for at in range(header[4], header[4] + header[5], 24):
            name, info, _, section, _, length = struct.unpack_from("<IBBHQQ", cubin, at)
            place = section_names[section] if section < count else ""
            if info & 15 == _OBJECT and length and place.startswith((_WRITABLE, _CONSTANT)):
                found.append(Variable(_text(cubin, strings + name), length, place.startswith(_CONSTANT)))
    return tuple(found)


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode("utf-8", errors="replace")


def variable_named(name: str, among: Iterable[str]) -> str | None:
    """The mangled name of a variable that the source calls `name`; None where none or several fit.

    >>> variable_named("taps", ["_ZL4taps", "_ZN2ns5otherE"])
    '_ZL4taps'
    >>> variable_named("taps", ["taps", "_ZN2ns4tapsE"])
    'taps'
    """
    last = name.rpartition("::")[2]
    if last in (known := list(among)):
        return last
    ends = re.compile(rf"_Z(?:N.*|L)?L?{len(last)}{re.escape(last)}E?")
    fitting = [each for each in known if ends.fullmatch(each)]
    return fitting[0] if len(fitting) == 1 else None


def address_of(module: Module, variable: Variable) -> int:
    """Where it lies on the device. Raises LaunchRefusedError where the driver does not know it."""
    address, size = module.variable(variable.name)
    if size < variable.size:
        raise LaunchRefusedError(f"the driver does not know the variable {variable.name}")
    return address


def is_known(module: Module, variable: Variable) -> bool:
    """Whether the driver says where it lies, which it does not of what the compiler made for itself, such as the texts
    of `printf`."""
    try:
        address_of(module, variable)
    except LaunchRefusedError:
        return False
    return True


def read(module: Module, variable: Variable) -> bytes:
    """What it holds. Raises LaunchRefusedError or CudaFaultError."""
    return read_memory(address_of(module, variable), variable.size)


def write(module: Module, variable: Variable, content: bytes) -> None:
    """Set its first bytes. Raises LaunchRefusedError or CudaFaultError."""
    write_memory(address_of(module, variable), content[: variable.size])


def changed(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> frozenset[str]:
    """The names whose content is another."""
    return frozenset(name for name, content in before.items() if after.get(name) != content)
