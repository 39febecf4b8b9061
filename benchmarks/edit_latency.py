"""What a person at an editor waits for, against the real server on stdin and stdout:

- from starting the server to the answer to `initialize`, cold, and to the diagnostics of a 500-line file;
- from a change in a 1,000-line file to its diagnostics, pulled (Visual Studio Code) and pushed (older editors);
- hovers, in peace and while the file is being analysed;
- and the memory that the server holds after many edits.

    python benchmarks/edit_latency.py [--runs 10] [--edits 1000] [--file FILE.cu] [--write]

The file has ten kernels: those of benchmarks/edited.cu (a product of matrices that is blocked in registers, an n-body
step, a scan, a transpose) and of six samples. Around them stands their host code, and more of the samples' host code up
to 1,000 lines. `--file` takes another file instead. Every kernel is edited in turn, `--runs` times, so that the slowest
one counts as much as the fastest; a constant that most kernels use is edited too. No edit repeats a text, so nothing
that is known of the edited kernel can be used again.

`--write` records the result, with hardware and versions, in benchmarks/results/edit_latency.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import queue
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hardware import processor

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "edit_latency.json"
OWN_KERNELS = ROOT / "benchmarks" / "edited.cu"
SAMPLES = sorted((ROOT / "csrc_samples").glob("*/*/kernel.cu"))
KERNELS = 10
LINES = 1000
SHORT_LINES = 500
LIMIT_MS = 50.0
COMMAND = [sys.executable, "-m", "warpwright.lsp"]
PULL: dict[str, Any] = {"diagnostic": {}}
NOWHERE = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
CONSTANT = "EVERYWHERE = 1"
IN_ONE_KERNEL = "edit in one kernel to pulled diagnostics"
HOVERED = "edited_tile[threadIdx.x]"
KERNEL_HEAD = re.compile(r"__global__[^;{]*\{")
SETTLED = 200
"""Edits after which the server holds as much as it will: its caches are full."""
Json = dict[str, Any]


class Server:
    """A conversation in raw messages; what comes is stamped with the time at which its last byte was read."""

    patience_seconds = 60.0

    def __init__(self, text_document: Json) -> None:
        self.process = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._inbox: queue.Queue[tuple[float, Json]] = queue.Queue()
        self._last_id = 0
        threading.Thread(target=self._read, daemon=True).start()
        capabilities = {"textDocument": text_document, "general": {"positionEncodings": ["utf-8"]}}
        self.ask("initialize", {"processId": os.getpid(), "rootUri": None, "capabilities": capabilities})
        self.tell("initialized", {})

    def tell(self, method: str, params: Json | None) -> None:
        self._send({"method": method, "params": params})

    def start(self, method: str, params: Json | None) -> int:
        self._last_id += 1
        self._send({"id": self._last_id, "method": method, "params": params})
        return self._last_id

    def ask(self, method: str, params: Json | None) -> Any:
        number = self.start(method, params)
        return self.wait(lambda message: message.get("id") == number)[1]["result"]

    def wait(self, is_wanted: Callable[[Json], bool]) -> tuple[float, Json]:
        while True:
            at, message = self._inbox.get(timeout=self.patience_seconds)
            if is_wanted(message):
                if "error" in message:
                    sys.exit(f"the server answered {message}")
                return at, message

    def cpu_seconds(self) -> float:
        """What the server's process has used so far; unlike a wait it does not depend on what else the machine does."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        return round(int(found.group(1)) / 1024, 1) if found is not None else 0.0

    def end(self) -> None:
        self.ask("shutdown", None)
        self.tell("exit", None)
        self.process.wait(10)

    def _send(self, message: Json) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while header := stream.readline():
            length = int(header.split(b":")[1])
            while stream.readline().strip():
                pass
            body = stream.read(length)
            self._inbox.put((time.perf_counter(), json.loads(body)))


def long_file(lines: int = LINES) -> str:
    """At least so many lines with up to ten kernels and the code that launches them."""
    own = OWN_KERNELS.read_text(encoding="utf-8")
    parts = [own]
    kernels = number = len(KERNEL_HEAD.findall(own))
    while sum(part.count("\n") for part in parts) < lines:
        text = SAMPLES[number % len(SAMPLES)].read_text(encoding="utf-8")
        text = re.sub(r"\b(main|CHECK|TILE|ROWS|BLOCK|RADIUS)\b", rf"\1_{number}", text)
        if kernels < KERNELS:
            parts.append(re.sub(r"(blockIdx\.x \*)", r"EVERYWHERE * \1", text))
            kernels += 1
        else:  # its host code again, which launches the kernel that is there already
            parts.append(re.sub(r"^(template.*\n)?__global__(.*\n)*?\}\n", "", text, flags=re.MULTILINE))
        number += 1
    return "".join(parts)


