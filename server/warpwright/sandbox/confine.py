"""Start a command that gives up its rights first, in a process group of its own that can be killed whole.

What is given up depends on the system. Everywhere but on Windows: limits, and the whole group dies with the process
that started it, however that ended. On Linux also: no way to gain privileges; the file system is read-only but for
what is named, or not even readable (Landlock, from Linux 5.13); no sockets, no ptrace, no mounts and no leaving of the
process group (seccomp). No rights of root are needed. What the kernel lacks is left out; `in_force` says what was put.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

from warpwright.sandbox.ending import end_group

START_SECONDS = 120.0
"""For a command's start, on a machine that is at work."""

_LAUNCHER = Path(__file__).with_name("launcher.py")
_PRIVATE = frozenset(
    {"etc", "home", "root", "run", "tmp", "var", "boot", "media", "mnt", "srv", "lost+found", "dev", "proc"}
)
"""Folders of `/` in which people, services and processes keep their own; all others hold programs and libraries."""

NEEDED = (
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/alternatives",
    "/etc/localtime", "/proc/meminfo", "/proc/cpuinfo", "/proc/stat", "/proc/sys",
)  # fmt: skip
"""What programs read elsewhere: where libraries are, the time zone, what the machine has."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What a command keeps. `limits` are by the names of setrlimit(2) without RLIMIT_.

    `confined` is False where only limits are wanted. `reads` are the folders and files that can be read, None for all;
    `writes` are those that can be changed too. `devices` are the GPU's. `local_sockets` are those of Unix, with
    which nobody else is reached unless `local_services` is true. Where `must_confine` is true, a system that cannot
    keep the command from files does not start it: UnconfinedError.
    """

    limits: Mapping[str, int] = field(default_factory=lambda: {})
    confined: bool = True
    reads: tuple[str, ...] | None = None
    writes: tuple[str, ...] = ()
    devices: bool = False
    local_sockets: bool = False
    local_services: bool = False
    must_confine: bool = False


class UnconfinedError(OSError):
    """This system cannot keep a command from files, and it was not to be started without."""

    def __init__(self) -> None:
        super().__init__(errno.ENOTSUP, "this system cannot keep it from other files")


class Confined:
    """A running command. Whoever starts one calls `kill` at the end, however it went."""

    def __init__(
        self,
        command: Sequence[str],
        policy: Policy,
        *,
        environment: Mapping[str, str],
        directory: Path | None = None,
        stdin: int = subprocess.DEVNULL,
        output: IO[bytes] | int,
        pass_fds: tuple[int, ...] = (),
    ) -> None:
        """Start it; stdout and stderr both go to `output`. Raises OSError."""
        opened: list[int] = []
        self._status = self._life = -1
        self._said = b""
        if policy.must_confine and sys.platform != "linux":
            raise UnconfinedError
        if sys.platform == "win32":
            start, close = [*command], []
        else:
            self._status, status = os.pipe()
            lifeline, self._life = os.pipe()
            close = [status, lifeline]
            opened = [self._status, self._life]
            described = json.dumps({**asdict(policy), "status": status, "lifeline": lifeline})
            start = [sys.executable, "-I", "-S", str(_LAUNCHER), described, *command]
        try:
            self.process = subprocess.Popen(
                start,
                cwd=directory,
                env=dict(environment),
                stdin=stdin,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=(*pass_fds, *close),
                start_new_session=True,
            )
        except OSError:
            for each in opened:
                os.close(each)
            self._status = self._life = -1
            raise
        finally:
            for each in close:
                os.close(each)

    def in_force(self) -> tuple[str, ...]:
        """What was put in force, in words; waits until the command is started. Raises OSError where it cannot be, and
        TimeoutError, which is one, where it is not within START_SECONDS."""
        if self._status >= 0:
            deadline = time.monotonic() + START_SECONDS
            with selectors.DefaultSelector() as selector:
                selector.register(self._status, selectors.EVENT_READ)
                while True:
                    if not selector.select(max(0.0, deadline - time.monotonic())):
                        raise TimeoutError(errno.ETIMEDOUT, f"it was not started within {START_SECONDS:g} seconds")
                    chunk = os.read(self._status, 1 << 12)
                    if not chunk:
                        break
                    self._said += chunk
            os.close(self._status)
            self._status = -1
        words: tuple[str, ...] = ()
        for line in self._said.splitlines():
            message = json.loads(line)
            if "unconfined" in message:
                raise UnconfinedError
            if "errno" in message:
                raise OSError(message["errno"], os.strerror(message["errno"]))
            words = tuple(message["in_force"])
        return words

    def kill(self) -> None:
        """End the command and all that it started, and wait for it. May be called twice."""
        end_group(self.process.pid)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=30)
        for each in (self._status, self._life):
            if each >= 0:
                os.close(each)
        self._status = self._life = -1


def in_force_here() -> tuple[str, ...]:
    """What a confined command on this machine is kept from, in words, found out by starting one."""
    try:
        tried = Confined([sys.executable, "-I", "-S", "-c", ""], Policy(), environment={}, output=subprocess.DEVNULL)
    except OSError:
        return ()
    try:
        return tried.in_force()
    except OSError:
        return ()
    finally:
        tried.kill()


def system_folders() -> tuple[str, ...]:
    """What any program on this machine may read: programs, libraries and their settings, nobody's own files.

    The Python that runs this is among it, wherever it is installed.
    """
    found = [str(each) for each in sorted(Path("/").iterdir()) if each.name not in _PRIVATE]
    return tuple(dict.fromkeys([*found, *NEEDED, sys.prefix, sys.base_prefix]))
