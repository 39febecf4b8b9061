"""Work that costs no more for several questions than for one, by tools that take long to get ready.

The tools get ready while whoever will ask is still under way. The very first is answered at once, for a search that
has shown nothing yet. Who comes while others are answered waits for the next go, until half of those who are under way
have come: the other half goes on meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from warpwright.progress import CancelledError, IsCancelled

Tools = TypeVar("Tools")
Question = TypeVar("Question")
Answer = TypeVar("Answer")
_POLL_SECONDS = 0.1


@dataclass(eq=False)
class _Asked(Generic[Question, Answer]):
    question: Question
    answer: Future[Answer] = field(default_factory=Future)
    has_left: threading.Event = field(default_factory=threading.Event)


class Together(Generic[Tools, Question, Answer]):
    """Answers the questions of several threads, one go after the other.

    `prepare` begins to make the tools for one go and returns at once. `work` uses them up and gives an answer for each
    question, in their order; it is cancelled when nobody waits for it any more. `drop` is for tools that nobody needed.
    """

    def __init__(
        self,
        prepare: Callable[[], Tools],
        work: Callable[[Tools, Sequence[Question], IsCancelled], Sequence[Answer]],
        drop: Callable[[Tools], None],
    ) -> None:
        self._prepare, self._work, self._drop = prepare, work, drop
        self._lock = threading.Lock()
        self._under_way = 0
        self._has_gone = False
        self._ready: Tools | None = None
        self._waiting: list[_Asked[Question, Answer]] = []
        self._worker = ThreadPoolExecutor(1)

    @contextmanager
    def expecting(self) -> Iterator[None]:
        """While this thread is under way to ask a question, or perhaps none."""
        with self._lock:
            self._under_way += 1
            if self._ready is None:
                self._ready = self._prepare()
        try:
            yield
        finally:
            unused = None
            with self._lock:
                self._under_way -= 1
                if not self._under_way:
                    unused, self._ready = self._ready, None
            if unused is not None:
                self._drop(unused)
            self._worker.submit(self._go)

    def answer(self, question: Question, is_cancelled: IsCancelled) -> Answer:
        """Raises what `work` raises, and CancelledError."""
        asked: _Asked[Question, Answer] = _Asked(question)
        with self._lock:
            self._waiting.append(asked)
        self._worker.submit(self._go)
        while not wait([asked.answer], _POLL_SECONDS).done:
            if is_cancelled():
                asked.has_left.set()
                with self._lock:
                    self._waiting = [other for other in self._waiting if other is not asked]
                raise CancelledError
        return asked.answer.result()

    def _go(self) -> None:
        with self._lock:
            if not self._waiting or (self._has_gone and 2 * len(self._waiting) < self._under_way):
                return
            self._has_gone = True
            group, self._waiting = self._waiting, []
            tools, self._ready = self._ready, None
            if self._under_way > len(group):
                self._ready = self._prepare()
        try:
            tools = self._prepare() if tools is None else tools
            questions = [asked.question for asked in group]
            answers = self._work(tools, questions, lambda: all(asked.has_left.is_set() for asked in group))
        except BaseException as error:
            for asked in group:
                asked.answer.set_exception(error)
            return
        for asked, answer in zip(group, answers, strict=True):
            asked.answer.set_result(answer)
