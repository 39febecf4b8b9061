"""How many threads the model computes with, by what the machine does."""

from __future__ import annotations

import pytest
from warpwright.assist.threads import Threads, running


def threads(available: int, others: int) -> Threads:
    return Threads(available, lambda: others + 1)


@pytest.mark.parametrize(
    ("available", "others", "count"), [(2, 0, 2), (2, 1, 1), (2, 2, 1), (2, 50, 1), (1, 0, 1), (8, 3, 5), (64, 9, 8)]
)
def test_a_request_begins_with_what_is_free(available: int, others: int, count: int) -> None:
    found = threads(available, others)
    found.look()
    assert found.count == count


def test_what_runs_for_a_moment_does_not_count() -> None:
    looks = iter([1, 9, 1, 1, 9])
    found = Threads(2, lambda: next(looks))
    found.look()
    assert found.count == 2


def test_threads_that_do_not_get_their_time_become_fewer() -> None:
    found = threads(8, 0)
    found.look()
    found.learn(0.01, 0.08)
    assert found.count == 8
    found.learn(0.01, 0.061)
    assert found.count == 6
    found.learn(0.01, 0.0)
    assert found.count == 1
    found.learn(0.01, 0.0)
    assert found.count == 1


def test_this_machine_can_be_asked() -> None:
    assert running() >= 1
