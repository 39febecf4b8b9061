"""`warpwright trust`, and what is done with a folder that nobody allowed where nothing confines a compiler."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import Ran, environment, run_command
from support.unconfined import unconfined

KERNEL = "__global__ void k(float* a) { a[threadIdx.x] = 1; }\nvoid run(float* a) { k<<<1, 256>>>(a); }\n"


@pytest.fixture
def own(tmp_path: Path) -> dict[str, str]:
    return {"WARPWRIGHT_CONFIG_DIR": str(tmp_path / "config"), "WARPWRIGHT_CACHE_DIR": str(tmp_path / "cache")}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / "src" / "k.cu").write_text(KERNEL)
    return folder


def run_unconfined(*arguments: str, cwd: Path, env: dict[str, str]) -> Ran:
    done = subprocess.run(
        unconfined(sys.executable, "-m", "warpwright.cli", *arguments),
        cwd=cwd, env=environment(env), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240,
        check=False,
    )  # fmt: skip
    return Ran(done.returncode, done.stdout, done.stderr)


def test_folders_are_allowed_listed_and_taken_back(project: Path, own: dict[str, str], tmp_path: Path) -> None:
    assert run_command("trust", cwd=tmp_path, env=own).stdout == "No folder is allowed.\n"
    link = tmp_path / "link"
    link.symlink_to(project)
    assert run_command("trust", link, cwd=tmp_path, env=own).stdout == f"{project}\n"
    assert run_command("trust", "project", "--format", "json", cwd=tmp_path, env=own).json == [str(project)]
    inner = run_command("trust", "--revoke", project / "src", cwd=tmp_path, env=own)
    assert inner.status == 2 and f"{project}, which holds it, is" in inner.stderr
    assert run_command("trust", "--revoke", ".", cwd=project, env=own).status == 0
    assert json.loads((tmp_path / "config" / "trusted_folders.json").read_text()) == []


@pytest.mark.parametrize("folder", ["/", "~", "nowhere", "k.cu"])
def test_what_is_no_folder_of_a_project_is_not_allowed(folder: str, project: Path, own: dict[str, str]) -> None:
    ran = run_command("trust", os.path.expanduser(folder), cwd=project / "src", env=own)  # noqa: PTH111
    assert ran.status == 2
    assert ran.stderr.startswith("error: ") and ran.stderr.endswith(".\n")


@pytest.mark.sampled(3)
@pytest.mark.skipif(os.name == "nt", reason="needs links")
@pytest.mark.parametrize("text", ["{", "[1, null, [[]]]", '{"a": 1}', '["project", ".", "~"]', "[" * 100_000, "\ud800"])
def test_a_file_of_folders_that_is_none_allows_nothing(
    text: str, project: Path, own: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "trusted_folders.json").write_bytes(text.encode(errors="surrogatepass"))
    assert run_command("trust", cwd=tmp_path, env=own).stdout == "No folder is allowed.\n"


def test_no_project_says_where_the_file_of_folders_is(project: Path, own: dict[str, str]) -> None:
    """A relative folder would be one of the project in which a process is started."""
    (project / "config").mkdir()
    (project / "config" / "trusted_folders.json").write_text(json.dumps([str(project)]))
    elsewhere = {**own, "WARPWRIGHT_CONFIG_DIR": "config", "XDG_CONFIG_HOME": own["WARPWRIGHT_CONFIG_DIR"]}
    assert run_command("trust", cwd=project, env=elsewhere).stdout == "No folder is allowed.\n"


@pytest.mark.nvcc
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing confines a compiler as it is")
def test_without_a_sandbox_only_what_is_allowed_is_compiled(project: Path, own: dict[str, str]) -> None:
    file = project / "src" / "k.cu"
    refused = run_unconfined("check", "--compile", str(file), cwd=project, env=own)
    assert "this system cannot keep a compiler from your other files" in refused.stderr
    assert f"`warpwright trust {project}`" in refused.stderr
    for command in ("sass", "verify", "profile"):
        given = [str(file)] * (2 if command == "verify" else 1)
        assert "cannot keep a compiler" in said(run_unconfined(command, *given, cwd=project, env=own)), command
    assert not list((project.parent / "cache").rglob("*.cubin"))
    assert run_command("trust", project, cwd=project, env=own).status == 0
    assert "cannot keep" not in run_unconfined("check", "--compile", str(file), cwd=project, env=own).stderr
    assert list((project.parent / "cache").rglob("*.cubin"))
    run_command("trust", "--revoke", project, cwd=project, env=own)
    file.write_text(KERNEL + "\n")
    assert "cannot keep" in run_unconfined("check", "--compile", str(file), cwd=project, env=own).stderr
    given = {**own, "WARPWRIGHT_TRUSTED_FOLDERS": str(project)}
    assert "cannot keep" not in run_unconfined("check", "--compile", str(file), cwd=project, env=given).stderr


def said(ran: Ran) -> str:
    return ran.stdout + ran.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing confines a compiler as it is")
def test_the_doctor_says_what_is_missing_and_who_is_allowed(project: Path, own: dict[str, str]) -> None:
    run_command("trust", project, cwd=project, env=own)
    text = run_unconfined("doctor", cwd=project.parent, env=own).stdout
    assert "before you allow it: `warpwright trust FOLDER`" in text
    assert "(`warpwright trust`): project" in text
