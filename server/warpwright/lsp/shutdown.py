"""shutdown: work that is under way stops, and its processes end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

if TYPE_CHECKING:
    from warpwright.lsp.server import Server


def register(server: Server) -> None:
    server.feature(types.SHUTDOWN)(shutdown)


async def shutdown(ls: Server, *params: object) -> None:
    await ls.stop_jobs()
