"""Work that costs no more for several questions than for one: those who come while it is done wait for the next go."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from warpwright.progress import CancelledError, IsCancelled

Question = TypeVar("Question")
Answer = TypeVar("Answer")
_POLL_SECONDS = 0.1


@dataclass(eq=False)
class _Asked(Generic[Question, Answer]):
    question: Question
    answer: Future[Answer] = field(default_factory=Future)
    has_left: threading.Event = field(default_factory=threading.Event)


class Together(Generic[Question, Answer]):
    """Asks `work` for the answers to all questions that wait, one go after the other. Safe to use from several threads.

    `work` gives an answer for each question, in their order. It is cancelled when nobody waits for it any more.
    """

    def __init__(self, work: Callable[[Sequence[Question], IsCancelled], Sequence[Answer]]) -> None:
        self._work = work
        self._lock = threading.Lock()
        self._waiting: list[_Asked[Question, Answer]] = []
        self._worker = ThreadPoolExecutor(1)

    def answer(self, question: Question, is_cancelled: IsCancelled) -> Answer:
        """Raises what `work` raises, and CancelledError."""
        asked: _Asked[Question, Answer] = _Asked(question)
        with self._lock:
            self._waiting.append(asked)
        self._worker.submit(self._go)
        while not wait([asked.answer], _POLL_SECONDS).done:
            if is_cancelled():
                asked.has_left.set()
                raise CancelledError
        return asked.answer.result()

    def _go(self) -> None:
        with self._lock:
            group = [asked for asked in self._waiting if not asked.has_left.is_set()]
            self._waiting = []
        if not group:  # a go before this one has answered them
            return
        try:
            answers = self._work([a.question for a in group], lambda: all(a.has_left.is_set() for a in group))
        except BaseException as error:
            for asked in group:
                asked.answer.set_exception(error)
            return
        for asked, answer in zip(group, answers, strict=True):
            asked.answer.set_result(answer)
