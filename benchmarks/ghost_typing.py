"""Does typing wait while ghost text is written? Keys to findings, with a kernel for a comment under way and without.

    python benchmarks/ghost_typing.py [--rounds 60] [--write]

The real server on stdin and stdout, on two processors. Each round changes one number in a kernel of a file of 10
kernels and asks for its diagnostics, from the change on; rounds with ghost text under way and without take turns, so
that what else the machine does meets both alike. Before a round with it, the comment at the end of the file is given
another array's name, its kernel is asked for as an editor does, and the process that writes gets a moment to begin; the
key then ends that work. `--write` records the result in benchmarks/results/ghost_typing.json.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from edit_latency import figures, long_file
from hardware import cpu_run, reported
from hover_latency import PROCESSORS, Client, answer

RESULT = Path(__file__).resolve().parent / "results" / "ghost_typing.json"
BEGUN_SECONDS = 0.4
"""After which the kernel is being written, compiled or compared."""
Json = dict[str, Any]


class Typing:
    """One document, and the keys that are struck in it."""

    def __init__(self, client: Client, path: Path) -> None:
        self.client, self.number, self.array = client, 0, 0
        self.uri = client.open(path, self.text)

    @property
    def text(self) -> str:
        kernel = f"__global__ void typed(float* y) {{ y[threadIdx.x] = {self.number}.0f; }}\n"
        return f"{long_file()}\n{kernel}\n// row-wise softmax of x{self.array}[rows][cols]\n"

    def key(self) -> float:
        """Milliseconds from a key to the findings of the text with it."""
        self.number += 1
        self.client.replace(self.uri, self.number, self.text)
        seconds, _ = answer(self.client, "textDocument/diagnostic", {"textDocument": {"uri": self.uri}})
        return seconds

    def begin(self) -> None:
        """Have a kernel that was never shown be written."""
        self.array += 1
        self.key()
        position = {"line": self.text.count("\n"), "character": 0}
        asked = {"textDocument": {"uri": self.uri}, "position": position, "context": {"triggerKind": 2}}
        self.client.start("textDocument/inlineCompletion", asked)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:PROCESSORS])
    load = os.getloadavg()[0]
    alone: list[float] = []
    beside: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        os.environ["WARPWRIGHT_CACHE_DIR"] = f"{name}/cache"
        client = Client({"inlineCompletion": {}, "diagnostic": {}})
        typing = Typing(client, Path(name) / "typed.cu")
        typing.key()
        for _ in range(options.rounds):
            typing.key()
            time.sleep(BEGUN_SECONDS)
            alone.append(typing.key())
            typing.begin()
            time.sleep(BEGUN_SECONDS)
            beside.append(typing.key())
        client.end()
    difference = statistics.median(b - a for a, b in zip(alone, beside, strict=True))
    result: Json = {
        "what": "milliseconds from a key to the findings of the text, with ghost text under way and without, in turns",
        "command": f"python benchmarks/ghost_typing.py --rounds {options.rounds} --write",
        "without": figures(alone),
        "under_way": figures(beside),
        "median_of_differences_ms": round(1000 * difference, 1),
        **cpu_run(load),
    }
    reported(result, RESULT if options.write else None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