@contextmanager
def opened(text_document: Json, text: str) -> Iterator[tuple[Server, str]]:
    with tempfile.TemporaryDirectory() as folder:
        uri = (Path(folder) / "long.cu").as_uri()
        server = Server(text_document)
        item = {"uri": uri, "languageId": "cuda-cpp", "version": 0, "text": text}
        server.tell("textDocument/didOpen", {"textDocument": item})
        yield server, uri
        server.end()


def position_of(text: str, words: str) -> Json:
    before = text[: text.index(words)]
    return {"line": before.count("\n"), "character": len(before) - before.rfind("\n") - 1}


def change(server: Server, uri: str, number: int, at: Json, length: int, new: str) -> float:
    end = {**at, "character": at["character"] + length}
    sent = time.perf_counter()
    edit = {"range": {"start": at, "end": end}, "text": new}
    server.tell("textDocument/didChange", {"textDocument": {"uri": uri, "version": number}, "contentChanges": [edit]})
    return sent


def cold_starts(runs: int) -> Json:
    """From starting the process to the answer to `initialize`, and the processor time that it took."""
    times, used = [], []
    for _ in range(runs + 1):
        started = time.perf_counter()
        server = Server(PULL)
        times.append(time.perf_counter() - started)
        used.append(server.cpu_seconds())
        server.end()
    # The first run compiles the modules to bytecode, once for each installation.
    return {**figures(times[1:]), "server_cpu_ms": round(1000 * statistics.median(used[1:]), 1)}


def first_diagnostics(runs: int) -> Json:
    """From starting the process to the diagnostics of a file that was opened at once, and the processor time."""
    text = long_file(SHORT_LINES)
    times, used = [], []
    for _ in range(runs):
        started = time.perf_counter()
        with opened(PULL, text) as (server, uri):
            if not server.ask("textDocument/diagnostic", {"textDocument": {"uri": uri}})["items"]:
                sys.exit("the file has findings, but none was reported")
            times.append(time.perf_counter() - started)
            used.append(server.cpu_seconds())
    return {**figures(times), "server_cpu_ms": round(1000 * statistics.median(used), 1)}


@dataclass
class Spot:
    """A place in one line that is overwritten with a number that was not there before."""

    at: Json
    length: int
    before: str = ""
    after: str = ""

    def next_change(self, number: int) -> tuple[Json, int, str]:
        """(position, length of the text that is replaced, the new text)"""
        new = f"{self.before}{number}{self.after}"
        length, self.length = self.length, len(new)
        return self.at, length, new


def spots_in_kernels(text: str) -> list[Spot]:
    """The start of each kernel's body, where a variable is declared."""
    lines = [text[: head.end()] for head in KERNEL_HEAD.finditer(text)]
    places = [{"line": t.count("\n"), "character": len(t) - t.rfind("\n") - 1} for t in lines]
    return [Spot(place, 0, " int typed = ", ";") for place in places]


def spot_of_constant(text: str) -> Spot:
    at = position_of(text, CONSTANT)
    at["character"] += CONSTANT.index("1")
    return Spot(at, 1)


def edits(text: str, spots: list[Spot], runs: int, *, pull: bool) -> Json:
    """From sending a change to having the diagnostics of the text after it; and the server's processor time for one."""
    times: list[list[float]] = [[] for _ in spots]
    with opened(PULL if pull else {}, text) as (server, uri):
        document = {"textDocument": {"uri": uri}}
        server.ask("textDocument/codeAction", {**document, "range": NOWHERE, "context": {"diagnostics": []}})
        used = server.cpu_seconds()
        for run in range(runs * len(spots)):
            own = run % len(spots)
            sent = change(server, uri, run + 1, *spots[own].next_change(1000 + run))
            if pull:
                number = server.start("textDocument/diagnostic", document)
                arrived, message = server.wait(lambda m: m.get("id") == number)  # noqa: B023
                found = message["result"]["items"]
            else:
                arrived, message = server.wait(lambda m: m.get("params", {}).get("version") == run + 1)  # noqa: B023
                found = message["params"]["diagnostics"]
            if not found:
                sys.exit("the file has findings, but none was reported")
            times[own].append(arrived - sent)
            time.sleep(0.02)
        used = server.cpu_seconds() - used
    slowest = max(statistics.median(own) for own in times)
    return {
        **figures([seconds for own in times for seconds in own]),
        "slowest_kernel_ms": round(1000 * slowest, 1),
        "server_cpu_ms": round(1000 * used / (runs * len(spots)), 1),
    }


