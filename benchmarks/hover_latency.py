"""How long a person waits for a hover, and for the diagnostics of an edit, while a verification and nvcc are at work.

    python benchmarks/hover_latency.py [--hovers 300] [--write]

The real server on stdin and stdout, on two processors (it and all that it starts are bound to the first two), with the
1,000-line file of `edit_latency.py` open. First in peace, with nothing compiled in the background. Then while
`warpwright.verify` runs without a pause: a blocked product of matrices against its committed version, compiled by nvcc
and run by the emulator or on a GPU; and while a second document is saved with a new text every three seconds, so that
nvcc compiles it in the background. A hover is asked for twenty times a second; after every fifth the file is edited.

`--write` records the result, with hardware and versions, in benchmarks/results/hover_latency.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from edit_latency import HOVERED, OWN_KERNELS, PULL, Server, change, figures, long_file, position_of, spots_in_kernels
from hardware import processor

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "hover_latency.json"
PROCESSORS = 2
VERIFIED = "multiply_blocked"
HOVER_SECONDS = 0.05
EDIT_EVERY = 5
SAVE_SECONDS = 3.0
LIMIT_MS = 50.0
Json = dict[str, Any]


class Client(Server):
    """A conversation in which an answer that nobody waits for yet is kept."""

    def __init__(self, capabilities: Json) -> None:
        self.kept: dict[int, Json] = {}
        super().__init__(capabilities)

    def wait(self, is_wanted: Callable[[Json], bool]) -> tuple[float, Json]:
        def seen(message: Json) -> bool:
            if "id" in message and "method" not in message:
                self.kept[message["id"]] = message
            return is_wanted(message)

        return super().wait(seen)

    def open(self, path: Path, text: str) -> str:
        uri = path.as_uri()
        item = {"uri": uri, "languageId": "cuda-cpp", "version": 0, "text": text}
        self.tell("textDocument/didOpen", {"textDocument": item})
        return uri

    def replace(self, uri: str, number: int, text: str) -> None:
        identifier = {"uri": uri, "version": number}
        self.tell("textDocument/didChange", {"textDocument": identifier, "contentChanges": [{"text": text}]})


class Load:
    """A verification without a pause, and a document that is compiled in the background again and again."""

    def __init__(self, client: Client, folder: Path) -> None:
        self._client = client
        self._text = OWN_KERNELS.read_text(encoding="utf-8")
        path = folder / "verified.cu"
        path.write_text(self._text, encoding="utf-8")
        who = [option for key in ("user.name", "user.email") for option in ("-c", f"{key}=benchmark")]
        for command in (["init", "-q"], ["add", "verified.cu"], [*who, "commit", "-qm", "committed"]):
            subprocess.run(["git", "-C", str(folder), *command], check=True)
        self._verified = client.open(path, self._text)
        self._compiled = client.open(folder / "compiled.cu", self._text)
        self._number = 0
        self._saved = 0.0
        self._request: int | None = None
        self._began = 0.0
        self.verifications: list[float] = []
        self.verdicts: set[str] = set()
        self.compilations = 0

    def is_over(self) -> bool:
        """Whether no verification is under way; what came of the last is noted."""
        if self._request is not None and (answer := self._client.kept.get(self._request)) is not None:
            self.verifications.append(time.perf_counter() - self._began)
            self.verdicts.add(answer["result"]["message"])
            self._request = None
        return self._request is None

    def keep_up(self) -> None:
        """Start what is to run and does not. No text repeats, so nothing comes from a cache."""
        now = time.perf_counter()
        self.is_over()
        if self._request is None:
            self._number += 1
            self._client.replace(self._verified, self._number, f"{self._text}// {time.time_ns()}\n")
            argument = {"uri": self._verified, "kernel": VERIFIED}
            params = {"command": "warpwright.verify", "arguments": [argument]}
            self._request, self._began = self._client.start("workspace/executeCommand", params), now
        if now - self._saved > SAVE_SECONDS:
            self._number += 1
            self._saved = now
            self.compilations += 1
            self._client.replace(self._compiled, self._number, f"{self._text}// {time.time_ns()}\n")
            self._client.tell("textDocument/didSave", {"textDocument": {"uri": self._compiled}})


@contextmanager
def started(text: str, *, busy: bool) -> Iterator[tuple[Client, str, Load | None]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["WARPWRIGHT_CACHE_DIR"] = str(folder / "cache")
        client = Client(PULL)
        if not busy:
            settings = {"settings": {"warpwright": {"compile": "off"}}}
            client.tell("workspace/didChangeConfiguration", settings)
        uri = client.open(folder / "long.cu", text)
        client.ask("textDocument/diagnostic", {"textDocument": {"uri": uri}})
        yield client, uri, Load(client, folder) if busy else None
        client.end()


def measured(text: str, count: int, *, busy: bool) -> Json:
    """Seconds of hovers, and from edits to their diagnostics."""
    hovers: list[float] = []
    edits: list[float] = []
    with started(text, busy=busy) as (client, uri, load):
        document = {"textDocument": {"uri": uri}}
        place = position_of(text, HOVERED)
        spots = spots_in_kernels(text)
        used = client.cpu_seconds()
        began = time.perf_counter()
        for run in range(count):
            if load is not None:
                load.keep_up()
            hovers.append(answered(client, "textDocument/hover", {**document, "position": place}))
            if run % EDIT_EVERY == EDIT_EVERY - 1:
                number = len(edits) + 1
                spot = spots[1 + number % (len(spots) - 1)]  # the first is above the hovered line
                sent = change(client, uri, number, *spot.next_change(1000 + number))
                answered(client, "textDocument/diagnostic", document)
                edits.append(time.perf_counter() - sent)
            time.sleep(HOVER_SECONDS)
        seconds = time.perf_counter() - began
        result: Json = {
            "hover": figures(hovers),
            "edit to diagnostics": figures(edits),
            "server_processor_share": round((client.cpu_seconds() - used) / seconds, 3),
        }
        if load is not None:
            while not load.is_over():  # the last one was under way until here
                answered(client, "textDocument/hover", {**document, "position": place})
                time.sleep(HOVER_SECONDS)
            result["verifications"] = {
                "finished": len(load.verifications),
                "seconds": [round(each, 1) for each in load.verifications],
                "verdicts": sorted(load.verdicts),
            }
            result["texts_saved"] = load.compilations
    return result


def answered(client: Client, method: str, params: Json) -> float:
    seconds, result = answer(client, method, params)
    if not result:
        sys.exit(f"{method} said nothing")
    return seconds


def answer(client: Client, method: str, params: Json) -> tuple[float, Any]:
    """The seconds from a request to its answer, and its result."""
    sent = time.perf_counter()
    number = client.start(method, params)
    arrived, message = client.wait(lambda m: m.get("id") == number and "method" not in m)
    return arrived - sent, message["result"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hovers", type=int, default=300)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:PROCESSORS])
    text = long_file()
    nvcc = subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=True).stdout
    result = {
        "what": "milliseconds that a client waits, measured at the client",
        "command": f"python benchmarks/hover_latency.py --hovers {options.hovers} --write",
        "processors": PROCESSORS,
        "load_average_before": round(os.getloadavg()[0], 1),
        "idle": measured(text, options.hovers, busy=False),
        "during a verification and background compiles": measured(text, options.hovers, busy=True),
        "limit_ms": {"hover during a verification, p95": LIMIT_MS},
        "hardware": processor(),
        "versions": {
            "python": platform.python_version(),
            "nvcc": "".join(re.findall(r"V(\d[\d.]*)", nvcc)[:1]),
            **{name: version(name) for name in ("warpwright", "pygls", "lsprotocol", "tree-sitter")},
        },
    }
    print(json.dumps(result, indent=2))
    if options.write:
        RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return int(result["during a verification and background compiles"]["hover"]["p95_ms"] > LIMIT_MS)


if __name__ == "__main__":
    sys.exit(main())
