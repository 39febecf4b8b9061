"""What a confined command can and cannot do, tried by a real one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.processes import come, gone
from warpwright.sandbox import confine
from warpwright.sandbox.confine import Confined, Policy, system_folders

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines")

TRIES = """
import ctypes, json, os, resource, socket, subprocess, sys
secret, outside = sys.argv[1:3]

def attempt(what):
    try:
        what()
    except OSError as error:
        return type(error).__name__
    except MemoryError:
        return "MemoryError"
    return "done"

def grow():
    with open("own", "wb") as sink:
        for _ in range(64):
            sink.write(bytes(1 << 20))

print(json.dumps({
    "reads a secret": attempt(lambda: open(secret).read()),
    "writes outside": attempt(lambda: open(outside, "w")),
    "truncates outside": attempt(lambda: os.truncate(secret, 0)),
    "removes outside": attempt(lambda: os.unlink(secret)),
    "writes in its own folder": attempt(lambda: open("own", "w")),
    "writes to /dev/null": attempt(lambda: open("/dev/null", "w").write("x")),
    "internet": attempt(lambda: socket.socket()),
    "local socket": attempt(lambda: socket.socket(socket.AF_UNIX)),
    "memory": attempt(lambda: bytearray(1 << 30)),
    "a large file": attempt(grow),
    "kills outside": attempt(lambda: os.kill(os.getppid(), 0)),
    "compiler": attempt(lambda: subprocess.run(["true"], check=True)),
}))
"""


@pytest.fixture
def own() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def tried(policy: Policy, own: Path, secret: Path, outside: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    with (own / "log").open("wb") as sink:
        confined = Confined(
            [sys.executable, "-c", TRIES, str(secret), str(outside)],
            policy,
            environment={"PATH": os.environ["PATH"]},
            directory=own,
            output=sink,
        )
        try:
            in_force = confined.in_force()
            confined.process.wait(60)
        finally:
            confined.kill()
    said = (own / "log").read_text()
    answer: dict[str, Any] = json.loads(said) if said.startswith("{") else {"said": said}
    return answer, in_force


def test_a_command_that_does_not_start_is_not_waited_for_without_end(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A launcher that says nothing and does not end, as on a machine that is out of memory."""
    (own / "launcher.py").write_text("import time; time.sleep(60)\n")
    monkeypatch.setattr(confine, "_LAUNCHER", own / "launcher.py")
    monkeypatch.setattr(confine, "START_SECONDS", 0.2)
    confined = Confined([sys.executable], Policy(), environment={}, output=subprocess.DEVNULL)
    try:
        with pytest.raises(TimeoutError, match="not started within"):
            confined.in_force()
    finally:
        confined.kill()


def test_a_confined_command_keeps_to_its_folder(own: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s")
    limits = {"AS": 1 << 29, "FSIZE": 32 << 20}
    policy = Policy(limits=limits, reads=system_folders(), writes=(str(own),))
    answer, in_force = tried(policy, own, secret, tmp_path / "outside")
    if not {"no network (seccomp)"} <= set(in_force) or "Landlock" not in " ".join(in_force):
        pytest.skip(f"this kernel puts in force only: {', '.join(in_force)}")
    refused = {name for name, outcome in answer.items() if outcome == "PermissionError"}
    assert refused >= {"reads a secret", "writes outside", "truncates outside", "removes outside"}, answer
    assert refused >= {"internet", "local socket"}, answer
    assert answer["writes in its own folder"] == answer["writes to /dev/null"] == answer["compiler"] == "done", answer
    assert answer["memory"] == "MemoryError"
    assert answer["a large file"] == "OSError"
    assert secret.read_text() == "s"


def test_all_can_be_read_where_nothing_is_said(own: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    answer, in_force = tried(Policy(), own, tmp_path / "secret", tmp_path / "outside")
    assert answer["reads a secret"] == "done"
    assert in_force[0] == "limits"


def test_only_limits_are_only_limits(own: Path, tmp_path: Path) -> None:
    answer, in_force = tried(Policy(confined=False), own, tmp_path / "secret", tmp_path / "outside")
    assert in_force == ("limits",)
    assert answer["internet"] == answer["writes outside"] == "done"


def test_a_command_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as sink:
        confined = Confined(["/nowhere/nvcc"], Policy(), environment={}, output=sink)
        try:
            with pytest.raises(FileNotFoundError):
                confined.in_force()
        finally:
            confined.kill()


def test_what_leaves_the_group_in_vain_dies_with_it(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import subprocess; subprocess.Popen(['sleep', '700.125'], start_new_session=True)")
    with (tmp_path / "log").open("wb") as sink:
        confined = Confined([sys.executable, str(script)], Policy(), environment=os.environ, output=sink)
        try:
            if "no network (seccomp)" not in confined.in_force():
                pytest.skip("no seccomp here")
            confined.process.wait(60)
            assert come("700.125")
        finally:
            confined.kill()
    assert gone("700.125")


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    code = f"""
import os, sys
from pathlib import Path
from warpwright.sandbox.confine import Confined, Policy
before = os.listdir("/proc/self/fd")
with open({str(tmp_path / "log")!r}, "wb") as sink:
    for command in (["true"], ["/nowhere"]):
        confined = Confined(command, Policy(), environment=os.environ, output=sink)
        try:
            confined.in_force()
        except OSError:
            pass
        confined.kill()
        confined.kill()
assert os.listdir("/proc/self/fd") == before
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
