"""`python -m warpwright.verify.emulated --results FD`: compares kernels in the emulator.

The harness without a GPU: requests (JSON lines) on stdin, events (JSON lines) to the file descriptor FD; `emulation`
sends them. It is killed where it is cancelled, takes too long, or has run out of memory.
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import sys
from collections.abc import Iterator
from typing import Any

from warpwright.emulator.ready import translated
from warpwright.missing import Missing
from warpwright.progress import never_cancelled
from warpwright.verify.child import Event
from warpwright.verify.emulated.by_reference import NoReferenceError, ReferenceComparison, torch_reference
from warpwright.verify.emulated.comparison import Comparison, Side
from warpwright.verify.emulation import Asked


def main() -> int:
    with os.fdopen(int(sys.argv[sys.argv.index("--results") + 1]), "w", encoding="ascii") as sink:

        def emit(event: dict[str, Any]) -> None:
            sink.write(json.dumps(event) + "\n")
            sink.flush()

        emit({"event": "hello"})
        for line in sys.stdin.buffer:
            asked: Asked = pickle.loads(base64.b64decode(json.loads(line)["asked"]))
            sides: list[Side] = []
            for ptx, problem, own in zip(asked.ptx, asked.problems, asked.own, strict=True):
                programs = [translated(each) for each in ptx]
                lacking = next((program for program in programs if isinstance(program, Missing)), None)
                if lacking is not None:
                    emit({"event": "unable", "reason": lacking.reason})
                    break
                sides.append(Side(tuple(p for p in programs if not isinstance(p, Missing)), problem, own))
            if len(sides) == len(asked.ptx):
                for event in _events(asked, sides):
                    if event["event"] != "done":
                        emit(event)
                    if event["event"] == "error":
                        return 1
            emit({"event": "done"})
    return 0


def _events(asked: Asked, sides: list[Side]) -> Iterator[Event]:
    if asked.reference is None:
        comparison = Comparison(
            sides[0], sides[1], asked.cases, asked.distributions, asked.seed, asked.budget, asked.unfilled
        )
        yield from comparison.events(never_cancelled)
        return
    yield {"event": "progress", "text": "Loading the reference and torch", "share": 0.4}
    try:
        with torch_reference(*asked.reference) as reference:
            comparison = ReferenceComparison(
                sides[0], sides[0], asked.cases, asked.distributions, asked.seed, asked.budget, (), reference
            )
            yield from comparison.events(never_cancelled)
    except NoReferenceError as error:
        yield {"event": "unable", "reason": f"There is nothing to compare with: {error}."}


if __name__ == "__main__":
    sys.exit(main())
