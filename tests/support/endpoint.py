"""An OpenAI-compatible server that answers what a test says, over HTTP on this machine."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]


@dataclass
class Endpoint:
    """`asked` are the bodies of the requests, `keys` what their header says; `left` is set once a client has gone
    before the end of its answer. `raw` is sent in place of events, and the models are listed after `silent` seconds."""

    answer: Callable[[Json], str]
    port: int = 0
    asked: list[Json] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    left: threading.Event = field(default_factory=threading.Event)
    refuses: tuple[str, ...] = ()
    status: int = 200
    pause: float = 0.0
    is_cut: bool = False
    raw: bytes = b""
    silent: float = 0.0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"


@contextmanager
def endpoint(answer: Callable[[Json], str], **what: Any) -> Iterator[Endpoint]:
    """A server whose answer to a request is `answer` of its body, sent a few characters at a time."""
    here = Endpoint(answer, **what)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            time.sleep(here.silent)
            with suppress(OSError):
                self._whole(200, {"data": [{"id": "first"}, {"id": "second"}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            here.asked.append(body)
            here.keys.append(self.headers["Authorization"])
            if self.path != "/v1/completions" or here.status != 200:
                self._whole(here.status if here.status != 200 else 404, {"error": "no such thing"})
            elif any(each in body for each in here.refuses):
                self._whole(400, {"error": f"extra fields: {here.refuses[0]}"})
            else:
                self._streamed(here.answer(body))

        def _whole(self, status: int, said: Json) -> None:
            data = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _streamed(self, text: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            try:
                if here.raw:
                    self.wfile.write(here.raw)
                    return
                for at in range(0, len(text), 7):
                    time.sleep(here.pause)
                    self._event({"choices": [{"text": text[at : at + 7], "finish_reason": None}]})
                if here.is_cut:
                    return
                self._event({"choices": [{"text": "", "finish_reason": "stop"}]})
                self._event({"choices": [], "usage": {"completion_tokens": len(text)}})
                self.wfile.write(b"data: [DONE]\n\n")
            except OSError:
                here.left.set()

        def _event(self, said: Json) -> None:
            self.wfile.write(f"data: {json.dumps(said)}\n\n".encode())
            self.wfile.flush()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    here.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield here
    finally:
        server.shutdown()
        server.server_close()
