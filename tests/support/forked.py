"""Commands in processes of their own that need not import the program: they are forked off one that has.

    commands = Commands("warpwright")
    status = commands.run(("check", "a.cu"), folder, environment, stdout, stderr, seconds=60)

The first argument of one of `warpwright_upskill` is its stage.

Importing is most of what a short command takes. What depends on how Python itself starts (its search path, the encoding
of its streams) is to be tested with a process that does.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NoReturn

_LONGEST = 1 << 18
"""Bytes of a request: the arguments and the environment."""


class Commands:
    """A process that has loaded every command, and forks for each that is asked for."""

    def __init__(self, program: str) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, program, str(theirs.fileno())],
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
            sys.argv[1:] = arguments
            return True
        for file in files:
            os.close(file)
        requests.send(str(process).encode())
        requests.send(str(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])).encode())


def _load_warpwright() -> None:
    """Import what commands import when they are asked for."""
    from warpwright.cli.main import COMMANDS
    from warpwright.rewrites.registry import all_rewrites
    from warpwright.rules.registry import all_rules

    for name in COMMANDS:
        importlib.import_module(f"warpwright.cli.{name.replace('-', '_')}")
    all_rules()
    all_rewrites()


def _run_warpwright() -> None:
    from warpwright.cli.main import main

    sys.argv[0] = "warpwright"
    main()


def _load_upskill() -> None:
    """Import what training does, which takes several seconds."""
    from warpwright_upskill.console import settle_libraries

    settle_libraries()
    for name in ("torch", "transformers", "peft", "warpwright_upskill.train"):
        importlib.import_module(name)


def _run_upskill() -> None:
    from warpwright_upskill.console import stage

    name = f"warpwright_upskill.{sys.argv.pop(1)}"
    sys.argv[0] = f"python -m {name}"
    stage(importlib.import_module(name).main)


def _end(run: Callable[[], None]) -> NoReturn:
    """Run a program to its end, but for taking its modules apart, which would copy all that they hold."""
    status = 0
    try:
        run()
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads it
            stream.flush()
    os._exit(status)


PROGRAMS = {"warpwright": (_load_warpwright, _run_warpwright), "upskill": (_load_upskill, _run_upskill)}

if __name__ == "__main__":
    load, run = PROGRAMS[sys.argv[1]]
    load()
    gc.freeze()  # a command that ends looks at nothing of this once more
    if _serve(socket.socket(fileno=int(sys.argv[2]))):
        _end(run)
