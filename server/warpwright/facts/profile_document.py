"""A profile as JSON, and back: what `warpwright profile --format json` prints, and what is stored."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, TypeVar

from warpwright.facts.model import AccessKind, Dim3, Space
from warpwright.facts.profile import (
    Backend,
    Fault,
    FaultKind,
    Inputs,
    InstructionSet,
    Line,
    Place,
    Profile,
    ProfiledLaunch,
    Thread,
    Traffic,
)

VERSION = 2

Json = dict[str, Any]
T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)


class ProfileError(Exception):
    """A document that is not a profile; the message says which key is wrong and what it should hold."""


def profile_json(profile: Profile) -> Json:
    """The contract of `warpwright profile --format json`."""
    launch = profile.launch
    return {
        "version": VERSION,
        "kernel": profile.kernel,
        "function": profile.function,
        "launch": {
            "grid": None if launch.grid is None else list(launch.grid),
            "block": None if launch.block is None else list(launch.block),
            "dynamic_shared_bytes": launch.dynamic_shared_bytes,
            "shape": dict(launch.shape),
            "source": launch.source,
        },
        "backend": profile.backend.value,
        "basis": profile.basis.value,
        "inputs": profile.inputs.value,
        "device": profile.device,
        "flags": None if profile.flags is None else list(profile.flags),
        "texts": dict(profile.texts),
        "lines": [_line_json(line) for line in profile.lines],
        "faults": [_fault_json(fault) for fault in profile.faults],
        "notes": list(profile.notes),
    }


def _line_json(line: Line) -> Json:
    return {
        "file": line.file,
        "line": line.line,
        "instructions": line.instructions,
        "instruction_set": line.instruction_set.value,
        "thread_instructions": line.thread_instructions,
        "threads_per_instruction": round(line.threads_per_instruction, 4),
        "requests": line.requests,
        "sectors": line.sectors,
        "ideal_sectors": line.ideal_sectors,
        "wavefronts": line.wavefronts,
        "ideal_wavefronts": line.ideal_wavefronts,
        "branches": line.branches,
        "divergent_branches": line.divergent_branches,
        "accesses": [
            {
                "space": each.space.value,
                "kind": each.kind.value,
                "bytes": each.bytes,
                "array": each.array,
                "requests": each.requests,
                "lanes": each.lanes,
                "sectors": each.sectors,
                "ideal_sectors": each.ideal_sectors,
                "wavefronts": each.wavefronts,
                "ideal_wavefronts": each.ideal_wavefronts,
            }
            for each in line.traffic
        ],
    }


def _fault_json(fault: Fault) -> Json:
    other = fault.other
    return {
        "kind": fault.kind.value,
        "file": fault.file,
        "line": fault.line,
        "message": fault.message,
        "threads": [{"block": list(each.block), "thread": list(each.thread)} for each in fault.threads],
        "address": fault.address,
        "array": fault.array,
        "other": None if other is None else {"file": other.file, "line": other.line},
        "count": fault.count,
        "guessed": list(fault.guessed),
    }


def read_profile(text: str | bytes) -> Profile:
    """The profile that a JSON text holds. Raises ProfileError.

    >>> read_profile("{}")
    Traceback (most recent call last):
    warpwright.facts.profile_document.ProfileError: it has no key `version`
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProfileError(f"it is not JSON ({error})") from None
    return profile_from_json(document)


def profile_from_json(document: object) -> Profile:
    """Raises ProfileError for what is no profile, or one of another version."""
    top = _Keys(document, "")
    version = top.get("version", _whole)
    if version != VERSION:
        raise ProfileError(f"its version is {version}; this warpwright reads version {VERSION}: make it again")
    return Profile(
        kernel=top.get("kernel", _text),
        launch=top.get("launch", _launch),
        backend=top.get("backend", _one_of(Backend)),
        texts=top.get("texts", _texts),
        lines=top.get("lines", _tuple_of(_line)),
        faults=top.get("faults", _tuple_of(_fault)),
        notes=top.get("notes", _tuple_of(_text)),
        device=top.get("device", _text),
        function=top.get("function", _text),
        flags=top.get("flags", _optional(_tuple_of(_text))),
        inputs=top.get("inputs", _one_of(Inputs)),
    )


