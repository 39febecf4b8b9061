"""Questions that come while others are answered are answered together, in the next go."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from warpwright.progress import CancelledError, IsCancelled, never_cancelled
from warpwright.verify.together import Together


class Doubling:
    """Doubles numbers, each go only when it is let."""

    def __init__(self) -> None:
        self.goes: list[list[int]] = []
        self.began = threading.Semaphore(0)
        self.let = threading.Semaphore(0)
        self.was_cancelled = threading.Event()

    def __call__(self, questions: Sequence[int], is_cancelled: IsCancelled) -> list[int]:
        self.goes.append(list(questions))
        self.began.release()
        while not self.let.acquire(timeout=0.01):
            if is_cancelled():
                self.was_cancelled.set()
                raise CancelledError
        if 13 in questions:
            raise ValueError("13")
        return [2 * question for question in questions]


def waiting_behind(first: int, others: Sequence[int], work: Doubling) -> list[int]:
    """The answers: `first` has a go alone, the others come meanwhile."""
    together = Together(work)
    with ThreadPoolExecutor(1 + len(others)) as threads:
        one = threads.submit(together.answer, first, never_cancelled)
        work.began.acquire()
        rest = [threads.submit(together.answer, other, never_cancelled) for other in others]
        while len(together._waiting) < len(others):
            pass
        work.let.release(2)
        return [future.result(timeout=10) for future in (one, *rest)]


def test_each_gets_its_own_answer_and_those_who_waited_got_it_together() -> None:
    work = Doubling()
    assert waiting_behind(1, [2, 3, 4], work) == [2, 4, 6, 8]
    assert work.goes[0] == [1]
    assert sorted(work.goes[1]) == [2, 3, 4]
    assert len(work.goes) == 2


def test_what_is_raised_reaches_all_of_the_go_and_no_other() -> None:
    work = Doubling()
    together = Together(work)
    work.let.release(2)
    with pytest.raises(ValueError, match="13"):
        together.answer(13, never_cancelled)
    assert together.answer(7, never_cancelled) == 14


def test_work_that_nobody_waits_for_is_cancelled() -> None:
    work = Doubling()
    with pytest.raises(CancelledError):
        Together(work).answer(1, lambda: bool(work.goes))
    assert work.was_cancelled.wait(10)
