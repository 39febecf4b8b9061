"""How fast the model reads and writes where nothing else runs and beside busy processes.

    PYTHONPATH=server:benchmarks python3 benchmarks/model_speed.py [--busy 2] [--rounds 3] [--model FILE] [--out FILE]

Each round asks the engine for the same formulas, first with the machine as it is, then beside `--busy` processes that
never wait. Of each it prints the median: until the first token of a prompt of which only the last line is new, and of
one of which nothing is known; prompt tokens and answer tokens in a second; with how many threads; then the memory of
the model's process. The machine's load stands beside it: on a loaded one the ratios count, not the seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from hardware import processor
from warpwright.assist.child_engine import ChildEngine
from warpwright.assist.engine import CompletionRequest, Engine
from warpwright.assist.formula_task import FormulaRequest, formula_prompt
from warpwright.assist.weights import find_adapter, find_model
from warpwright.missing import Missing

TOKENS = 48
EXAMPLES = ("softmax of each row, stable", "layer norm over the last dimension with weight and bias", "row maxima")
EXAMPLE = "y[r, c] = exp(x[r, c] - m[r]) / sum[c] exp(x[r, c] - m[r]) where m[r] = max[c] x[r, c]"


@dataclass(frozen=True)
class Measured:
    """Medians of one state of the machine."""

    busy: int
    known_prefix_ms: float
    unknown_prompt_ms: float
    prompt_tokens_per_second: float
    answer_tokens_per_second: float
    threads: int


@contextlib.contextmanager
def beside(count: int) -> Iterator[None]:
    """With `count` processes that never wait."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        time.sleep(0.2)
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def asked(engine: Engine, prompt: str) -> tuple[float, int, float, int]:
    """Milliseconds until the first token, prompt tokens read for it, tokens in a second behind it, threads."""
    times: list[float] = []
    began = time.monotonic()

    def piece(_: str) -> bool:
        times.append(time.monotonic())
        return False

    done = engine.complete(CompletionRequest(prompt, TOKENS, seconds=300), is_enough=piece)
    rate = (len(times) - 1) / (times[-1] - times[0]) if len(times) > 1 else 0.0
    return (times[0] - began) * 1000, done.prompt_tokens - done.reused_tokens, rate, done.threads


def measured(engine: Engine, busy: int, rounds: int) -> Measured:
    known, unknown, reading, writing, threads = [], [], [], [], []
    for number in range(rounds):
        for words in EXAMPLES:
            unlike = FormulaRequest(words, f"const float* x{number}, float* y", (f"{busy} {number} {words}", EXAMPLE))
            first, read, rate, count = asked(engine, formula_prompt(unlike))
            unknown.append(first)
            reading.append(read / first * 1000)
            writing.append(rate)
            threads.append(count)
            alike = FormulaRequest(f"{words} of x", unlike.given, unlike.example)
            known.append(asked(engine, formula_prompt(alike))[0])
    medians = (statistics.median(each) for each in (known, unknown, reading, writing))
    return Measured(busy, *(round(each, 1) for each in medians), int(statistics.median(threads)))


def memory_mb(pid: int) -> int:
    """The largest resident memory of a process so far."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--busy", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    model = find_model(arguments.model)
    if isinstance(model, Missing):
        sys.exit(str(model))
    with ChildEngine(model, find_adapter(model)) as engine:
        engine.complete(CompletionRequest("warm", max_tokens=2))
        found = []
        for busy in (0, arguments.busy):
            with beside(busy):
                found.append(measured(engine, busy, arguments.rounds))
            print(json.dumps(asdict(found[-1])), flush=True)
        pid = engine.pid
        memory = memory_mb(pid) if pid and Path("/proc").is_dir() else None
    result = {
        "processor": processor(),
        "load": os.getloadavg()[0],
        "model": model.name,
        "memory_mb": memory,
        "measured": [asdict(each) for each in found],
    }
    print(f"memory {memory} MB, load {result['load']:.1f}")
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
