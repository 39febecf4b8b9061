"""What does `optimize` find, kernel by kernel, and does the model of the GPU order its candidates as a GPU does?

    PYTHONPATH=server:benchmarks python3 benchmarks/optimize.py --out DIR [--only TEXT...] [--seconds N]
    PYTHONPATH=server:benchmarks python3 benchmarks/optimize.py --merge DIR... --out benchmarks/results
    PYTHONPATH=server:benchmarks python3 benchmarks/optimize.py --agree benchmarks/results

Searches every sample for speed, with the rewrites in their fixed order and no language model, on the GPU where there
is one and in the emulator otherwise. Writes optimize_cuda.json or optimize_emulator.json with the command, the hardware
and the versions: of each kernel the candidates with their verdicts, measured and predicted speedups, and the best; and
beside them, from the same run, what the reference takes in eager torch and torch.compile, and the shares of the
hardware's bound. Several GPUs of one machine share the samples, and `--merge` joins what their parts wrote:

    CUDA_VISIBLE_DEVICES=1 python3 benchmarks/optimize.py --part 2/4 --out DIR/2 &

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
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hardware import processor
from optimize_page import cells, figures
from warpwright.facts.analyze import analyze
from warpwright.missing import Missing
from warpwright.optimize.optimize import optimize
from warpwright.optimize.rank import may_be_offered
from warpwright.progress import never_cancelled
from warpwright.syntax.source import read_include, read_source
from warpwright.toolchain.find import find_toolchain
from warpwright.verify.harness import Gpu, find_gpu
from warpwright.verify.report import Report
from warpwright.verify.verify import verify

SAMPLES = Path(__file__).resolve().parent.parent / "csrc_samples"
COMMAND = "PYTHONPATH=server:benchmarks python3 benchmarks/optimize.py --out DIR"
_SAME = ("name", "cpu", "driver", "torch")
"""What is the same of the hardware of two results that can be one."""

TOLD_APART = 1.1
"""Candidates whose times differ by less are not asked to be in an order."""


def searched(path: Path, name: str, seconds: float) -> dict[str, Any]:
    """One search: the row of the result. Lists are by size, the program's own launch first."""
    program = analyze(read_source(path), read_include)
    (kernel,) = program.defined_kernels
    started = time.monotonic()
    outcome = optimize(program, kernel, "speed", budget_seconds=seconds)
    took = time.monotonic() - started
    reports = [candidate.report for candidate in outcome.candidates]
    chosen = [reports[outcome.best]] if outcome.best is not None else []
    timed = [report for report in (*chosen, *reports) if report.speed]
    if not timed and not isinstance(find_gpu(never_cancelled), Missing):
        alone = verify(program.source, program.source, kernel=kernel.name, goal="reference")
        timed = [alone] if alone.speed else []
    return {
        "kernel": name,
        "seconds": round(took, 1),
        "best": outcome.best,
        "reason": outcome.reason,
        **_own(timed),
        "candidates": [
            {
                "rewrites": list(candidate.rewrites),
                "may_be_offered": may_be_offered(candidate.report, "speed", candidate.rewrites),
                **verdict(candidate.report),
            }
            for candidate in outcome.candidates
        ],
    }


def _own(timed: Sequence[Report]) -> dict[str, Any]:
    """The kernel as it is at its first size, as the first report timed it: microseconds, the bound and the share of it
    that is reached, and what its reference in torch takes, from the first report that has it."""
    first = timed[0].speed[0] if timed else None
    bound = first.details.get("bound") if first else None
    peers = (report.speed[0].details.get("peers") or {} for report in timed)
    return {
        "shape": dict(first.shape) if first else None,
        "own_us": first.baseline_us if first else None,
        "bound": bound,
        "own_share": bound["us"] / first.baseline_us if first and bound else None,
        "peers": next((each for each in peers if each), {}),
    }


def verdict(report: Report) -> dict[str, Any]:
    return {
        "status": str(report.status),
        "reason": report.reason,
        "speedups": [speed.speedup for speed in report.speed],
        "ci95": [list(speed.ci95) for speed in report.speed],
        "baseline_us": [speed.baseline_us for speed in report.speed],
        "candidate_us": [speed.candidate_us for speed in report.speed],
        "shares": [speed.details.get("fraction_of_bound") for speed in report.speed],
        "predicted": report.predicted.speedup if report.predicted else None,
    }


def told(row: dict[str, Any]) -> str:
    """One line for a terminal."""
    predicted = row["candidates"][row["best"]]["predicted"] if row["best"] is not None else None
    name, own, best, speedup, share, eager, compiled, how = cells(row)
    if predicted is not None:
        speedup = f"{predicted:.2f}x predicted"
    return (
        f"{name:36} {row['seconds']:6.1f} s {len(row['candidates']):3} tried  {own:>8} -> {best:>8} us  {speedup:20} "
        f"bound {share:12} eager {eager:>8} compiled {compiled:>8}  {how}"
    )


