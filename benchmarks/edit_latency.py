"""What a person at an editor waits for, against the real server on stdin and stdout:

- from starting the server to the answer to `initialize`, cold;
- from a change in a 1,000-line file to its diagnostics, pulled (Visual Studio Code) and pushed (older editors);
- hovers, in peace and while the file is being analysed.

    python benchmarks/edit_latency.py [--runs 40] [--write]

`--write` records the result, with hardware and versions, in benchmarks/results/edit_latency.json. The file is made of
the kernels in csrc_samples, repeated under new names. Two edits are measured: inside one kernel, and of a constant that
most kernels of the file use.
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
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "edit_latency.json"
SAMPLES = sorted((ROOT / "csrc_samples").glob("*/*/kernel.cu"))
LINES = 1000
LIMIT_MS = 100.0
COMMAND = [sys.executable, "-m", "warpwright.lsp"]
PULL = {"diagnostic": {}}
NOWHERE = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
CONSTANT = "EVERYWHERE = 1"
IN_ONE_KERNEL = "(y + j) * width + x + 0"
HOVERED = "edited_tile[threadIdx.x]"
OWN_KERNEL = f"""__global__ void edited(const float* in, float* out, int width, int height) {{
    __shared__ float edited_tile[32][32];
    int x = blockIdx.x * 32 + threadIdx.x;
    int y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) {{
        if (x < width && y + j < height) edited_tile[threadIdx.y + j][threadIdx.x] = in[{IN_ONE_KERNEL}];
    }}
    __syncthreads();
    for (int j = 0; j < 32; j += 8) {{
        out[(y + j) * height + x] = {HOVERED}[threadIdx.y + j];
    }}
}}
void launch(const float* in, float* out) {{
    edited<<<dim3(128, 128), dim3(32, 8)>>>(in, out, 4096, 4096);
    if (cudaGetLastError() != cudaSuccess) return;
}}
"""
Json = dict[str, Any]


class Server:
    """A conversation in raw messages; what comes is stamped with the time at which its last byte was read."""

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
            at, message = self._inbox.get(timeout=60)
            if is_wanted(message):
                if "error" in message:
                    sys.exit(f"the server answered {message}")
                return at, message

    def cpu_seconds(self) -> float:
        """What the server's process has used so far; unlike a wait it does not depend on what else the machine does."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

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


def long_file() -> str:
    """At least 1,000 lines of kernels and the code that launches them: the samples, each under a number of its own."""
    parts = [f"constexpr int {CONSTANT};\n{OWN_KERNEL}"]
    number = 0
    while sum(part.count("\n") for part in parts) < LINES:
        text = SAMPLES[number % len(SAMPLES)].read_text(encoding="utf-8")
        names = set(re.findall(r"__global__\s+void\s+(\w+)", text)) | {
            "main",
            "CHECK",
            "TILE",
            "ROWS",
            "BLOCK",
            "RADIUS",
        }
        text = re.sub(rf"\b({'|'.join(sorted(names))})\b", rf"\1_{number}", text)
        parts.append(re.sub(r"(blockIdx\.x \*)", r"EVERYWHERE * \1", text))
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


def numbers(text: str, words: str, runs: int) -> Iterator[tuple[int, Json, int, str]]:
    """Edits that each write a number that was not there before, so that nothing known of the kernel can be kept.

    `words` end in a number; yields the document's version, the place, the length of the old number and the new one.
    """
    at = position_of(text, words)
    old = re.search(r"\d+$", words)
    assert old is not None
    at["character"] += old.start()
    length = len(old.group())
    for run in range(1, runs + 1):
        new = str(16 + run)
        yield run, at, length, new
        length = len(new)


def edits(text: str, words: str, runs: int, *, pull: bool) -> Json:
    """From sending a change to having the diagnostics of the text after it; and the server's processor time for one."""
    times = []
    with opened(PULL if pull else {}, text) as (server, uri):
        document = {"textDocument": {"uri": uri}}
        server.ask("textDocument/codeAction", {**document, "range": NOWHERE, "context": {"diagnostics": []}})
        used = server.cpu_seconds()
        for run, at, length, new in numbers(text, words, runs):
            sent = change(server, uri, run, at, length, new)
            if pull:
                number = server.start("textDocument/diagnostic", document)
                arrived, message = server.wait(lambda m: m.get("id") == number)  # noqa: B023
                found = message["result"]["items"]
            else:
                arrived, message = server.wait(lambda m: m.get("params", {}).get("version") == run)  # noqa: B023
                found = message["params"]["diagnostics"]
            if not found:
                sys.exit("the file has findings, but none was reported")
            times.append(arrived - sent)
            time.sleep(0.05)
        used = server.cpu_seconds() - used
    return {**figures(times), "server_cpu_ms": round(1000 * used / runs, 1)}


def hovers(text: str, runs: int, *, busy: bool) -> list[float]:
    """Seconds a hover takes; if busy, one sent right behind an edit that makes every kernel be followed anew."""
    times = []
    with opened(PULL, text) as (server, uri):
        document = {"textDocument": {"uri": uri}}
        place = position_of(text, HOVERED)
        server.ask("textDocument/diagnostic", document)
        for run, at, length, new in numbers(text, CONSTANT, runs):
            if busy:
                change(server, uri, run, at, length, new)
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


def processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]}, {os.cpu_count()} threads" if names else platform.processor()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()

    text = long_file()
    measured = {
        "cold start to the initialize reply": cold_starts(max(5, options.runs // 4)),
        "edit in one kernel to pulled diagnostics": edits(text, IN_ONE_KERNEL, options.runs, pull=True),
        "edit in one kernel to pushed diagnostics": edits(text, IN_ONE_KERNEL, options.runs, pull=False),
        "edit of a shared constant to pulled diagnostics": edits(text, CONSTANT, options.runs, pull=True),
        "hover": figures(hovers(text, options.runs, busy=False)),
        "hover right behind an edit": figures(hovers(text, options.runs, busy=True)),
    }
    print(f"{text.count(chr(10))} lines, {text.count('__global__')} kernels\n")
    columns = ("min_ms", "median_ms", "p95_ms", "max_ms", "server_cpu_ms")
    print(f"{'':<50}" + "".join(f"{column.removesuffix('_ms'):>12}" for column in columns) + "  ms")
    for name, row in measured.items():
        print(f"{name:<50}" + "".join(f"{row.get(column, ''):>12}" for column in columns))
    result = {
        "what": "milliseconds that a client waits, measured at the client",
        "command": "python benchmarks/edit_latency.py",
        "file": {"lines": text.count("\n"), "kernels": text.count("__global__")},
        "measured": measured,
        "limit_ms": {"edit in one kernel to pulled diagnostics": LIMIT_MS},
        "hardware": processor(),
        "load_average": round(os.getloadavg()[0], 1),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("warpwright", "pygls", "lsprotocol", "tree-sitter")},
        },
    }
    if options.write:
        RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return int(measured["edit in one kernel to pulled diagnostics"]["median_ms"] > LIMIT_MS)


if __name__ == "__main__":
    sys.exit(main())
