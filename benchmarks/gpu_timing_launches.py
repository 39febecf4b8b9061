"""Launches each case of the given requests with cold and with warm caches, as verification times them, and prints the
times of the harness's stopwatch, a JSON line per case: what gpu_timing.py runs plainly and again under Nsight Compute.

    PYTHONPATH=server python3 benchmarks/gpu_timing_launches.py REQUESTS.json

`launches` names every launch of the kernel in order: "cold", "warm", or "" for the first ones, which do not count.
"""

from __future__ import annotations

import json
import random
import sys
from functools import partial
from pathlib import Path
from typing import Any

import torch
from warpwright_harness.checks.correctness import input_values
from warpwright_harness.session import Case, Session
from warpwright_harness.timing.stopwatch import Stopwatch

PLACES = 6
"""Where the arrays lie, with gaps of random size between: that alone moves a time by some percent."""

REPEATS = 3 * PLACES
UNCOUNTED = 3


def launched(session: Session, case: Case, stopwatch: Stopwatch) -> dict[str, Any]:
    gaps, places = [], []
    for _ in range(PLACES):
        gaps.append(torch.empty(random.randrange(1, 48) << 20, dtype=torch.uint8, device="cuda"))
        places.append(session.buffers(case))
    values = input_values(session, case, "normal", 1)
    session.set_variables("baseline", case, values)
    stream = torch.cuda.current_stream().cuda_stream
    row: dict[str, Any] = {"shape": dict(case.shape), "cold": [], "warm": [], "launches": []}
    for repeat in range(-UNCOUNTED, REPEATS):
        buffers = places[repeat % PLACES]
        start = partial(session.prepared("baseline", case, buffers).start, stream)
        for caches, start_timing in (("cold", stopwatch.start_cold), ("warm", stopwatch.start_warm)):
            for spec in case.arrays:
                buffers[spec.name].fill(session.poisons[0], values.get(spec.name))
            took = start_timing(start)()
            if repeat >= 0:
                row[caches].append(took)
            row["launches"].append(caches if repeat >= 0 else "")
    return row


def main() -> None:
    stopwatch = Stopwatch()
    for number, request in enumerate(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))):
        with Session(request, lambda event: None) as session:
            for case in session.cases():
                print(json.dumps({"request": number, **launched(session, case, stopwatch)}), flush=True)


if __name__ == "__main__":
    main()
