"""What a warp starts with: its built-in variables and the kernel's arguments."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from warpwright.facts import ir
from warpwright.facts.lanes import simplify
from warpwright.facts.launches import HostValue, Known, LaunchSite, MemberMemory, Triple
from warpwright.facts.model import ASSUMED_EXTENT, WARP, Dim3, Launch, Space
from warpwright.facts.position import Position
from warpwright.facts.types import UINT, UNKNOWN_TYPE, CType
from warpwright.facts.values import ASSUMED, EXACT, AnyValue, Region, StructValue, Value, soft
from warpwright.facts.warp_memory import WarpContext


def warp_context(shape: Dim3, launch: Launch, position: Position, basis: int) -> WarpContext:
    """The built-ins of a warp: threads are numbered x first, then y, then z (CUDA C++ Programming Guide, "Thread
    Hierarchy"), and 32 consecutive numbers are a warp."""
    threads, on = _threads(shape, position.warp, basis)
    grid = [_number(e, basis, 1) if e is not None else _number(ASSUMED_EXTENT // 16, ASSUMED, 1) for e in launch.grid]
    dims = [_number(e, basis, 1) if e is not None else _number(1, basis, 0) for e in launch.block]
    index = [_number(i, basis, 0) for i in position.block]
    specials = {
        "threadIdx": threads,
        "blockIdx": (index[0], index[1], index[2]),
        "blockDim": (dims[0], dims[1], dims[2]),
        "gridDim": (grid[0], grid[1], grid[2]),
    }
    return WarpContext(specials, position, on, launch.dynamic_shared_bytes)


@lru_cache(maxsize=64)
def _threads(shape: Dim3, warp: int, basis: int) -> tuple[tuple[Value, Value, Value], int]:
    """threadIdx of a warp, the same values in every block, and which of its lanes are on."""
    width, height, depth = shape
    threads = range(warp * WARP, warp * WARP + WARP)
    on = sum(1 << lane for lane, t in enumerate(threads) if t < width * height * depth)
    xs = Value(simplify([t % width for t in threads]), UINT, basis, 0, True)
    ys = Value(simplify([t // width % height for t in threads]), UINT, basis, 0, height > 1)
    zs = Value(simplify([min(t // (width * height), depth - 1) for t in threads]), UINT, basis, 0, depth > 1)
    return (xs, ys, zs), on


@lru_cache(maxsize=64)
def _number(number: int, basis: int, grain: int) -> Value:
    return Value(number, UINT, basis, grain=grain)


def argument(parameter: ir.FunctionParameter, extent: int, index: int, site: LaunchSite | None) -> AnyValue:
    """A kernel's argument: the launch's number, an assumed one, or a pointer to memory of its own, aligned to 256."""
    kind = parameter.type
    if kind.kind == "pointer":
        target = kind.to or UNKNOWN_TYPE
        size = site.allocated[index] if site is not None and index < len(site.allocated) else None
        unfilled = site is not None and index in site.unfilled
        region = Region(parameter.name, Space.GLOBAL, target, bytes=size, unfilled=unfilled)
        return Value(0, kind, 0, 0, False, region)
    if kind.kind == "struct":
        members = site.members[index] if site is not None and index < len(site.members) else ()
        memory = site.memory[index] if site is not None and index < len(site.memory) else ()
        return _struct_argument(parameter.name, kind, extent, dict(members), memory)
    if kind.is_integer:
        given = site.arguments[index] if site is not None and index < len(site.arguments) else None
        if isinstance(given, Known):
            return Value(given.value, kind, ASSUMED if given.assumed else EXACT, grain=1)
        return Value(extent, kind, ASSUMED, grain=1)
    return soft(kind, False)


def _struct_argument(
    name: str, kind: CType, extent: int, members: Mapping[str, HostValue], memory: MemberMemory = ()
) -> AnyValue:
    fields: dict[str, AnyValue] = {}
    inherited: dict[str, AnyValue] = {}
    known = {label: (size, unfilled) for label, size, unfilled in memory}
    for place, (part, _, member) in enumerate(kind.fields):
        label = f"{name}.{part}"
        given = members.get(part, members.get(str(place)))
        if part in inherited:
            fields[part] = inherited[part]
        elif member.kind == "pointer":
            size, unfilled = known.get(part, (None, False))
            region = Region(label, Space.GLOBAL, member.to or UNKNOWN_TYPE, bytes=size, unfilled=unfilled)
            fields[part] = Value(0, member, 0, 0, False, region)
        elif member.is_integer:
            number = given.value if isinstance(given, Known) else extent
            fields[part] = Value(number, member, EXACT if isinstance(given, Known) else ASSUMED, grain=1)
        elif member.kind == "struct":
            inner = {label.partition(".")[2]: each for label, each in members.items() if label.startswith(f"{place}.")}
            if isinstance(given, Triple):
                inner = {"x": given.x, "y": given.y, "z": given.z}
            made = fields[part] = _struct_argument(label, member, extent, inner)
            if not part and isinstance(made, StructValue):  # a base, whose members are the struct's too
                inherited |= made.fields
        else:
            fields[part] = soft(member, False)
    return StructValue(kind, fields)
