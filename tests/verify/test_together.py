"""Questions of those who are under way at the same time are answered together, with tools that got ready meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from warpwright.progress import CancelledError, IsCancelled, never_cancelled
from warpwright.verify.together import Together


class Doubling:
    """Doubles numbers with numbered tools; what is done with them is written down."""

    def __init__(self) -> None:
        self.made: list[int] = []
        self.dropped: list[int] = []
        self.goes: list[tuple[int, list[int]]] = []
        self.was_cancelled = threading.Event()
        self.let = threading.Event()
        self.let.set()
        self.together: Together[int, int, int] = Together(self.prepare, self.work, self.dropped.append)

    def prepare(self) -> int:
        self.made.append(len(self.made))
        return self.made[-1]

    def work(self, tools: int, questions: Sequence[int], is_cancelled: IsCancelled) -> list[int]:
        self.goes.append((tools, sorted(questions)))
        while not self.let.wait(0.01):
            if is_cancelled():
                self.was_cancelled.set()
                raise CancelledError
        if 13 in questions:
            raise ValueError("13")
        return [2 * question for question in questions]

    def ask(self, question: int, others: threading.Barrier) -> int:
        with self.together.expecting():
            others.wait(10)
            return self.together.answer(question, never_cancelled)


def test_one_alone_is_answered_at_once_with_tools_that_were_made_before_it_asked() -> None:
    doubling = Doubling()
    with doubling.together.expecting():
        assert doubling.made == [0]
        assert doubling.together.answer(4, never_cancelled) == 8
    assert doubling.goes == [(0, [4])]
    assert doubling.dropped == []


def test_the_very_first_is_not_kept_waiting_for_others() -> None:
    doubling = Doubling()
    with doubling.together.expecting(), doubling.together.expecting(), doubling.together.expecting():
        assert doubling.together.answer(4, never_cancelled) == 8
    assert doubling.goes == [(0, [4])]


def test_half_of_those_who_are_under_way_are_waited_for_and_each_gets_its_own_answer() -> None:
    doubling = Doubling()
    doubling.ask(0, threading.Barrier(1))
    doubling.goes.clear()
    doubling.made.clear()
    doubling.dropped.clear()
    barrier = threading.Barrier(8)
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda question: doubling.ask(question, barrier), range(8)))
    assert answers == [2 * question for question in range(8)]
    assert len(doubling.goes[0][1]) >= 4
    assert sorted(question for _, group in doubling.goes for question in group) == list(range(8))
    assert sorted(doubling.made) == sorted([*(tools for tools, _ in doubling.goes), *doubling.dropped])


def test_tools_that_nobody_needed_are_dropped() -> None:
    doubling = Doubling()
    with doubling.together.expecting(), doubling.together.expecting():
        pass
    assert (doubling.made, doubling.dropped, doubling.goes) == ([0], [0], [])


def test_who_ends_without_a_question_is_not_waited_for() -> None:
    doubling = Doubling()
    both = threading.Barrier(2)
    with ThreadPoolExecutor(1) as threads:
        with doubling.together.expecting(), doubling.together.expecting():
            asked = threads.submit(doubling.ask, 5, both)
            both.wait(10)
            assert not doubling.goes, "two others are still under way"
        assert asked.result(timeout=10) == 10


def test_what_is_raised_reaches_who_asked_and_no_other_go() -> None:
    doubling = Doubling()
    with pytest.raises(ValueError, match="13"):
        doubling.together.answer(13, never_cancelled)
    assert doubling.together.answer(7, never_cancelled) == 14


def test_work_that_nobody_waits_for_is_cancelled() -> None:
    doubling = Doubling()
    doubling.let.clear()
    with pytest.raises(CancelledError):
        doubling.together.answer(1, lambda: bool(doubling.goes))
    assert doubling.was_cancelled.wait(10)
