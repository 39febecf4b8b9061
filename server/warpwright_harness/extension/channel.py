"""Messages between the judge and a side's process: JSON lines on a socket pair, each answer with its question's number.

A number is drawn anew for each question, so that what an extension writes to every descriptor it finds is no answer.
"""

from __future__ import annotations

import array
import json
import os
import select
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

MOST_BYTES = 16 << 20
"""Of one message."""


class ChannelError(Exception):
    """The other process is gone, is silent past a deadline (`timed_out`), or wrote what is no answer (`forged`)."""

    def __init__(self, message: str, *, timed_out: bool = False, forged: bool = False) -> None:
        super().__init__(message)
        self.timed_out = timed_out
        self.forged = forged


class Channel:
    """One end. The judge asks and the side answers; a file descriptor may go along with a question."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._buffer = b""
        self._descriptors: list[int] = []

    def send(self, message: Mapping[str, Any], descriptor: int | None = None) -> None:
        """Raises ChannelError where the other process is gone."""
        data = json.dumps(message).encode() + b"\n"
        try:
            if descriptor is not None:
                passed = array.array("i", [descriptor])
                sent = self._socket.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, passed.tobytes())])
                data = data[sent:]
            self._socket.sendall(data)
        except OSError as error:
            raise ChannelError(f"it does not read what it is asked ({error.strerror})") from None

    def receive(self, seconds: float | None) -> dict[str, Any]:
        """The next message; None waits for ever. Raises ChannelError."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while b"\n" not in self._buffer:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise ChannelError(f"it did not answer in {seconds:g} seconds", timed_out=True)
            if not select.select([self._socket], [], [], left)[0]:
                continue
            if len(self._buffer) > MOST_BYTES:
                raise ChannelError("it wrote without end to the harness's channel", forged=True)
            try:
                data, ancillary, _, _ = self._socket.recvmsg(1 << 16, socket.CMSG_SPACE(4 * 4))
            except OSError:
                data, ancillary = b"", []
            for level, kind, passed in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    numbers = array.array("i")
                    numbers.frombytes(passed[: len(passed) - len(passed) % numbers.itemsize])
                    self._descriptors += numbers
            if not data:
                raise ChannelError("its process ended")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise ChannelError("it wrote to the harness's channel", forged=True)
        return message

    def descriptor(self) -> int | None:
        """The oldest file descriptor that came along and was not taken."""
        return self._descriptors.pop(0) if self._descriptors else None

    def close(self) -> None:
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors.clear()
        with suppress(OSError):  # wakes a thread that waits for an answer, and the other process
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
