"""A model behind an OpenAI-compatible server: each sample is one streamed request to `/completions`.

What a server sends is untrusted, as is what any model writes: it is text for the caller's checks, with a limit on its
length. Ending a request closes its connection, at which these servers stop computing.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from warpwright.assist.endpoint import KEY, Endpoint
from warpwright.assist.engine import Completion, CompletionRequest, Engine, EngineError
from warpwright.progress import IsCancelled, never_cancelled
from warpwright.syntax.encoding import encoded, shown_bytes
from warpwright.toolchain.nvcc_output import printable

POLL_SECONDS = 0.02
CONNECT_SECONDS = 10.0
_LONGEST_LINE = 1 << 20
_LONGEST_TEXT = 1 << 16  # characters
_STOPS = {"stop": "end", "length": "length"}
_REFUSED = (400, 422)
"""What a server says that does not know a field."""
_UNREADABLE = (
    OSError,
    HTTPException,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
"""What comes of reading an answer that is not in the form: no HTTP, no JSON, nested too deep, a number too large."""


@dataclass
class _Sample:
    """One request, read in a thread of its own. `stop` is set last."""

    connection: HTTPConnection
    wire: socket.socket | None = None
    text: str = ""
    stop: str = ""
    error: str = ""
    tokens: int = 0
    is_refused: bool = False
    is_unwanted: bool = False
    changed: threading.Event = field(default_factory=threading.Event)

    def end(self) -> None:
        """Close the connection, whatever its thread is waiting for."""
        self.is_unwanted = True
        if self.wire is not None:
            with suppress(OSError):
                self.wire.shutdown(socket.SHUT_RDWR)

    def read(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> None:
        try:
            self.connection.connect()
            self.wire = self.connection.sock  # which the connection forgets once an answer has begun
            self.wire.settimeout(None)  # who asks keeps the time
            if self.is_unwanted:
                return
            self.connection.request("POST", path, encoded(json.dumps(body)), headers)
            reply = self.connection.getresponse()
            if reply.status != 200:
                self.is_refused = reply.status in _REFUSED
                self.error = f"it answered {reply.status}: {_first_line(reply.read(_LONGEST_LINE))}"
            else:
                self._follow(reply)
                if not self.stop:
                    self.error = "its answer has no end"
        except _UNREADABLE as error:
            if not self.stop:
                self.error = str(error) or type(error).__name__
        finally:
            self.connection.close()
            self.stop = self.stop or "end"
            self.changed.set()

    def _follow(self, reply: HTTPResponse) -> None:
        for said in _events(reply):
            if "error" in said:
                raise ValueError(_first_line(encoded(json.dumps(said["error"]))))
            self.tokens = int((said.get("usage") or {}).get("completion_tokens") or self.tokens)
            if not said.get("choices"):
                continue
            choice = said["choices"][0]
            self.text += str(choice.get("text") or "")
            self.changed.set()
            if reason := choice.get("finish_reason"):
                self.stop = _STOPS.get(reason, "end")
            if len(self.text) > _LONGEST_TEXT:
                self.stop = "length"
                return


@dataclass
class _Listed:
    """The model that a server names first, read in a thread of its own; `error` is why it cannot be reached."""

    connection: HTTPConnection
    name: str = ""
    error: str = ""
    done: threading.Event = field(default_factory=threading.Event)

    def read(self, path: str, headers: dict[str, str]) -> None:
        try:
            self.connection.request("GET", path, headers=headers)
            said = json.loads(self.connection.getresponse().read(_LONGEST_LINE))
            self.name = str(said["data"][0]["id"])
        except OSError as error:
            self.error = str(error) or type(error).__name__
        except _UNREADABLE:
            pass
        finally:
            self.connection.close()
            self.done.set()


class EndpointEngine(Engine):
    """The samples of a request are asked for at once, by connections of their own."""

    def __init__(self, model: Endpoint) -> None:
        self.model: Endpoint = model
        self._name = model.model
        self._knows_grammars = True

    def close(self) -> None:
        """Nothing is kept between requests."""

    def complete(
        self,
        request: CompletionRequest,
        is_cancelled: IsCancelled = never_cancelled,
        is_enough: Callable[[str], bool] | None = None,
    ) -> Completion:
        deadline = time.monotonic() + request.seconds
        if not self._name and (stopped := self._find_name(deadline, is_cancelled)):
            return Completion("", stopped)
        done = self._asked(request, deadline, is_cancelled, is_enough)
        if done is None:
            self._knows_grammars = False
            done = self._asked(request, deadline, is_cancelled, is_enough)
        assert done is not None
        return done

    def _asked(
        self,
        request: CompletionRequest,
        deadline: float,
        is_cancelled: IsCancelled,
        is_enough: Callable[[str], bool] | None,
    ) -> Completion | None:
        """The answer, None where the server refuses the grammar."""
        has_grammar = self._knows_grammars and request.grammar is not None
        samples = []
        for number, temperature in enumerate((request.temperature, *request.more)):
            sample = _Sample(self._connection())
            body = self._body(request, temperature, request.seed + number, has_grammar)
            arguments = (f"{urlsplit(self.model.url).path}/completions", body, _headers())
            threading.Thread(target=sample.read, args=arguments, daemon=True).start()
            samples.append(sample)
        first, ended = samples[0], ""
        try:
            while not ended and not all(each.stop for each in samples):
                first.changed.wait(POLL_SECONDS)
                first.changed.clear()
                if is_cancelled():
                    ended = "cancelled"
                elif time.monotonic() > deadline:
                    ended = "time"
                elif is_enough is not None and not first.stop and is_enough(first.text):
                    ended = "enough"
                elif first.error:
                    break
        finally:
            for each in samples:
                each.end()
        if first.error and not ended:
            if has_grammar and first.is_refused:
                return None
            raise EngineError(f"{self.model.name} gave no answer: {first.error.rstrip('.')}.")
        stops = [each.stop or ended or "end" for each in samples]
        texts = [_cut(each.text, stop, request.stop) for each, stop in zip(samples, stops, strict=True)]
        others = [("", "end") if each.error else text for each, text in zip(samples[1:], texts[1:], strict=True)]
        return Completion(
            texts[0][0], ended or texts[0][1], tokens=sum(each.tokens for each in samples), others=tuple(others)
        )

    def _body(self, request: CompletionRequest, temperature: float, seed: int, has_grammar: bool) -> dict[str, Any]:
        body: dict[str, Any] = {
            "prompt": request.prompt,
            "max_tokens": request.max_tokens,
            "temperature": temperature,
            "seed": seed,
            "stream": True,
        }
        if self._name:
            body["model"] = self._name
        if request.stop:
            body["stop"] = list(request.stop)
        if has_grammar:  # as llama-server and as vLLM call it
            body |= {"grammar": request.grammar, "structured_outputs": {"grammar": request.grammar}}
        return body

    def _connection(self) -> HTTPConnection:
        parts = urlsplit(self.model.url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        return kind(parts.hostname or "", parts.port, timeout=CONNECT_SECONDS)

    def _find_name(self, deadline: float, is_cancelled: IsCancelled) -> str:
        """Ask for the model that the server names first; it stays "" where it names none. Says what ended it before
        there was an answer, "" where there is one. Raises EngineError."""
        listed = _Listed(self._connection())
        arguments = (f"{urlsplit(self.model.url).path}/models", _headers())
        threading.Thread(target=listed.read, args=arguments, daemon=True).start()
        while not listed.done.wait(POLL_SECONDS):
            if is_cancelled():
                return "cancelled"
            if time.monotonic() > deadline:
                return "time"
        if listed.error:
            raise EngineError(f"{self.model.host} cannot be reached ({listed.error}): start the server.")
        self._name = listed.name
        return ""


def _events(reply: HTTPResponse) -> Iterator[dict[str, Any]]:
    """The objects of a stream of server-sent events."""
    while line := reply.readline(_LONGEST_LINE):
        name, _, data = shown_bytes(line).partition(":")
        if name != "data" or not data.strip() or data.strip() == "[DONE]":
            continue
        said = json.loads(data)
        if not isinstance(said, dict):
            raise ValueError("it sent something else than objects")
        yield said


def _cut(text: str, stop: str, stops: tuple[str, ...]) -> tuple[str, str]:
    """The text up to the first of the texts that end it, which a server may have left in, and why it ended.

    >>> _cut("y[i] = x[i]\\n// Task", "length", ("\\n",)), _cut("y", "end", ("\\n",))
    (('y[i] = x[i]', 'stop'), ('y', 'end'))
    """
    ends = [at for each in stops if (at := text.find(each)) >= 0]
    return (text[: min(ends)], "stop") if ends else (text, stop)


def _headers() -> dict[str, str]:
    key = os.environ.get(KEY)
    return {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})


def _first_line(data: bytes) -> str:
    """As one line that a terminal shows and does not obey.

    >>> _first_line(b"\\x1b[2Jno such\\nmodel")
    '\ufffd[2Jno such'
    """
    line = (shown_bytes(data).strip().splitlines() or ["nothing"])[0][:200]
    return printable(line, len(line))
