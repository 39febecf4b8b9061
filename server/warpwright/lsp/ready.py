"""What a kernel command would wait for, begun once a file with kernels was opened, its findings are shown and it has
compiled, without which nothing is verified."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from warpwright.lsp.work import WorkError
from warpwright.progress import silent

if TYPE_CHECKING:
    from warpwright.editor.analysis import Analysis
    from warpwright.lsp.server import Server

AGAIN_SECONDS = 300.0
"""For so long it may go unnoticed that what was ready has ended because nobody asked for it (`verify.pool`,
`warpwright_harness.worker`)."""
_SECONDS = 60.0


def get_ready(ls: Server, analysis: Analysis) -> None:
    """Have the process of commands import what a search needs and start the one that runs kernels, which holds nothing
    of a GPU meanwhile. Returns at once; what keeps it from that is said to whoever runs a command."""
    now = time.monotonic()
    if analysis.program.defined_kernels and now - ls.ready_at > AGAIN_SECONDS:
        ls.ready_at = now
        ls.in_background(_prepared(ls))


async def _prepared(ls: Server) -> None:
    try:
        await ls.commands.run("prepare", {}, silent, _SECONDS)
    except WorkError:
        ls.ready_at = float("-inf")
