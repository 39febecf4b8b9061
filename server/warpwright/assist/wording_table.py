"""The operations that words name, and the other phrases of which a request consists, from `wordings.toml` and
`phrases.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

Kind = Literal["map", "rows", "reduce", "two", "infix", "own"]


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation as the head of `wordings.toml` tells."""

    name: str
    kind: Kind
    value: str
    where: tuple[str, ...] = ()
    two: str = ""
    inputs: tuple[str, ...] = ()
    result: str = ""
    weights: tuple[str, ...] = ()
    number: str = ""
    declares: str = ""
    places: bool = False


@dataclass(frozen=True, slots=True)
class Phrase:
    """What some words are: an operation, or what `what` says with its `value`."""

    what: str
    value: str = ""
    operation: Operation | None = None


_FOLDER = Path(__file__).parent


@lru_cache(maxsize=1)
def operations() -> Mapping[str, Operation]:
    """All operations by name."""
    found = {}
    for name, table in _tables("wordings").items():
        values: dict[str, Any] = {key: tuple(each) if isinstance(each, list) else each for key, each in table.items()}
        values.pop("says")
        found[name] = Operation(name=name, **values)
    return found


@lru_cache(maxsize=1)
def phrases() -> Mapping[tuple[str, ...], Phrase]:
    """What each sequence of words is."""
    found: dict[tuple[str, ...], Phrase] = {}

    def enter(said: str, phrase: Phrase) -> None:
        for each in said.split("|"):
            words = tuple(each.split())
            assert found.setdefault(words, phrase) == phrase, f"{each} is {phrase} and {found[words]}"

    tables = _tables("wordings")
    for name, operation in operations().items():
        enter(tables[name]["says"], Phrase("operation", name, operation))
    for head, among in _tables("phrases").items():
        for what, said in among.items():
            enter(said.replace("\n", ""), Phrase(what) if head == "other" else Phrase(head, what))
    return found


def _tables(name: str) -> dict[str, dict[str, Any]]:
    return tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
