"""Commands in processes of their own that need not import the program: they are forked off one that has.

    with Commands() as commands:
        status = commands.run(("check", "a.cu"), folder, environment, stdout, stderr, seconds=60)

Importing is most of what a short command takes. What depends on how Python itself starts (its search path, the encoding
of its streams) is to be tested with a process that does.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

_LONGEST = 1 << 18
"""Bytes of a request: the arguments and the environment."""


class Commands:
    """A process that has loaded every command, and forks for each that is asked for."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )

    def run(
        self,
        arguments: Sequence[str],
        cwd: Path,
        environment: Mapping[str, str],
        stdout: IO[bytes],
        stderr: IO[bytes],
        seconds: float,
    ) -> int:
        """The exit status, that of a signal negative. Raises TimeoutError where it takes too long, and ends it."""
        request = json.dumps([list(arguments), str(cwd), dict(environment)]).encode("utf-8", "surrogateescape")
        self._socket.settimeout(None)
        socket.send_fds(self._socket, [request], [stdout.fileno(), stderr.fileno()])
        process = int(self._socket.recv(_LONGEST))
        try:
            self._socket.settimeout(seconds)
            return int(self._socket.recv(_LONGEST))
        except TimeoutError:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            self._socket.settimeout(None)
            self._socket.recv(_LONGEST)
            raise

    def close(self) -> None:
        self._socket.close()
        self._process.wait()


def _serve(requests: socket.socket) -> bool:
    """Fork for each request; true in the child, which is the command then, and false after the last."""
    while True:
        asked, files, _, _ = socket.recv_fds(requests, _LONGEST, 2)
        if not asked:
            return False
        process = os.fork()
        if process == 0:
            arguments, cwd, environment = json.loads(asked.decode("utf-8", "surrogateescape"))
            for number, file in enumerate(files, 1):
                os.dup2(file, number)
                os.close(file)
            requests.close()
            os.chdir(cwd)
            os.environ.clear()
            os.environ.update(environment)
            sys.argv = ["warpwright", *arguments]
            return True
        for file in files:
            os.close(file)
        requests.send(str(process).encode())
        requests.send(str(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])).encode())


def _load() -> None:
    """Import what commands import when they are asked for."""
    import importlib

    from warpwright.cli.main import COMMANDS
    from warpwright.rewrites.registry import all_rewrites
    from warpwright.rules.registry import all_rules

    for name in COMMANDS:
        importlib.import_module(f"warpwright.cli.{name.replace('-', '_')}")
    all_rules()
    all_rewrites()
    gc.freeze()  # a command that ends looks at nothing of this once more


if __name__ == "__main__":
    _load()
    if _serve(socket.socket(fileno=int(sys.argv[1]))):
        from warpwright.cli.main import main

        main()
