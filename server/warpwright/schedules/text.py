"""A schedule as a word with its numbers, as it stands on a command line: `rows:lanes=128,vector=4,per_lane=8`."""

from __future__ import annotations

import re
from dataclasses import MISSING, Field, fields
from typing import Any, cast, get_args

from warpwright.schedules.model import Schedule

_TRUTHS = {"yes": True, "no": False}


def name_of(kind: type[Any]) -> str:
    """
    >>> from warpwright.schedules.model import Pointwise, CoreProduct
    >>> name_of(Pointwise), name_of(CoreProduct)
    ('pointwise', 'core-product')
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind.__name__).lower()


KINDS: dict[str, type[Any]] = {name_of(each): each for each in get_args(Schedule)}


def shown(schedule: Schedule) -> str:
    """The schedule with what differs from its kind's own numbers.

    >>> from warpwright.schedules.model import Rows, Tile
    >>> shown(Rows(lanes=128, rows=1, online=True)), shown(Tile())
    ('rows:lanes=128,rows=1,online=yes', 'tile')
    """
    given = [each for each in fields(schedule) if getattr(schedule, each.name) != _default(each)]
    parts = [f"{each.name}={_shown_value(getattr(schedule, each.name))}" for each in given]
    return name_of(type(schedule)) + (f":{','.join(parts)}" if parts else "")


def _default(each: Field[Any]) -> Any:
    return None if each.default is MISSING else each.default


def _shown_value(value: object) -> str:
    return "yes" if value is True else "no" if value is False else str(value)


def read_schedule(text: str) -> Schedule:
    """The schedule of a text. Raises ValueError with one sentence.

    >>> read_schedule("rows:lanes=64,vector=2").lanes
    64
    """
    name, _, rest = text.strip().partition(":")
    kind = KINDS.get(name)
    if kind is None:
        raise ValueError(f"{name!r} is not a kind of schedule: there are {', '.join(sorted(KINDS))}")
    known = {each.name: each for each in fields(kind)}
    given: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        key, _, value = part.partition("=")
        if key not in known:
            raise ValueError(f"{name} has no {key!r}: it has {', '.join(known)}")
        if key in given:
            raise ValueError(f"{key} of {name} is given twice")
        given[key] = _value(name, key, value, _default(known[key]))
    return cast(Schedule, kind(**given))


def _value(name: str, key: str, value: str, default: object) -> Any:
    if isinstance(default, bool):
        if value not in _TRUTHS:
            raise ValueError(f"{key} of {name} is yes or no, not {value!r}")
        return _TRUTHS[value]
    if isinstance(default, int):
        if not value.isdigit() or not 0 < int(value) <= 1 << 20:
            raise ValueError(f"{key} of {name} is a positive number, not {value!r}")
        return int(value)
    return value
