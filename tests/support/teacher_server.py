"""A small server that answers as teachers do, in a process of its own: `python teacher_server.py MODE`.

Prints its port. MODE is "openai", "anthropic", "nonsense" (prose), "broken" (no JSON) or "refusing" (status 500).
"""

from __future__ import annotations

import json
import re
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer


class Handler(BaseHTTPRequestHandler):
    mode = "openai"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        [message] = body["messages"]
        words = re.search(r"Request: (.*)", message["content"])
        assert words is not None
        rewordings = [f"kindly do this: {words[1]}", "something with 12345 other", f"{words[1]}<end_of_turn>"]
        said = json.dumps({"level": 4, "reasons": ["The names agree."], "rewordings": rewordings})
        said = "I would rather not." if self.mode == "nonsense" else f"Here it is: {said}"
        given = {"choices": [{"message": {"content": said}}], "content": [{"type": "text", "text": said}]}
        authorised = self.headers.get("x-api-key" if self.mode == "anthropic" else "Authorization", "").endswith(
            "secret"
        )
        self.send_response(500 if self.mode == "refusing" else 200 if authorised else 401)
        self.end_headers()
        self.wfile.write(b"<html>" if self.mode == "broken" else json.dumps(given).encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


if __name__ == "__main__":
    Handler.mode = sys.argv[1]
    server = HTTPServer(("127.0.0.1", 0), Handler)
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()