def memory(text: str, spots: list[Spot], count: int) -> Json:
    """What the server holds once its caches are full, and after many edits."""
    with opened(PULL, text) as (server, uri):
        document = {"textDocument": {"uri": uri}}
        held: dict[int, float] = {}
        for run in range(max(count, SETTLED)):
            change(server, uri, run + 1, *spots[run % len(spots)].next_change(1000 + run))
            server.ask("textDocument/diagnostic", document)
            held[run + 1] = server.resident_mb()
    last = max(held)
    return {
        "after the first edit_mb": held[1],
        f"after {SETTLED} edits_mb": held[SETTLED],
        f"after {last} edits_mb": held[last],
    }


def hovers(text: str, runs: int, *, busy: bool) -> list[float]:
    """Seconds a hover takes; if busy, one sent right behind an edit that makes every kernel be followed anew."""
    times = []
    with opened(PULL, text) as (server, uri):
        document = {"textDocument": {"uri": uri}}
        place = position_of(text, HOVERED)
        constant = spot_of_constant(text)
        server.ask("textDocument/diagnostic", document)
        for run in range(runs):
            if busy:
                change(server, uri, run + 1, *constant.next_change(17 + run))
                server.start("textDocument/diagnostic", document)
            sent = time.perf_counter()
            number = server.start("textDocument/hover", {**document, "position": place})
            arrived, message = server.wait(lambda m: m.get("id") == number)  # noqa: B023
            if not message["result"]:
                sys.exit("the hover said nothing")
            times.append(arrived - sent)
            if busy:
                server.ask("textDocument/diagnostic", document)
    return times


def figures(times: list[float]) -> Json:
    ordered = sorted(times)
    return {
        "runs": len(times),
        "min_ms": round(1000 * ordered[0], 1),
        "median_ms": round(1000 * statistics.median(ordered), 1),
        "p95_ms": round(1000 * ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))], 1),
        "max_ms": round(1000 * ordered[-1], 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="edits of each kernel")
    parser.add_argument("--edits", type=int, default=1000, help="edits over which memory is watched")
    parser.add_argument("--file", type=Path, help="edit the kernels of this file instead")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.file is not None:
        return edits_of(options.file, options.runs)

    text = long_file()
    runs = options.runs
    measured = {
        "cold start to the initialize reply": cold_starts(max(5, runs)),
        f"cold start to the diagnostics of {SHORT_LINES} lines": first_diagnostics(max(5, runs)),
        IN_ONE_KERNEL: edits(text, spots_in_kernels(text), runs, pull=True),
        "edit in one kernel to pushed diagnostics": edits(text, spots_in_kernels(text), runs, pull=False),
        "edit of a shared constant to pulled diagnostics": edits(text, [spot_of_constant(text)], 2 * runs, pull=True),
        "hover": figures(hovers(text, 2 * runs, busy=False)),
        "hover right behind an edit": figures(hovers(text, 2 * runs, busy=True)),
    }
    print_table(text, measured)
    held = memory(text, spots_in_kernels(text), options.edits)
    print("\n" + "\n".join(f"{name.removesuffix('_mb'):<30}{value:>8} MB" for name, value in held.items()))
    result = {
        "what": "milliseconds that a client waits, measured at the client",
        "command": "python benchmarks/edit_latency.py",
        "file": {"lines": text.count("\n"), "kernels": len(KERNEL_HEAD.findall(text))},
        "measured": measured,
        "server_memory": held,
        "limit_ms": {f"{IN_ONE_KERNEL}, p95": LIMIT_MS},
        "hardware": processor(),
        "load_average": round(os.getloadavg()[0], 1),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("warpwright", "pygls", "lsprotocol", "tree-sitter")},
        },
    }
    if options.write:
        RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return int(measured[IN_ONE_KERNEL]["p95_ms"] > LIMIT_MS)


def edits_of(path: Path, runs: int) -> int:
    """Edits in every kernel of a file of the user's."""
    text = path.read_text(encoding="utf-8")
    measured = edits(text, spots_in_kernels(text), runs, pull=True)
    print_table(text, {IN_ONE_KERNEL: measured})
    return int(measured["p95_ms"] > LIMIT_MS)


def print_table(text: str, measured: dict[str, Json]) -> None:
    print(f"{text.count(chr(10))} lines, {len(KERNEL_HEAD.findall(text))} kernels\n")
    columns = ("min_ms", "median_ms", "p95_ms", "max_ms", "slowest_kernel_ms", "server_cpu_ms")
    print(f"{'':<50}" + "".join(f"{column.removesuffix('_ms'):>16}" for column in columns) + "  ms")
    for name, row in measured.items():
        print(f"{name:<50}" + "".join(f"{row.get(column, ''):>16}" for column in columns))


if __name__ == "__main__":
    sys.exit(main())
