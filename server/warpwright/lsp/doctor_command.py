"""workspace/executeCommand: what was found on this machine of what features need.

`warpwright.doctor` takes no argument. The result is {"status": "found" | "cancelled" | "failed", "message", "parts":
[{"name", "found", "what", "gives", "advice"}], "page"}: the parts as `warpwright doctor --format json` prints them, and
a page of them in Markdown.

`warpwright.surroundings` gives at once what a status shows, compiler, emulator, GPU and model, without progress and
without a page. Its argument, {"model"}, may name the user's model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from warpwright.editor.actions import DOCTOR, SURROUNDINGS
from warpwright.lsp.kernel_command import or_failed
from warpwright.lsp.progress import StoppedError, with_progress
from warpwright.progress import Progress, silent

if TYPE_CHECKING:
    from warpwright.lsp.server import Server

Json = dict[str, Any]
_SECONDS = 300.0  # the model's weights may have to be fetched
_GLANCE_SECONDS = 60.0


def register(server: Server) -> None:
    server.command(DOCTOR)(or_failed(server, partial(doctor, server), _result))
    server.command(SURROUNDINGS)(or_failed(server, partial(surroundings, server), _result))


async def doctor(ls: Server, params: types.ExecuteCommandParams) -> Json:
    """Ask in a process of its own, as NVIDIA's tools and the GPU's software may take seconds to answer."""

    async def work(progress: Progress) -> Json:
        answer: Json = await ls.commands.run("doctor", {}, progress, _SECONDS)
        return answer

    try:
        answer = await with_progress(ls, "Looking at this machine", params.work_done_token, work)
    except StoppedError:
        return _result("cancelled", "Looking at this machine was stopped.")
    return {**_found(answer["parts"]), "page": answer["page"]}


async def surroundings(ls: Server, params: types.ExecuteCommandParams) -> Json:
    argument = params.arguments[0] if params.arguments else None
    model = argument.get("model") if isinstance(argument, Mapping) else None
    request = {"model": model if isinstance(model, str) else ""}
    answer: Json = await ls.commands.run("surroundings", request, silent, _GLANCE_SECONDS)
    return _found(answer["parts"])


def _found(parts: Sequence[Json]) -> Json:
    lacking = [part["name"] for part in parts if not part["found"]]
    return _result("found", f"Missing: {', '.join(lacking)}." if lacking else "Nothing is missing.", parts)


def _result(status: str, message: str, parts: Sequence[Json] = ()) -> Json:
    return {"status": status, "message": message, "parts": list(parts)}
