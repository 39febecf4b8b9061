"""A model behind an OpenAI-compatible server (llama-server, vLLM), as the user names it: by its address."""

from __future__ import annotations

import os
from dataclasses import dataclass
from urllib.parse import urlsplit

KEY = "WARPWRIGHT_API_KEY"
"""The variable with the key that the server asks for; not set where it asks for none."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`url` is what `/completions` is put behind; `model` is "" where the server's first is meant. It is the user's own
    choice, and nobody taught it the form of the tasks."""

    url: str
    model: str = ""
    is_default: bool = False
    is_taught: bool = False

    @property
    def name(self) -> str:
        return f"{self.model} at {self.host}" if self.model else f"the model at {self.host}"

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc.rpartition("@")[2]


def named_endpoint(spec: str | None) -> Endpoint | None:
    """The endpoint that a setting, an option (`spec`) or WARPWRIGHT_MODEL names, None where it is no endpoint."""
    return endpoint_of(spec or os.environ.get("WARPWRIGHT_MODEL", ""))


def endpoint_of(spec: str) -> Endpoint | None:
    """The endpoint that a model's name is, None for another name.

    >>> endpoint_of("http://127.0.0.1:8080/v1#qwen").name
    'qwen at 127.0.0.1:8080'
    >>> endpoint_of("model.gguf") is None
    True
    """
    address, _, model = spec.partition("#")
    try:
        parts = urlsplit(address)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return Endpoint(address.rstrip("/"), model) if is_one else None
