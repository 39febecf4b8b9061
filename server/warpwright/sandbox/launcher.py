"""Give up rights, then become the command: `python -I -S launcher.py POLICY COMMAND...`; see `confine`.

Standard library only: it is run by its path, in a bare Python, before the command that is not trusted. What could be
put in force is written to the file descriptor "status" of the policy as one JSON line; where the command cannot be
started, the error is. Nothing here can be undone by the command.

Sources: landlock(7), seccomp(2), the kernel's linux/landlock.h, linux/seccomp.h and asm/unistd.h.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import signal
import stat
import struct
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2

_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446  # the same on every architecture
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REFER, _TRUNCATE, _IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE
_READING = _EXECUTE | _READ_FILE | _READ_DIR
_TCP = 0b11  # bind, connect
_SCOPES = 0b11  # abstract sockets, signals: of processes outside

_RETURN_ALLOW, _RETURN_ERRNO = 0x7FFF0000, 0x00050000
_EPERM, _ENOSYS = 1, 38
_AF_UNIX = 1

# Audit architecture, `socket`, `connect`, those that are said to have worked and do nothing (setsid, setpgid: what left
# the group would outlive it), and those that no compiler and no CUDA program needs: ptrace, process_vm_readv,
# process_vm_writev, io_uring_setup, bpf, add_key, request_key, keyctl, mount, umount2, pivot_root, chroot, unshare,
# setns, userfaultfd, kexec_load, init_module, finit_module, open_by_handle_at.
_CALLS: Mapping[str, tuple[int, int, int, tuple[int, ...], tuple[int, ...]]] = {
    "x86_64": (
        0xC000003E, 41, 42, (112, 109),
        (101, 310, 311, 425, 321, 248, 249, 250, 165, 166, 155, 161, 272, 308, 323, 246, 175, 313, 304),
    ),
    "aarch64": (
        0xC00000B7, 198, 203, (157, 154),
        (117, 270, 271, 425, 280, 217, 218, 219, 40, 39, 41, 51, 97, 268, 282, 104, 105, 273, 265),
    ),
}  # fmt: skip
_FILES = "read-only file system"
_X32_BIT = 0x40000000


def main() -> int:
    policy, command = json.loads(sys.argv[1]), sys.argv[2:]
    status: int = policy["status"]
    os.set_inheritable(status, False)
    _die_with(policy["lifeline"])
    in_force = [_limits(policy["limits"])]
    if policy["confined"] and sys.platform == "linux":
        in_force += confine(
            policy["reads"], policy["writes"], policy["devices"], policy["local_sockets"], policy["local_services"]
        )
    if policy["must_confine"] and not any(_FILES in each for each in in_force):
        os.write(status, json.dumps({"unconfined": True}).encode() + b"\n")
        return 127
    os.write(status, json.dumps({"in_force": [each for each in in_force if each]}).encode() + b"\n")
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        os.write(status, json.dumps({"errno": error.errno}).encode() + b"\n")
    return 127


def _die_with(lifeline: int) -> None:
    """A companion in this process's group kills the group when the starter's end of the pipe `lifeline` goes."""
    if os.fork():
        os.close(lifeline)
        return
    os.dup2(lifeline, 0)
    os.closerange(1, 4096)
    while os.read(0, 1):
        pass
    os.killpg(0, signal.SIGKILL)


def _limits(limits: Mapping[str, int]) -> str:
    """Set each limit (a name of `resource` without RLIMIT_), for good. What cannot be set is left as it is."""
    import resource

    for name, value in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}", None)
        if kind is None:
            continue
        hard = resource.getrlimit(kind)[1]
        least = value if hard == resource.RLIM_INFINITY else min(value, hard)
        try:
            resource.setrlimit(kind, (least, least))
        except (OSError, ValueError):
            continue
    return "limits"


def confine(
    reads: Sequence[str] | None, writes: Sequence[str], devices: bool, local_sockets: bool, local_services: bool
) -> list[str]:
    """Keep this process and all its children to what is named; what of it the kernel put in force, in words."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        return []
    in_force = ["no new privileges"]
    version = libc.syscall(_LANDLOCK_CREATE, None, 0, 1)
    if version > 0 and _landlock(libc, version, reads, writes, devices):
        in_force.append(f"{_FILES} (Landlock {version})")
    if _seccomp(libc, local_sockets, local_services):
        in_force.append("no network (seccomp)")
    elif version >= 4 and in_force[-1] != "no new privileges":
        in_force.append("no TCP (Landlock)")
    return in_force


