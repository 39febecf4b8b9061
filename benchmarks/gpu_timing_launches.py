"""Launches each case of the given requests with cold and with warm caches, as verification times them, and prints the
times of the harness's stopwatch, a JSON line per case: what gpu_timing.py runs plainly and again under Nsight Compute.

    PYTHONPATH=server python3 benchmarks/gpu_timing_launches.py REQUESTS.json

`launches` names every launch of the kernel in order: "cold", "warm", or "" for one that only warms the caches.
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

    def restore() -> None:
        for spec in case.outputs:
            buffers[spec.name].fill(poison, values.get(spec.name))

    for spec in case.arrays:
        buffers[spec.name].fill(poison, values.get(spec.name))
    row: dict[str, Any] = {"shape": dict(case.shape), "cold": [], "warm": [], "launches": []}
    for repeat in range(REPEATS):
        counted = repeat >= UNCOUNTED
        restore()
        cold = stopwatch.start_cold(start)()
        restore()
        start()
        restore()
        warm = stopwatch.start_warm(start)()
        if counted:
            row["cold"].append(cold)
            row["warm"].append(warm)
        row["launches"] += ["cold" if counted else "", "", "warm" if counted else ""]
    return row


def main() -> None:
    stopwatch = Stopwatch()
    for number, request in enumerate(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))):
        with Session(request, lambda event: None) as session:
            for case in session.cases():
                print(json.dumps({"request": number, **launched(session, case, stopwatch)}), flush=True)


if __name__ == "__main__":
    main()
