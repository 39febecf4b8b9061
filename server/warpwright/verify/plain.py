"""Dataclasses as plain data and back: for what is kept on disk. What is read is checked against the types' hints."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, TypeVar, Union

T = TypeVar("T")


class PlainError(Exception):
    """The data is not of the type that was asked for."""


def to_plain(value: Any) -> Any:
    """`value` as dicts, lists and what JSON has; enumerations by their values.

    >>> to_plain({"at": (1, 2.5)})
    {'at': [1, 2.5]}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {key: to_plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | frozenset | set):
        return [to_plain(each) for each in value]
    return value


def from_plain(kind: type[T], data: Any) -> T:
    """The inverse of `to_plain` for a dataclass; fields that are lacking take their defaults. Raises PlainError.

    >>> from_plain(dict[str, tuple[int, float]], {"at": [1, 2.5]})
    {'at': (1, 2.5)}
    """
    made: T = _read(kind, data)
    return made


@lru_cache(maxsize=64)
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _read(kind: Any, data: Any) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any or kind is object:
        return data
    if origin in (Union, types.UnionType):
        return _one_of(arguments, data)
    if origin is list:
        return [_read(arguments[0], each) for each in _checked(list, data)]
    if origin in (frozenset, set):
        return origin(_read(arguments[0], each) for each in _checked(list, data))
    if origin is tuple:
        return _tuple(arguments, _checked(list, data))
    if origin is not None and issubclass(origin, Mapping):
        return {_read(arguments[0], key): _read(arguments[1], each) for key, each in _checked(dict, data).items()}
    if is_dataclass(kind):
        given, hints = _checked(dict, data), _hints(typing.cast(type, kind))
        try:
            return typing.cast(Any, kind)(
                **{f.name: _read(hints[f.name], given[f.name]) for f in fields(kind) if f.name in given}
            )
        except TypeError as error:
            raise PlainError(str(error)) from None
    if isinstance(kind, type) and issubclass(kind, Enum):
        try:
            return kind(data)
        except ValueError as error:
            raise PlainError(str(error)) from None
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        return data
    return _checked(type(None) if kind is None else kind, data)


def _one_of(kinds: tuple[Any, ...], data: Any) -> Any:
    for kind in kinds:
        try:
            return _read(kind, data)
        except PlainError:
            continue
    raise PlainError(f"{data!r} is none of {', '.join(map(str, kinds))}")


def _tuple(arguments: tuple[Any, ...], data: list[Any]) -> tuple[Any, ...]:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(_read(arguments[0], each) for each in data)
    if len(arguments) != len(data):
        raise PlainError(f"{len(data)} values where {len(arguments)} belong")
    return tuple(_read(kind, each) for kind, each in zip(arguments, data, strict=True))


def _checked(kind: type, data: Any) -> Any:
    if not isinstance(data, kind) or (isinstance(data, bool) and kind is not bool):
        raise PlainError(f"{data!r} is not a {kind.__name__}")
    return data