def _landlock(
    libc: ctypes.CDLL, version: int, reads: Sequence[str] | None, writes: Sequence[str], devices: bool
) -> bool:
    files = (1 << 13) - 1
    files |= _REFER if version >= 2 else 0
    files |= _TRUNCATE if version >= 3 else 0
    files |= _IOCTL_DEVICE if version >= 5 else 0
    attributes = struct.pack("QQQ", files, _TCP if version >= 4 else 0, _SCOPES if version >= 6 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = libc.syscall(_LANDLOCK_CREATE, attributes, size, 0)
    if ruleset < 0:
        return False
    for path in ["/"] if reads is None else reads:
        _allow(libc, ruleset, path, _READING & files)
    for path in writes:
        _allow(libc, ruleset, path, files)
    for path in _devices(devices):
        _allow(libc, ruleset, path, files & (_READING | _WRITE_FILE | _TRUNCATE | _IOCTL_DEVICE))
    done = libc.syscall(_LANDLOCK_RESTRICT, ruleset, 0)
    os.close(ruleset)
    return bool(done == 0)


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not stat.S_ISDIR(os.fstat(handle).st_mode):
        rights &= _OF_FILES
    libc.syscall(_LANDLOCK_ADD, ruleset, 1, struct.pack("=Qi", rights, handle), 0)
    os.close(handle)


def _devices(with_gpu: bool) -> Iterable[str]:
    yield from (f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom"))
    if not with_gpu:
        return
    yield "/dev/shm"  # what CUDA's processes share
    yield "/dev/dxg"  # the GPU in WSL 2
    yield from map(str, Path("/dev").glob("nvidia*"))


def _seccomp(libc: ctypes.CDLL, local_sockets: bool, local_services: bool) -> bool:
    known = _CALLS.get(platform.machine())
    if known is None or sys.maxsize <= 1 << 32:
        return False
    code = _filter(*known, local_sockets=local_sockets, local_services=local_services)
    program = b"".join(struct.pack("HBBI", *instruction) for instruction in code)
    buffer = ctypes.create_string_buffer(program, len(program))
    described = struct.pack("HxxxxxxP", len(code), ctypes.addressof(buffer))
    return bool(libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, described, 0, 0) == 0)


def _filter(
    architecture: int,
    socket: int,
    connect: int,
    faked: tuple[int, ...],
    refused: tuple[int, ...],
    *,
    local_sockets: bool,
    local_services: bool,
) -> list[tuple[int, int, int, int]]:
    """The filter as classic BPF: (operation, jump if true, jump if false, constant)."""
    load, equal, at_least, answer = 0x20, 0x15, 0x35, 0x06
    no, nothing = _RETURN_ERRNO | _EPERM, _RETURN_ERRNO
    code = [(load, 0, 0, 4), (equal, 1, 0, architecture), (answer, 0, 0, _RETURN_ERRNO | _ENOSYS), (load, 0, 0, 0)]
    code += [(at_least, 0, 1, _X32_BIT), (answer, 0, 0, _RETURN_ERRNO | _ENOSYS)]
    for call in faked:
        code += [(equal, 0, 1, call), (answer, 0, 0, nothing)]
    for call in refused if local_services else (*refused, connect):
        code += [(equal, 0, 1, call), (answer, 0, 0, no)]
    if local_sockets:
        code += [(equal, 0, 3, socket), (load, 0, 0, 16), (equal, 1, 0, _AF_UNIX), (answer, 0, 0, no)]
    else:
        code += [(equal, 0, 1, socket), (answer, 0, 0, no)]
    return [*code, (answer, 0, 0, _RETURN_ALLOW)]


if __name__ == "__main__":
    sys.exit(main())
