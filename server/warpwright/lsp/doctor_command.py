"""workspace/executeCommand: what was found on this machine of what features need.

Takes no argument. The result is {"status": "found" | "cancelled" | "failed", "message", "parts": [{"name", "found",
"what", "gives", "advice"}]}, as `warpwright doctor --format json` prints them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from warpwright.editor.actions import DOCTOR
from warpwright.lsp.kernel_command import or_failed
from warpwright.lsp.progress import StoppedError, with_progress
from warpwright.progress import Progress

if TYPE_CHECKING:
    from warpwright.lsp.server import Server

Json = dict[str, Any]
_SECONDS = 300.0  # the model's weights may have to be fetched


def register(server: Server) -> None:
    server.command(DOCTOR)(or_failed(server, partial(doctor, server), _result))


async def doctor(ls: Server, params: types.ExecuteCommandParams) -> Json:
    """Ask in a process of its own, as NVIDIA's tools and the GPU's software may take seconds to answer."""

    async def work(progress: Progress) -> Json:
        answer: Json = await ls.commands.run("doctor", {}, progress, _SECONDS)
        return answer

    try:
        answer = await with_progress(ls, "Looking at this machine", params.work_done_token, work)
    except StoppedError:
        return _result("cancelled", "Looking at this machine was stopped.")
    lacking = [part["name"] for part in answer["parts"] if not part["found"]]
    return _result("found", f"Missing: {', '.join(lacking)}." if lacking else "Nothing is missing.", answer["parts"])


def _result(status: str, message: str, parts: Sequence[Json] = ()) -> Json:
    return {"status": status, "message": message, "parts": list(parts)}
