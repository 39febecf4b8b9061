"""The committed version of a file: what a repository says of commands is not done."""

from __future__ import annotations

import subprocess
from pathlib import Path

from warpwright.missing import Missing
from warpwright.toolchain.committed import committed_text


def git(folder: Path, *arguments: str) -> str:
    own = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", str(folder), *own, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def committed(folder: Path) -> Path:
    file = folder / "a.cu"
    git(folder, "init", "-q")
    file.write_text("int x;\n")
    git(folder, "add", "a.cu")
    git(folder, "commit", "-qm", "first")
    file.write_text("int y;\n")
    return file


def test_the_last_version_is_given(tmp_path: Path) -> None:
    assert committed_text(str(committed(tmp_path))) == b"int x;\n"


def test_no_command_of_the_repository_is_run(tmp_path: Path) -> None:
    """Filters, drivers, hooks and a monitor; and an object that is fetched by the command that the repository names."""
    folder = tmp_path / "project"
    folder.mkdir()
    file = committed(folder)
    ran = tmp_path / "ran"
    settings = {
        "core.fsmonitor": f"touch {ran}", "core.pager": f"touch {ran}", "diff.x.textconv": f"touch {ran}",
        "filter.x.smudge": f"touch {ran}", "core.sshCommand": f"touch {ran}", "core.repositoryformatversion": "1",
        "extensions.partialClone": "origin", "remote.origin.promisor": "true", "remote.origin.url": str(tmp_path),
        "remote.origin.uploadpack": f"touch {ran}; false", "protocol.allow": "always",
    }  # fmt: skip
    for name, value in settings.items():
        git(folder, "config", name, value)
    (folder / ".gitattributes").write_text("*.cu diff=x filter=x\n")
    assert committed_text(str(file)) == b"int x;\n"
    blob = git(folder, "rev-parse", "HEAD:a.cu")
    (folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    for url in (str(tmp_path), f"ext::sh -c touch% {ran}", f"ssh://localhost{tmp_path}"):
        git(folder, "config", "remote.origin.url", url)
        assert isinstance(committed_text(str(file)), Missing)
    assert not ran.exists()
