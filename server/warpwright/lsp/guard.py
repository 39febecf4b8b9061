"""A fault in a handler costs one answer: the client gets the empty one, the log gets a line."""

from __future__ import annotations

import functools
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

L = TypeVar("L")
P = TypeVar("P")
R = TypeVar("R")
E = TypeVar("E")

log = logging.getLogger(__name__)


def guarded(
    empty: Callable[[], E],
) -> Callable[[Callable[[L, P], Awaitable[R]]], Callable[[L, P], Coroutine[Any, Any, R | E]]]:
    """Decorates an async handler; `empty` makes the answer that stands for none."""

    def decorate(handler: Callable[[L, P], Awaitable[R]]) -> Callable[[L, P], Coroutine[Any, Any, R | E]]:
        @functools.wraps(handler)
        async def answered(ls: L, params: P) -> R | E:
            try:
                return await handler(ls, params)
            except Exception:
                log.exception("%s failed", getattr(handler, "__name__", "a handler"))
                return empty()

        return answered

    return decorate
