"""A process of ours for work that takes seconds, so that the server never waits and a cancel always works.

A cancelled job is asked to stop, so that it takes its own children with it; one that does not is killed with its
process group. A process that dies costs its job one error; the next job starts another.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from warpwright.sandbox.ending import end_group
from warpwright.syntax.encoding import encoded

log = logging.getLogger(__name__)
T = TypeVar("T")

WORKER = "warpwright.editor.worker"
GRACE_SECONDS = 3.0
"""For a job that was cancelled to stop by itself."""
END_SECONDS = 0.5
"""For a process whose server leaves."""
_LINE_BYTES = 64 * 1024 * 1024

OnProgress = Callable[[str, float | None], None]


class WorkError(Exception):
    """A job failed; the message is one sentence for the user."""


class Worker:
    """One process that does one job at a time; started by its first job."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._last_id = 0
        self._is_busy = False

    async def run(self, job: str, request: Mapping[str, object], on_progress: OnProgress, seconds: float) -> Any:
        """The result of a job. Cancelling the coroutine cancels the job.

        Raises WorkError when the job fails, its process dies, or it is not done in `seconds`.
        """
        async with self._turn:
            try:
                async with asyncio.timeout(seconds):
                    return await self._answer(job, request, on_progress)
            except TimeoutError:
                await asyncio.shield(self._stop())
                raise WorkError(f"It was not done in {seconds:g} seconds and was stopped.") from None
            except asyncio.CancelledError:
                await asyncio.shield(self._stop())
                raise

    async def close(self) -> None:
        """End the process, and a job with it."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            assert process.stdin is not None
            process.stdin.close()
            await _ended_or_killed(process, END_SECONDS)

    async def _answer(self, job: str, request: Mapping[str, object], on_progress: OnProgress) -> Any:
        process = await _whole(self._started())
        assert process.stdin is not None
        assert process.stdout is not None
        self._last_id += 1
        number = self._last_id
        message = json.dumps({"id": number, "job": job, "request": request})
        self._is_busy = True
        try:
            process.stdin.write(encoded(message) + b"\n")
            await process.stdin.drain()
            while line := await process.stdout.readline():
                answer = json.loads(line)
                if answer["id"] != number:
                    continue
                if "progress" in answer:
                    on_progress(answer["progress"], answer["share"])
                elif "result" in answer:
                    self._is_busy = False
                    return answer["result"]
                else:
                    self._is_busy = False
                    raise WorkError(answer.get("error", "It was stopped."))
        except (ConnectionError, ValueError) as error:
            log.warning("the worker's pipe broke: %s", error)
        await self.close()
        status = process.returncode
        raise WorkError(f"The process that did the work ended unexpectedly (status {status}); try again.")

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                WORKER,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env=_environment(),
                start_new_session=True,
                limit=_LINE_BYTES,
            )
        return self._process

    async def _stop(self) -> None:
        """Cancel the present job; the process goes on only if it says so in time."""
        process = self._process
        if not self._is_busy:
            return
        self._is_busy = False
        if process is None or process.returncode is not None or process.stdin is None or process.stdout is None:
            return
        try:
            process.stdin.write(encoded(json.dumps({"cancel": self._last_id})) + b"\n")
            async with asyncio.timeout(GRACE_SECONDS):
                while line := await process.stdout.readline():
                    answer = json.loads(line)
                    if answer["id"] == self._last_id and "progress" not in answer:
                        return
        except (TimeoutError, ConnectionError, ValueError):
            log.info("a job did not stop when it was told to")
        self._process = None
        await _ended_or_killed(process, 0.0)


async def _whole(work: Coroutine[None, None, T]) -> T:
    """The result of work that a cancel does not cut short, as it would leave a process behind that nobody knows."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


async def _ended_or_killed(process: asyncio.subprocess.Process, grace: float) -> None:
    try:
        async with asyncio.timeout(grace):
            await process.wait()
    except TimeoutError:
        end_group(process.pid)
        await process.wait()


def _environment() -> dict[str, str]:
    """The worker imports what this process imports, wherever that lies, and nothing from the working directory."""
    paths = [path for path in sys.path if path and os.path.isabs(path) and path != os.getcwd()]  # noqa: PTH117, PTH109
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
