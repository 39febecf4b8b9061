"""Whoever reviews examples, behind one interface: a question goes in, a text comes out.

Nobody is asked but whom the caller names; a key is read from the environment variable that the caller names.
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any, Protocol

from warpwright.assist.engine import CompletionRequest, Engine, EngineError

SECONDS = 60
MOST_TOKENS = 800
MOST_BYTES = 1 << 20


class TeacherError(Exception):
    """A teacher has not answered; the message is one sentence."""


class Teacher(Protocol):
    @property
    def name(self) -> str: ...

    def answer(self, question: str) -> str:
        """Raises TeacherError."""
        ...


@dataclass(frozen=True, slots=True)
class OpenAi:
    """A model behind an endpoint that takes OpenAI's chat completions, such as a local server's."""

    url: str
    model: str
    key: str = ""

    @property
    def name(self) -> str:
        return self.model

    def answer(self, question: str) -> str:
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        messages = [{"role": "user", "content": question}]
        body = {"model": self.model, "messages": messages, "max_tokens": MOST_TOKENS, "temperature": 0.7}
        given = _posted(f"{self.url.rstrip('/')}/chat/completions", body, headers)
        return _text(given, "choices", 0, "message", "content")


@dataclass(frozen=True, slots=True)
class Anthropic:
    """A model behind Anthropic's messages API."""

    url: str
    model: str
    key: str

    @property
    def name(self) -> str:
        return self.model

    def answer(self, question: str) -> str:
        headers = {"x-api-key": self.key, "anthropic-version": "2023-06-01"}
        body = {"model": self.model, "max_tokens": MOST_TOKENS, "messages": [{"role": "user", "content": question}]}
        given = _posted(f"{self.url.rstrip('/')}/v1/messages", body, headers)
        return _text(given, "content", 0, "text")


@dataclass(frozen=True, slots=True)
class Local:
    """A model in a GGUF file, through the server's own engine."""

    engine: Engine

    @property
    def name(self) -> str:
        return self.engine.model.name

    def answer(self, question: str) -> str:
        prompt = f"<start_of_turn>user\n{question}<end_of_turn>\n<start_of_turn>model\n"
        try:
            return self.engine.complete(CompletionRequest(prompt, max_tokens=MOST_TOKENS, seconds=SECONDS)).text
        except EngineError as error:
            raise TeacherError(f"{self.name}: {error}") from None


def key_of(variable: str) -> str:
    """The key in an environment variable. Raises TeacherError where there is none."""
    key = os.environ.get(variable, "") if variable else ""
    if variable and not key:
        raise TeacherError(f"The environment variable {variable} holds no key.")
    return key


def _posted(url: str, body: dict[str, Any], headers: dict[str, str]) -> Any:
    if not url.startswith(("http://", "https://")):
        raise TeacherError(f"{url}: is no address of a teacher; it begins with http:// or https://.")
    data = json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as response:
            return json.loads(response.read(MOST_BYTES))
    except urllib.error.HTTPError as error:
        raise TeacherError(f"{url}: answers {error.code} {error.reason}.") from None
    except (OSError, ValueError) as error:
        said = getattr(error, "reason", "") or ("no JSON" if isinstance(error, ValueError) else error)
        raise TeacherError(f"{url}: does not answer as a teacher does ({said}).") from None


def _text(given: Any, *path: str | int) -> str:
    try:
        for step in path:
            given = given[step]
    except (LookupError, TypeError):
        given = None
    if not isinstance(given, str):
        raise TeacherError("The teacher's answer holds no text.")
    return given
