"""docs/continuous-integration.md: what it tells people to write is run as it stands there."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli.kernels import CLEAN, CONFLICT
from support.command import command_on_path, environment
from support.pages import blocks, sections

ROOT = Path(__file__).resolve().parents[2]
PAGE = sections((ROOT / "docs" / "continuous-integration.md").read_text(encoding="utf-8"))

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("pre_commit") is None, reason="not installed: pre-commit (pip install '.[dev]')"
)


def yaml(text: str) -> Any:
    from yaml import safe_load

    return safe_load(text)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A git repository with a clean kernel and one that is not, in a folder with a blank in its name."""
    folder = tmp_path / "my project"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "clean.cu").write_text(CLEAN, encoding="utf-8")
    (folder / "con flict.cu").write_text(CONFLICT, encoding="utf-8")
    return folder


def git(folder: Path, *arguments: str) -> None:
    person = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *person, *arguments], cwd=folder, check=True, capture_output=True)


def run(command: list[str], project: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run what the page says, with the `warpwright` that is under test."""
    programs = project.parent / "bin"
    programs.mkdir(exist_ok=True)
    # Git's own variables, which a hook that runs these tests has set, name another repository.
    outer = {name: value for name, value in environment().items() if not name.startswith("GIT_")}
    return subprocess.run(
        command,
        cwd=project,
        env=outer | {"PATH": command_on_path(programs)} | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def shell(line: str, project: Path) -> subprocess.CompletedProcess[str]:
    """As the runners of GitHub and GitLab do."""
    return run(["bash", "-e", "-c", line], project)


def test_the_github_workflow(project: Path) -> None:
    workflow, annotations = (yaml(block) for block in blocks(PAGE["GitHub"], "yaml"))
    steps = workflow["jobs"]["check"]["steps"]
    (upload,) = [step["with"] for step in steps if step.get("uses", "").startswith("github/codeql-action/upload-sarif")]
    (check,) = [step["run"] for step in steps if step.get("run", "").startswith("warpwright")]
    done = shell(check, project)
    assert (done.returncode, done.stderr) == (0, "")
    log = json.loads((project / upload["sarif_file"]).read_text(encoding="utf-8"))
    (result,) = log["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "con%20flict.cu"

    (annotate,) = annotations
    done = shell(annotate["run"], project)
    assert done.returncode == 1
    assert done.stdout.startswith("::warning file=con flict.cu,line=5,")


def test_the_gitlab_job(project: Path) -> None:
    ((job,),) = (yaml(block).values() for block in blocks(PAGE["GitLab"], "yaml"))
    (check,) = [line for line in job["script"] if line.startswith("warpwright")]
    assert shell(check, project).returncode == 1
    (finding,) = json.loads((project / job["artifacts"]["reports"]["codequality"]).read_text(encoding="utf-8"))
    assert finding["location"]["path"] == "con flict.cu"


def test_the_baseline(project: Path) -> None:
    (text,) = blocks(PAGE["Only what is new"], "sh")
    record, compare = text.splitlines()
    assert shell(record, project).returncode == 0
    assert shell(compare, project).returncode == 0
    (project / "new.cu").write_text(CONFLICT, encoding="utf-8")
    done = shell(compare, project)
    assert done.returncode == 1
    assert "new.cu:5:" in done.stdout and "con flict.cu:5:" not in done.stdout


def test_the_pre_commit_hook(project: Path) -> None:
    """The hook as this repository declares it, in the program that pre-commit starts; only where that is installed
    (`language`) differs, which would fetch the dependencies."""
    ours = project.parent / "ours"
    ours.mkdir()
    (ours / ".pre-commit-hooks.yaml").write_bytes((ROOT / ".pre-commit-hooks.yaml").read_bytes())
    git(ours, "init", "-q", "-b", "main")
    git(ours, "add", ".")
    git(ours, "commit", "-q", "-m", "hooks")

    (block,) = blocks(PAGE["Before each commit"], "yaml")
    config = yaml(block)
    (repo,) = config["repos"]
    repo["repo"] = str(ours)
    (hook,) = repo["hooks"]
    hook["language"] = "system"
    # pre-commit reads JSON too: it is YAML.
    (project / ".pre-commit-config.yaml").write_text(json.dumps(config), encoding="utf-8")
    (project / "notes.txt").write_text(CONFLICT, encoding="utf-8")
    git(project, "add", ".")

    def commit_hook(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pre_commit", "run", "--color", "never", *arguments]
        return run(command, project, PRE_COMMIT_HOME=str(project.parent / "home"), HOME=os.devnull)

    found = commit_hook()
    assert found.returncode == 1, found.stdout + found.stderr
    assert "con flict.cu:5:" in found.stdout
    assert "1 finding (1 warning) in 2 files, 2 kernels" in found.stdout
    clean = commit_hook("--files", "clean.cu")
    assert (clean.returncode, "Passed" in clean.stdout) == (0, True)
    nothing = commit_hook("--files", "notes.txt")
    assert (nothing.returncode, "no files to check" in nothing.stdout) == (0, True)