class _Keys:
    """The keys of one JSON object; `where` is its place in the document, such as `lines[3]`."""

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, Mapping):
            raise ProfileError(f"{where or 'it'} is not an object")
        self._value = value
        self._where = where

    def get(self, key: str, read: Callable[[object, str], T]) -> T:
        if key not in self._value:
            raise ProfileError(f"{self._where or 'it'} has no key `{key}`")
        return read(self._value[key], f"{self._where}.{key}" if self._where else key)


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise ProfileError(f"`{where}` is not a text")
    return value


def _whole(value: object, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ProfileError(f"`{where}` is not a whole number of 0 or more")
    return value


def _optional(read: Callable[[object, str], T]) -> Callable[[object, str], T | None]:
    return lambda value, where: None if value is None else read(value, where)


def _one_of(kind: type[E]) -> Callable[[object, str], E]:
    def read(value: object, where: str) -> E:
        try:
            return kind(_text(value, where))
        except ValueError:
            raise ProfileError(f"`{where}` is {value!r}, which is none of {', '.join(kind)}") from None

    return read


def _tuple_of(read: Callable[[object, str], T]) -> Callable[[object, str], tuple[T, ...]]:
    def items(value: object, where: str) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise ProfileError(f"`{where}` is not a list")
        return tuple(read(item, f"{where}[{index}]") for index, item in enumerate(value))

    return items


def _dim3(value: object, where: str) -> Dim3:
    parts = _tuple_of(_whole)(value, where)
    if len(parts) != 3:
        raise ProfileError(f"`{where}` has {len(parts)} numbers instead of 3")
    return parts[0], parts[1], parts[2]


def _texts(value: object, where: str) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise ProfileError(f"`{where}` is not an object")
    return {str(path): _text(digest, f"{where}[{path}]") for path, digest in value.items()}


def _launch(value: object, where: str) -> ProfiledLaunch:
    keys = _Keys(value, where)
    return ProfiledLaunch(
        grid=keys.get("grid", _optional(_dim3)),
        block=keys.get("block", _optional(_dim3)),
        dynamic_shared_bytes=keys.get("dynamic_shared_bytes", _optional(_whole)),
        shape=keys.get("shape", _shape),
        source=keys.get("source", _text),
    )


def _shape(value: object, where: str) -> dict[str, int]:
    if not isinstance(value, Mapping):
        raise ProfileError(f"`{where}` is not an object")
    return {str(name): _whole(size, f"{where}.{name}") for name, size in value.items()}


def _line(value: object, where: str) -> Line:
    keys = _Keys(value, where)
    return Line(
        file=keys.get("file", _text),
        line=keys.get("line", _whole),
        instruction_set=keys.get("instruction_set", _one_of(InstructionSet)),
        instructions=keys.get("instructions", _whole),
        thread_instructions=keys.get("thread_instructions", _whole),
        branches=keys.get("branches", _whole),
        divergent_branches=keys.get("divergent_branches", _whole),
        traffic=keys.get("accesses", _tuple_of(_traffic)),
    )


def _traffic(value: object, where: str) -> Traffic:
    keys = _Keys(value, where)
    count = _optional(_whole)
    return Traffic(
        space=keys.get("space", _one_of(Space)),
        kind=keys.get("kind", _one_of(AccessKind)),
        bytes=keys.get("bytes", _whole),
        array=keys.get("array", _optional(_text)),
        requests=keys.get("requests", _whole),
        lanes=keys.get("lanes", _whole),
        sectors=keys.get("sectors", count),
        ideal_sectors=keys.get("ideal_sectors", count),
        wavefronts=keys.get("wavefronts", count),
        ideal_wavefronts=keys.get("ideal_wavefronts", count),
    )


def _fault(value: object, where: str) -> Fault:
    keys = _Keys(value, where)
    return Fault(
        kind=keys.get("kind", _one_of(FaultKind)),
        file=keys.get("file", _text),
        line=keys.get("line", _whole),
        message=keys.get("message", _text),
        threads=keys.get("threads", _tuple_of(_thread)),
        address=keys.get("address", _optional(_signed)),
        array=keys.get("array", _optional(_text)),
        other=keys.get("other", _optional(_place)),
        count=keys.get("count", _whole),
        guessed=keys.get("guessed", _tuple_of(_text)),
    )


def _signed(value: object, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ProfileError(f"`{where}` is not a whole number")
    return value


def _thread(value: object, where: str) -> Thread:
    keys = _Keys(value, where)
    return Thread(keys.get("block", _dim3), keys.get("thread", _dim3))


def _place(value: object, where: str) -> Place:
    keys = _Keys(value, where)
    return Place(keys.get("file", _text), keys.get("line", _whole))
