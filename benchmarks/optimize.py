"""What does `optimize` find, kernel by kernel, and does the model of the GPU order its candidates as a GPU does?

    PYTHONPATH=server:benchmarks python3 benchmarks/optimize.py --out DIR [--only TEXT...] [--seconds N]
    PYTHONPATH=server:benchmarks python3 benchmarks/optimize.py --agree benchmarks/results

Searches every sample for speed, with the rewrites in their fixed order and no language model, on the GPU where there
is one and in the emulator otherwise. Writes optimize_cuda.json or optimize_emulator.json with the command, the hardware
and the versions: of each kernel the candidates with their verdicts, measured and predicted speedups, and the best.
`--agree` compares the two files: of the pairs of candidates of one kernel (its own text is one, too) that a GPU timed
and that differ by more than 10 %, in how many the prediction has the same order. Exits 1 where a candidate that was
offered was not correct.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import platform
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hardware import processor
from warpwright.facts.analyze import analyze
from warpwright.missing import Missing
from warpwright.optimize.optimize import optimize
from warpwright.progress import never_cancelled
from warpwright.syntax.source import read_include, read_source
from warpwright.toolchain.find import find_toolchain
from warpwright.verify.harness import find_gpu

ROOT = Path(__file__).resolve().parent.parent
TOLD_APART = 1.1
"""Candidates whose times differ by less are not asked to be in an order."""


def searched(path: Path, name: str) -> dict[str, Any]:
    """One search: the row of the result."""
    program = analyze(read_source(path), read_include)
    (kernel,) = program.defined_kernels
    started = time.monotonic()
    outcome = optimize(program, kernel, "speed")
    candidates = [
        {
            "rewrites": list(candidate.rewrites),
            "status": str(candidate.report.status),
            "reason": candidate.report.reason,
            "speedups": [speed.speedup for speed in candidate.report.speed],
            "baseline_us": [speed.baseline_us for speed in candidate.report.speed],
            "predicted": candidate.report.predicted.speedup if candidate.report.predicted else None,
        }
        for candidate in outcome.candidates
    ]
    return {
        "kernel": name,
        "seconds": round(time.monotonic() - started, 1),
        "best": outcome.best,
        "reason": outcome.reason,
        "candidates": candidates,
    }


def told(row: dict[str, Any]) -> str:
    best = row["candidates"][row["best"]] if row["best"] is not None else None
    if best is None:
        return f"{row['kernel']:32} {row['seconds']:6.1f} s  {len(row['candidates'])} tried  {row['reason']}"
    gain = best["speedups"][0] if best["speedups"] else best["predicted"]
    shown = f"{gain:.2f}x" if gain else "?"
    return (
        f"{row['kernel']:32} {row['seconds']:6.1f} s  {len(row['candidates'])} tried  {shown:>7} "
        f"{'' if best['speedups'] else 'predicted '}{' + '.join(best['rewrites'])}"
    )


def agreement(folder: Path) -> dict[str, Any]:
    """Of pairs that a GPU tells apart, how many the predictions order alike; by kernel what was predicted otherwise."""
    measured, predicted = (
        {row["kernel"]: row for row in json.loads((folder / f"optimize_{kind}.json").read_text())["kernels"]}
        for kind in ("cuda", "emulator")
    )
    alike, pairs, unlike = 0, 0, []
    for kernel, row in measured.items():
        guesses = {
            tuple(c["rewrites"]): c["predicted"] for c in predicted.get(kernel, {"candidates": []})["candidates"]
        }
        known = {(): (1.0, 1.0)}
        for candidate in row["candidates"]:
            guess = guesses.get(tuple(candidate["rewrites"]))
            if candidate["speedups"] and guess:
                known[tuple(candidate["rewrites"])] = (candidate["speedups"][0], guess)
        for (one, (time_a, guess_a)), (other, (time_b, guess_b)) in itertools.combinations(known.items(), 2):
            if abs(math.log(time_a / time_b)) <= math.log(TOLD_APART):
                continue
            pairs += 1
            if (time_a > time_b) == (guess_a > guess_b):
                alike += 1
            else:
                unlike.append(
                    {
                        "kernel": kernel,
                        "pair": [one, other],
                        "measured": [time_a, time_b],
                        "predicted": [guess_a, guess_b],
                    }
                )
    return {"pairs": pairs, "alike": alike, "unlike": unlike}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the result is written")
    parser.add_argument("--only", nargs="+", default=[""], metavar="TEXT", help="samples whose name holds one of these")
    parser.add_argument("--seconds", type=float, default=1e9, help="leave out what is not begun by then, and say so")
    parser.add_argument("--agree", type=Path, metavar="DIR", help="compare the two results that lie there")
    arguments = parser.parse_args()
    if arguments.agree:
        found = agreement(arguments.agree)
        for pair in found["unlike"]:
            print(pair["kernel"], pair["pair"], pair["measured"], pair["predicted"])
        print(f"{found['alike']} of {found['pairs']} pairs in the order that a GPU measured")
        return 0
    toolchain, gpu = find_toolchain(), find_gpu(never_cancelled)
    if isinstance(toolchain, Missing) or arguments.out is None:
        print(
            f"optimize: {toolchain if isinstance(toolchain, Missing) else 'say where to write: --out DIR'}",
            file=sys.stderr,
        )
        return 2
    started = time.monotonic()
    rows, left_out = [], []
    for path in sorted((ROOT / "csrc_samples").glob("*/*/kernel.cu")):
        name = path.parent.relative_to(ROOT / "csrc_samples").as_posix()
        if not any(text in name for text in arguments.only):
            continue
        if time.monotonic() - started > arguments.seconds:
            left_out.append(name)
            continue
        rows.append(searched(path, name))
        print(told(rows[-1]), flush=True)
    kind = "emulator" if isinstance(gpu, Missing) else "cuda"
    result = {
        "command": "PYTHONPATH=server:benchmarks python3 benchmarks/optimize.py --out DIR"
        + (f" --seconds {arguments.seconds:g}" if arguments.seconds < 1e9 else "")
        + (f" --only {' '.join(arguments.only)}" if any(arguments.only) else ""),
        "hardware": {"cpu": processor()} if isinstance(gpu, Missing) else dict(gpu.details),
        "versions": {"python": platform.python_version(), "nvcc": toolchain.version, "numpy": version("numpy")},
        "left_out": left_out,
        "kernels": rows,
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / f"optimize_{kind}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    gains = [row["candidates"][row["best"]]["speedups"][:1] or [1.0] for row in rows if row["best"] is not None]
    flat = [gain[0] for gain in gains] + [1.0] * (len(rows) - len(gains))
    if flat and kind == "cuda":
        mean = math.exp(sum(map(math.log, flat)) / len(flat))
        large = [sum(gain >= least for gain in flat) for least in (1.2, 2.0)]
        print(f"{len(rows)} kernels: geometric mean {mean:.2f}x; 1.2x or more on {large[0]}, 2x or more on {large[1]}")
    wrong = [
        row["kernel"] for row in rows if row["best"] is not None and row["candidates"][row["best"]]["status"] == "wrong"
    ]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
