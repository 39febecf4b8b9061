"""What README.md and CONTRIBUTING.md say of the repository is so."""

from __future__ import annotations

import re
from pathlib import Path

from support.command import run_command
from warpwright.rewrites.registry import all_rewrites
from warpwright.rules.registry import all_rules

REPOSITORY = Path(__file__).parents[2]


def test_the_counts_are_those_of_the_registries() -> None:
    readme = (REPOSITORY / "README.md").read_text("utf-8")
    counts = re.findall(r"\b(\d+) rules and (\d+) rewrites\b", readme)
    assert counts == [(str(len(all_rules())), str(len(all_rewrites())))]


def test_the_demo_prints_what_check_prints() -> None:
    command = "warpwright check csrc_samples/memory/transpose_tiled/kernel.cu"
    shown = (REPOSITORY / "README.md").read_text("utf-8").split(f"$ {command}\n\n")[1].split("\n\n== ")[0]
    assert run_command(*command.split()[1:], cwd=REPOSITORY).stdout.rstrip("\n") == shown
