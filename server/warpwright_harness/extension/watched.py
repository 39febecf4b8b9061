"""What of torch and Python an extension has no business to replace: functions that wait, time, copy and speak."""

from __future__ import annotations

import ctypes
import json
import os
import select
import socket
import threading
import time
from types import ModuleType
from typing import Any

import torch

_WHOLE: tuple[ModuleType | type, ...] = (time, torch.cuda, torch.cuda.Event, torch.cuda.Stream)
_SOME: tuple[tuple[ModuleType | type, tuple[str, ...]], ...] = (
    (torch.Tensor, ("clone", "copy_", "contiguous", "data_ptr", "view", "fill_", "cpu", "to", "detach", "reshape")),
    (torch, ("empty", "empty_like", "zeros", "equal", "allclose", "matmul", "mm", "compile", "Tensor")),
    (json, ("dumps", "loads")),
    (os, ("read", "write", "close", "memfd_create")),
    (socket, ("socket",)),
    (select, ("select",)),
    (ctypes, ("CDLL", "byref")),
    (threading, ("Thread",)),
)


class Watched:
    """The functions as they were when this was made."""

    def __init__(self) -> None:
        self._were = dict(_now())

    def replaced(self) -> list[str]:
        """The names of those that are others now, or gone."""
        now = dict(_now())
        return sorted(name for name, was in self._were.items() if now.get(name) is not was)


def _now() -> list[tuple[str, Any]]:
    found = []
    for owner in _WHOLE:
        for name, value in vars(owner).items():
            if callable(value) and not name.startswith("__"):
                found.append((f"{_name(owner)}.{name}", value))
    for owner, names in _SOME:
        found += [(f"{_name(owner)}.{name}", _raw(owner, name)) for name in names]
    return found


def _raw(owner: ModuleType | type, name: str) -> Any:
    """The object itself: a method looked up through a class may be made anew each time."""
    for place in owner.__mro__ if isinstance(owner, type) else (owner,):
        if name in vars(place):
            return vars(place)[name]
    return None


def _name(owner: ModuleType | type) -> str:
    return owner.__name__ if isinstance(owner, ModuleType) else f"{owner.__module__}.{owner.__qualname__}"
