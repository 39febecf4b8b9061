"""What is advised where nvcc rejects the user's text."""

from __future__ import annotations

import pytest
from warpwright.optimize.improve import advice


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("nvcc found an error: a.cu:1: solver.h: No such file or directory.", "Name the header's folder with `-I`"),
        ('nvcc found an error: a.cu:1: identifier "x" is undefined.', "`--goal fix`"),
    ],
)
def test_a_missing_header_is_no_case_for_repair(reason: str, words: str) -> None:
    assert advice(reason).startswith(words)
