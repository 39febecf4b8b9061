"""What every command promises: help, one sentence for an error, the right status, no traceback."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import time
from pathlib import Path

import pytest
from cli.kernels import CLEAN, CONFLICT
from support.command import COMMAND, environment, run_command
from warpwright import __version__
from warpwright.cli.main import COMMANDS


def test_help_names_every_command(tmp_path: Path) -> None:
    ran = run_command("--help", cwd=tmp_path)
    assert ran.status == 0
    assert all(name in ran.stdout for name in COMMANDS)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_explains_itself(command: str, tmp_path: Path) -> None:
    ran = run_command(command, "--help", cwd=tmp_path)
    assert ran.status == 0
    assert ran.stdout.startswith(f"Usage: warpwright {command}")


def test_version(tmp_path: Path) -> None:
    assert __version__ in run_command("--version", cwd=tmp_path).stdout


def test_an_unknown_command_gets_a_suggestion(tmp_path: Path) -> None:
    ran = run_command("chek", "a.cu", cwd=tmp_path)
    assert ran.status == 2
    assert "Did you mean 'check'?" in ran.stderr


@pytest.mark.sampled(4)
@pytest.mark.parametrize("command", ["check", "facts", "fix", "optimize"])
def test_a_missing_file(command: str, tmp_path: Path) -> None:
    ran = run_command(command, "none.cu", cwd=tmp_path)
    assert (ran.status, ran.stdout) == (2, "")
    assert "none.cu: no such file" in ran.stderr


@pytest.mark.sampled(4)
@pytest.mark.parametrize("command", ["check", "facts", "fix", "optimize"])
def test_a_binary_file(command: str, tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_bytes(b"\x7fELF\x00\x00\x01")
    ran = run_command(command, "a.cu", cwd=tmp_path)
    assert ran.status == 2
    assert "a.cu: is a binary file" in ran.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file, so there is no unreadable one to test with")
def test_an_unreadable_file(tmp_path: Path) -> None:
    path = tmp_path / "a.cu"
    path.write_text(CLEAN, encoding="utf-8")
    path.chmod(0)
    ran = run_command("check", "a.cu", cwd=tmp_path)
    assert ran.status == 2
    assert "a.cu: cannot be read (Permission denied)" in ran.stderr


def test_a_file_that_the_system_refuses_to_read(tmp_path: Path) -> None:
    """A loop of links is unreadable even for root."""
    (tmp_path / "a.cu").symlink_to("a.cu")
    ran = run_command("check", "a.cu", cwd=tmp_path)
    assert ran.status == 2
    assert "a.cu: cannot be read (Too many levels of symbolic links)" in ran.stderr


def test_a_reader_that_goes_away(tmp_path: Path) -> None:
    for number in range(40):  # side by side
        (tmp_path / f"{number}.cu").write_text("" if number else CONFLICT, encoding="utf-8")
    process = subprocess.Popen(
        [*COMMAND, "check", "."], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    assert process.wait(60) == 141
    assert b"Error" not in said
    process.stderr.close()


def test_ctrl_c_ends_quietly(tmp_path: Path) -> None:
    """While many files are checked: no traceback, and no process stays behind."""
    for number in range(400):
        (tmp_path / f"{number}.cu").write_text(CONFLICT * 20, encoding="utf-8")
    process = subprocess.Popen(
        [*COMMAND, "check", "."],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment(),
        start_new_session=True,
    )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline = time.monotonic() + 60
    while not children.read_text(encoding="utf-8") and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in said
    assert said.strip().endswith(b"Stopped.")
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


@pytest.mark.parametrize(("variable", "coloured"), [("NO_COLOR", False), ("FORCE_COLOR", True)])
def test_colour_can_be_forced_either_way(variable: str, coloured: bool, tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(CONFLICT, encoding="utf-8")
    assert ("\x1b[" in _on_a_terminal(tmp_path, {"NO_COLOR": "1"})) is False
    ran = run_command("check", "a.cu", cwd=tmp_path, env={variable: "1"})
    assert ("\x1b[" in ran.stdout) is coloured


def test_colour_is_for_terminals(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(CONFLICT, encoding="utf-8")
    assert "\x1b[" not in run_command("check", "a.cu", cwd=tmp_path).stdout
    assert "\x1b[" in _on_a_terminal(tmp_path, {})


def _on_a_terminal(cwd: Path, env: dict[str, str]) -> str:
    """What `warpwright check a.cu` writes to a pseudo-terminal."""
    leader, follower = pty.openpty()
    subprocess.run(
        [*COMMAND, "check", "a.cu"], cwd=cwd, env=environment(env), stdout=follower, stderr=follower, check=False
    )
    os.close(follower)
    written = b""
    try:
        while block := os.read(leader, 65536):
            written += block
    except OSError:  # Linux says EIO at the end of a pseudo-terminal
        pass
    os.close(leader)
    return written.decode()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_one_sentence() -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        ran = subprocess.run(
            [*COMMAND, "check", "--help"], stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60
        )
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert "no space is left" in ran.stderr