def part_of(names: Sequence[str], part: str) -> list[str]:
    """Every N-th name from the K-th on, for "K/N". Raises ValueError.

    >>> part_of(["a", "b", "c", "d", "e"], "2/3")
    ['b', 'e']
    """
    number, _, parts = part.partition("/")
    if not (number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts)):
        raise ValueError(f"no part of a whole: {part}; say 2/4 for the second of four")
    return list(names[int(number) - 1 :: int(parts)])


def merged(results: Sequence[dict[str, Any]], known: Sequence[str]) -> dict[str, Any]:
    """Several results as one, a kernel's row from the last that has it; left out is what of `known` is in none.

    The hardware is the first one's. Raises ValueError where another has a GPU of another name, or other versions.
    """
    first = results[0]
    for other in results[1:]:
        if [other["hardware"].get(key) for key in _SAME] != [first["hardware"].get(key) for key in _SAME]:
            raise ValueError("the results are of different hardware")
        if other["versions"] != first["versions"]:
            raise ValueError("the results are of different versions")
    rows = {row["kernel"]: row for result in results for row in result["kernels"]}
    return {
        **first,
        "command": COMMAND,
        "left_out": [name for name in known if name not in rows],
        "kernels": [rows[name] for name in sorted(rows)],
    }


def samples() -> list[str]:
    return sorted(p.parent.relative_to(SAMPLES).as_posix() for p in SAMPLES.glob("*/*/kernel.cu"))


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
    parser.add_argument("--part", default="1/1", metavar="K/N", help="the K-th of N parts of the samples")
    parser.add_argument("--seconds", type=float, default=1e9, help="leave out what is not begun by then, and say so")
    parser.add_argument("--each", type=float, default=120.0, metavar="SECONDS", help="for the search of one kernel")
    parser.add_argument("--merge", nargs="+", type=Path, metavar="PATH", help="results, or folders of them, to join")
    parser.add_argument("--agree", type=Path, metavar="DIR", help="compare the two results that lie there")
    arguments = parser.parse_args()
    if arguments.agree:
        found = agreement(arguments.agree)
        for pair in found["unlike"]:
            print(pair["kernel"], pair["pair"], pair["measured"], pair["predicted"])
        print(f"{found['alike']} of {found['pairs']} pairs in the order that a GPU measured")
        return 0
    toolchain, gpu = find_toolchain(), None if arguments.merge else find_gpu(never_cancelled)
    if isinstance(toolchain, Missing) or arguments.out is None:
        print(
            f"optimize: {toolchain if isinstance(toolchain, Missing) else 'say where to write: --out DIR'}",
            file=sys.stderr,
        )
        return 2
    try:
        if arguments.merge:
            files = [f for p in arguments.merge for f in (sorted(p.rglob("optimize_*.json")) if p.is_dir() else [p])]
            result = merged([json.loads(file.read_text(encoding="utf-8")) for file in files], samples())
            for row in result["kernels"]:
                print(told(row))
        else:
            wanted = [name for name in samples() if any(text in name for text in arguments.only)]
            result = {
                "command": COMMAND + (f" --only {' '.join(arguments.only)}" if any(arguments.only) else ""),
                **run(part_of(wanted, arguments.part), arguments.seconds, arguments.each),
            }
            result["hardware"] = dict(gpu.details) if isinstance(gpu, Gpu) else {"cpu": processor()}
            result["versions"] = {
                "python": platform.python_version(),
                "nvcc": toolchain.version,
                "numpy": version("numpy"),
            }
    except (ValueError, IndexError, OSError) as error:
        print(f"optimize: {error}", file=sys.stderr)
        return 2
    kind = "cuda" if "uuid" in result["hardware"] else "emulator"
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / f"optimize_{kind}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print("\n".join(figures(result)))
    offered = [row["candidates"][row["best"]]["status"] for row in result["kernels"] if row["best"] is not None]
    return 1 if "wrong" in offered else 0


def run(names: Sequence[str], seconds: float, each: float) -> dict[str, Any]:
    """Search the samples one after the other; none begins after `seconds`."""
    started = time.monotonic()
    rows: list[dict[str, Any]] = []
    left_out = []
    for name in names:
        if time.monotonic() - started > seconds:
            left_out.append(name)
            continue
        rows.append(searched(SAMPLES / name / "kernel.cu", name, each))
        print(told(rows[-1]), flush=True)
    return {"left_out": left_out, "kernels": rows}


if __name__ == "__main__":
    sys.exit(main())
