"""How fast the emulator runs, with all its checks on.

    python benchmarks/emulator_speed.py --write

Needs nvcc. Lane-instructions per second of PTX on saxpy (4 M elements), a 1024 x 1024 transpose through shared memory
(with its bank conflicts) and a reduction with barriers (1 M elements); the same for a quarter of the work, to show that
time grows with it; and what a profile of each sample takes at the shape that `warpwright profile` chooses, from the
source text on, with nvcc's PTX at hand. The best of five runs each, on one core.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from pathlib import Path

import numpy as np
from hardware import processor
from warpwright import __version__
from warpwright.emulator.launch import ArrayArgument, Launch, ScalarArgument, run
from warpwright.emulator.profile import profile_kernel
from warpwright.emulator.program import Program
from warpwright.emulator.ready import make_ready
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Kernel
from warpwright.facts.model import Program as Unit
from warpwright.missing import Missing
from warpwright.problems.infer import find_problem
from warpwright.problems.model import Problem
from warpwright.syntax.source import read_include, read_source

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "emulator_speed.json"
RUNS = 5


def known(sample: str) -> tuple[Unit, Kernel, Problem]:
    unit = analyze(read_source(ROOT / "csrc_samples" / sample / "kernel.cu"), read_include)
    kernel = unit.defined_kernels[0]
    problem = find_problem(unit, kernel)
    assert isinstance(problem, Problem), problem
    return unit, kernel, problem


def ready(sample: str) -> Program:
    program = make_ready(*known(sample))
    if isinstance(program, Missing):
        raise SystemExit(str(program))
    return program


def number(value: int) -> ScalarArgument:
    return ScalarArgument("n", np.int32(value).tobytes())


def measured(program: Program, launch: Launch, arguments: list[ArrayArgument | ScalarArgument]) -> tuple[int, float]:
    """Lane-instructions of one launch, and the seconds of the fastest of some runs."""
    best, steps = float("inf"), 0
    for _ in range(RUNS):
        start = time.perf_counter()
        result = run(program, launch, arguments)
        best = min(best, time.perf_counter() - start)
        assert result.is_complete and not result.faults, result.faults
        steps = result.tallies.lane_steps
    return steps, best


def saxpy(elements: int) -> tuple[int, float]:
    x, y = (np.arange(elements, dtype=np.float32) for _ in range(2))
    arguments = [ArrayArgument("x", x, "in"), ArrayArgument("y", y), ScalarArgument("a", np.float32(2).tobytes())]
    return measured(
        ready("elementwise/saxpy"), Launch((elements // 256, 1, 1), (256, 1, 1)), [*arguments, number(elements)]
    )


def transpose(side: int) -> tuple[int, float]:
    x = np.arange(side * side, dtype=np.float32)
    arguments = [ArrayArgument("in", x, "in"), ArrayArgument("out", x, "out"), number(side), number(side)]
    return measured(ready("memory/transpose_tiled"), Launch((side // 32, side // 32, 1), (32, 8, 1)), arguments)


def reduction(elements: int) -> tuple[int, float]:
    x = np.ones(elements, dtype=np.float32)
    out = np.zeros(elements // 256, dtype=np.float32)
    arguments = [ArrayArgument("in", x, "in"), ArrayArgument("out", out, "out"), number(elements)]
    return measured(ready("reductions/reduce_interleaved"), Launch((elements // 256, 1, 1), (256, 1, 1)), arguments)


CASES = (
    ("saxpy", saxpy, 1 << 22, 1 << 20),
    ("transpose 1024 x 1024", transpose, 1024, 512),
    ("reduction with barriers", reduction, 1 << 20, 1 << 18),
)


def profiles() -> list[dict[str, object]]:
    """Seconds for a profile of each sample at its own shape; the compiler's output is kept from a first run."""
    rows: list[dict[str, object]] = []
    for path in sorted(ROOT.glob("csrc_samples/*/*/kernel.cu")):
        sample = "/".join(path.parts[-3:-1])
        unit, kernel, problem = known(sample)
        best = float("inf")
        for _ in range(RUNS + 1):
            start = time.perf_counter()
            found = profile_kernel(unit, kernel, problem, problem.profile or {})
            best = min(best, time.perf_counter() - start)
            assert not isinstance(found, Missing), found
        rows.append(
            {"kernel": f"{path.parent.name}/{kernel.name}", "shape": dict(problem.profile or {}), "seconds": best}
        )
        print(f"profile of {rows[-1]['kernel']:40} {best * 1e3:7.0f} ms  at {rows[-1]['shape']}")
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/emulator_speed.json")
    options = parser.parse_args()
    rows = []
    for name, function, size, smaller in CASES:
        steps, seconds = function(size)
        few, short = function(smaller)
        growth = (seconds / short) / (steps / few)
        print(f"{name:24} {steps / seconds / 1e6:6.0f} million lane-instructions/s; per work {growth:.2f}x a quarter's")
        rows.append({"kernel": name, "million_per_s": steps / seconds / 1e6, "seconds": seconds, "growth": growth})
    about = {
        "command": "python benchmarks/emulator_speed.py --write",
        "hardware": processor(),
        "versions": {"warpwright": __version__, "python": platform.python_version(), "numpy": np.__version__},
    }
    result = {**about, "results": rows, "profiles": profiles()}
    if options.write:
        RESULT.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
