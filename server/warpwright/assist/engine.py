"""A model as whoever asks it sees it: text in, text that continues it out, with limits and a cancel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from warpwright.assist.endpoint import Endpoint
from warpwright.assist.weights import ModelFile
from warpwright.progress import IsCancelled, never_cancelled


class EngineError(Exception):
    """The model could not answer; the message is one sentence for the user."""


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """Text to be continued. `temperature` 0 always takes the likeliest token. `grammar` is GBNF with a rule `root`.

    `seconds` limits this request, without the loading of the model. `more` are the temperatures of up to three further
    samples, with the seeds that follow, which are computed side by side.
    """

    prompt: str
    max_tokens: int = 256
    temperature: float = 0.0
    seed: int = 0
    stop: tuple[str, ...] = ()
    grammar: str | None = None
    seconds: float = 60.0
    more: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Completion:
    """What the model wrote. `stop` says why it ended.

    "end": the model ended, or the grammar was complete; "stop": a stop text came, which is not in `text`; "length":
    max_tokens; "time": the limit; "enough": `is_enough` said so; "cancelled". `reused_tokens` of the prompt were in
    the model's memory already. `threads` would compute the next token. `others` are the text and the stop of further
    samples; `tokens` counts theirs, too. `logs` are the logarithms of the likelihoods of all samples, () where they are
    not known.
    """

    text: str
    stop: str
    prompt_tokens: int = 0
    reused_tokens: int = 0
    tokens: int = 0
    threads: int = 0
    others: Sequence[tuple[str, str]] = ()
    logs: Sequence[float] = ()


class Engine(ABC):
    """A model that is asked. A context manager: leaving it ends what it keeps, and a request that is under way."""

    model: ModelFile | Endpoint
    adapter: Path | None = None

    @abstractmethod
    def complete(
        self,
        request: CompletionRequest,
        is_cancelled: IsCancelled = never_cancelled,
        is_enough: Callable[[str], bool] | None = None,
    ) -> Completion:
        """Continue the prompt. `is_enough` sees all text so far after each piece, and ends the request by True. Raises
        EngineError, with one sentence, when the request cannot be answered."""

    @abstractmethod
    def close(self) -> None:
        """End what is kept for the next request."""

    @property
    def is_taught(self) -> bool:
        """Whether it was trained on the prompts of `assist`; else it is shown worked examples."""
        return self.adapter is not None or self.model.is_taught

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
