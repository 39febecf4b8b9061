"""What README.md and CONTRIBUTING.md say of the repository is so."""

from __future__ import annotations

import re
from pathlib import Path

from warpwright.rewrites.registry import all_rewrites
from warpwright.rules.registry import all_rules

REPOSITORY = Path(__file__).parents[2]


def test_the_counts_are_those_of_the_registries() -> None:
    readme = (REPOSITORY / "README.md").read_text("utf-8")
    counts = re.findall(r"\b(\d+) rules and (\d+) rewrites\b", readme)
    assert counts == [(str(len(all_rules())), str(len(all_rewrites())))]
