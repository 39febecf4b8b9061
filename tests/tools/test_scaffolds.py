"""The scaffolds and the page generator, run as a contributor runs them, on a copy of the tree."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COPIED = (
    *("server", "tests", "tools", "docs", "pyproject.toml"),
    *("benchmarks/results", "benchmarks/optimize_page.py", "benchmarks/formula_page.py"),
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the scaffolds touch and what their tests import."""
    copy = tmp_path_factory.mktemp("tree")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
        else:
            shutil.copy(ROOT / name, copy / name)
    return copy


def run(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "UPDATE_EXPECT"}
    environment |= {"PYTHONPATH": str(tree / "server"), "PYTHONPYCACHEPREFIX": f"{tree}-bytecode"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def documented(tool: str) -> list[str]:
    """The command of CONTRIBUTING.md, as arguments of Python."""
    written = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    (command,) = re.findall(rf"python (tools/{tool}\.py .+)$", written, re.MULTILINE)
    return command.split()


def test_a_new_rule_passes_its_tests(tree: Path) -> None:
    command = documented("new_rule")
    name = command[-1]
    made = run(tree, *command)
    assert made.returncode == 0, made.stderr
    assert f"wrote docs/rules/{name}.md" in made.stdout
    tests = run(
        tree,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/rules",
        "-k",
        f"{name} or every_rule_has_cases",
    )
    assert tests.returncode == 0, tests.stdout
    again = run(tree, *command)
    assert again.returncode == 2
    assert "is there already" in again.stderr
    elsewhere = run(tree, "tools/new_rule.py", "launch", name)
    assert elsewhere.returncode == 2
    assert "is there already" in elsewhere.stderr


def test_a_new_rewrite_passes_its_tests(tree: Path) -> None:
    """Behind a new rule: what both wrote is up to date."""
    command = documented("new_rewrite")
    name = command[-1]
    made = run(tree, *command)
    assert made.returncode == 0, made.stderr
    assert f"wrote docs/rewrites/{name}.md" in made.stdout
    tests = run(
        tree,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/rewrites",
        "-k",
        f"{name} or every_rewrite_has_cases",
    )
    assert tests.returncode == 0, tests.stdout
    assert run(tree, "tools/generate.py", "--check").returncode == 0
    again = run(tree, *command)
    assert again.returncode == 2
    assert "is there already" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("new_rule.py", "memory", "Bad_Name"), "not a rule's name"),
        (("new_rule.py", "memory", "../escape-here"), "not a rule's name"),
        (("new_rule.py", "nowhere", "some-defect"), "There is no group"),
        (("new_rule.py", "memory", "bank-conflict"), "is there already"),
        (("new_rule.py", "memory"), "python tools/new_rule.py GROUP NAME"),
        (("new_rewrite.py", "Bad"), "not a rewrite's name"),
        (("new_rewrite.py", "pad-shared-array"), "is there already"),
        (("new_rewrite.py",), "python tools/new_rewrite.py NAME"),
        (("generate.py", "--wrong"), "--check"),
    ],
)
def test_bad_arguments_are_refused(tree: Path, arguments: tuple[str, ...], says: str) -> None:
    before = sorted(tree.rglob("*"))
    done = run(tree, f"tools/{arguments[0]}", *arguments[1:])
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(tree.rglob("*")) == before


def test_check_says_which_page_is_stale_or_left_over(tree: Path) -> None:
    page, left_over = tree / "docs/rules/bank-conflict.md", tree / "docs/rules/gone.md"
    text = page.read_text(encoding="utf-8")
    try:
        page.write_text(text + "by hand\n", encoding="utf-8")
        left_over.write_text("# gone\n", encoding="utf-8")
        done = run(tree, "tools/generate.py", "--check")
        assert done.returncode == 1
        assert done.stdout.splitlines() == [
            "docs/rules/bank-conflict.md is stale or missing",
            "docs/rules/gone.md belongs to nothing",
        ]
        assert run(tree, "tools/generate.py").returncode == 0
        assert page.read_text(encoding="utf-8") == text
        assert not left_over.exists()
    finally:
        page.write_text(text, encoding="utf-8")
        left_over.unlink(missing_ok=True)


@pytest.mark.slow  # `make check` asks the same
def test_pages_of_this_tree_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "tools/generate.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
