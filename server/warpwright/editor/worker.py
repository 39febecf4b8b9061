"""`python -m warpwright.editor.worker`: does the work that takes seconds, in a process that may be killed.

It reads one JSON object a line from stdin and writes one a line to its own copy of stdout:

    {"id": 1, "job": "fix", "request": {...}}     start a job; jobs run one after another
    {"cancel": 1}                                 stop it, soon and tidily

    {"id": 1, "progress": "Compiling", "share": 0.5}
    {"id": 1, "result": {...}}  or  {"id": 1, "error": "one sentence"}  or  {"id": 1, "cancelled": true}

The end of stdin means that the server is gone: the job is cancelled, and the process ends.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import sys
import threading
from contextlib import suppress
from typing import IO, Any

from warpwright.editor.job_request import JobError
from warpwright.editor.jobs import JOBS
from warpwright.progress import CancelledError

log = logging.getLogger("warpwright.worker")

NICENESS = 5
_END_SECONDS = 0.5


class _Inbox:
    """What the server says, read in a thread so that a cancel is seen while a job runs."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.jobs: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._stream = stream
        self._cancelled: set[int] = set()
        self._ended = threading.Event()
        threading.Thread(target=self._read, daemon=True, name="inbox").start()

    def is_cancelled(self, job: int) -> bool:
        return job in self._cancelled or self._ended.is_set()

    def _read(self) -> None:
        for line in self._stream:
            message = json.loads(line)
            if "cancel" in message:
                self._cancelled.add(message["cancel"])
            else:
                self.jobs.put(message)
        self._ended.set()
        self.jobs.put(None)
        # A job that does not look at `is_cancelled` must not outlive the server.
        threading.Timer(_END_SECONDS, os._exit, (1,)).start()


def _step_aside() -> None:
    """Leave the processor to whoever answers a person: this process's work, compilers and runs take what is over."""
    if sys.platform != "win32":
        with suppress(OSError):
            os.nice(NICENESS)


def main() -> int:
    _step_aside()
    sys.dont_write_bytecode = False  # as in the server, whose modules these are
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    inbox = _Inbox(sys.stdin.buffer)

    def answer(message: dict[str, object]) -> None:
        try:
            answers.write(json.dumps(message) + "\n")
            answers.flush()
        except BrokenPipeError:
            os._exit(1)

    while (message := inbox.jobs.get()) is not None:
        answer({"id": message["id"], **_outcome(message, inbox, answer)})
    os._exit(0)


def _outcome(message: dict[str, Any], inbox: _Inbox, answer: Any) -> dict[str, object]:
    number: int = message["id"]

    def progress(text: str, share: float | None) -> None:
        answer({"id": number, "progress": text, "share": share})

    def is_cancelled() -> bool:
        return inbox.is_cancelled(number)

    try:
        if is_cancelled():
            raise CancelledError
        return {"result": JOBS[message["job"]](message["request"], progress, is_cancelled)}
    except CancelledError:
        return {"cancelled": True}
    except JobError as error:
        return {"error": str(error)}
    except Exception as error:
        log.error("the job %s failed", message["job"], exc_info=log.isEnabledFor(logging.DEBUG))
        return {"error": f"It failed ({type(error).__name__}: {error}). The server's log has more."}


if __name__ == "__main__":
    sys.exit(main())
