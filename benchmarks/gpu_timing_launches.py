"""Launches each case of the given requests with cold and with warm caches, as verification times them, and prints the
times of the harness's stopwatch, a JSON line per case: what gpu_timing.py runs plainly and again under Nsight Compute.

    PYTHONPATH=server python3 benchmarks/gpu_timing_launches.py REQUESTS.json

`launches` names every launch of the kernel in order: "cold", "warm", or "" for the first ones, which do not count.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from warpwright_harness.correctness import input_values
from warpwright_harness.session import Case, Session
from warpwright_harness.stopwatch import Stopwatch

REPEATS = 11
UNCOUNTED = 3


def launched(session: Session, case: Case, stopwatch: Stopwatch) -> dict[str, Any]:
    buffers = session.buffers(case)
    values = input_values(session, case, "normal", 1)
    poison = session.poisons[0]
    session.set_variables("baseline", case, values)
    launch = session.prepared("baseline", case, buffers)
    stream = torch.cuda.current_stream().cuda_stream

    def start() -> None:
        launch.start(stream)

    row: dict[str, Any] = {"shape": dict(case.shape), "cold": [], "warm": [], "launches": []}
    for repeat in range(REPEATS):
        for caches, start_timing in (("cold", stopwatch.start_cold), ("warm", stopwatch.start_warm)):
            for spec in case.arrays:
                buffers[spec.name].fill(poison, values.get(spec.name))
            took = start_timing(start)()
            if repeat >= UNCOUNTED:
                row[caches].append(took)
            row["launches"].append(caches if repeat >= UNCOUNTED else "")
    return row


def main() -> None:
    stopwatch = Stopwatch()
    for number, request in enumerate(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))):
        with Session(request, lambda event: None) as session:
            for case in session.cases():
                print(json.dumps({"request": number, **launched(session, case, stopwatch)}), flush=True)


if __name__ == "__main__":
    main()
