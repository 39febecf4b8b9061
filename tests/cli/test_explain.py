"""`warpwright explain`."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import run_command
from warpwright.rewrites.registry import all_rewrites
from warpwright.rules.registry import all_rules


def test_without_a_name_it_lists_everything(tmp_path: Path) -> None:
    ran = run_command("explain", cwd=tmp_path)
    assert ran.status == 0
    assert all(one.name in ran.stdout for one in all_rules())
    assert all(one.name in ran.stdout for one in all_rewrites())


@pytest.mark.parametrize("name", ["bank-conflict", "Bank_Conflict"])
def test_a_rule(name: str, tmp_path: Path) -> None:
    ran = run_command("explain", name, cwd=tmp_path)
    assert ran.status == 0
    assert ran.stdout.startswith("# bank-conflict\n")
    assert "Why is this bad?" in ran.stdout


def test_a_rewrite(tmp_path: Path) -> None:
    ran = run_command("explain", "pad-shared-array", cwd=tmp_path)
    assert ran.status == 0
    assert ran.stdout.startswith("# pad-shared-array\n")


def test_an_unknown_name_gets_near_ones(tmp_path: Path) -> None:
    ran = run_command("explain", "bank-conflicts", cwd=tmp_path)
    assert ran.status == 2
    assert "there is no rule or rewrite 'bank-conflicts'. Did you mean bank-conflict" in ran.stderr
