"""Is the model's plan worth its seconds? What a search finds with few verifications, by who orders its candidates.

    PYTHONPATH=server:benchmarks python3 benchmarks/plans.py --table benchmarks/results/optimize_cuda.json --out DIR

The table is what `benchmarks/optimize.py` wrote: of each kernel every candidate of a search that ran to its end, with
its verdict. A search that may verify only so many is replayed over it in three orders: the fixed one of
`warpwright.optimize.order` (what gained most first, on all kernels but the one that is searched), the model's plan
followed by the fixed one, and chance, of which `SEEDS` draws are averaged. Only kernels to which more than one rewrite
applies ask for an order; those whose rewrites are others today than in the table are left out, and named. Writes
plans.json with every answer of the model as it came, and prints the table. `--answers` are such results of earlier
runs: what was asked in the same words is not asked again, as the likeliest answer is the same. `--gains` prints what
each rewrite gained, as `warpwright.optimize.order` has it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import random
import sys
import time
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from hardware import processor
from optimize import SAMPLES
from optimize_page import plan_table
from warpwright.assist.child_engine import ChildEngine
from warpwright.assist.engine import Engine, EngineError
from warpwright.assist.plan import make_plan, parse_plan, plan_question
from warpwright.assist.prompts import PLAN_SHOTS, nearest_shots, plan_prompt
from warpwright.assist.weights import find_adapter, find_model
from warpwright.facts.analyze import analyze
from warpwright.missing import Missing
from warpwright.optimize.order import UNKNOWN
from warpwright.optimize.rank import MEASURED_NOISE, PREDICTED_NOISE
from warpwright.optimize.version import Version
from warpwright.progress import silent
from warpwright.rewrites.registry import applicable
from warpwright.syntax.source import read_include, read_source

BUDGETS = (1, 2, 3, 6)
SEEDS = 100


def replayed(candidates: Sequence[Mapping[str, Any]], order: Sequence[str], budgets: Sequence[int]) -> list[float]:
    """The speedup of the best that is found within each budget of verifications, 1 where nothing is.

    Round by round, as `warpwright.optimize.search` goes: the steps from the best so far, in the order, first what did
    not apply to the kernel itself or gained there; where these are used up, what the search tried from other versions,
    in its own order.

    >>> table = [
    ...     {"rewrites": ["a"], "may_be_offered": True, "speedups": [1.1], "predicted": None},
    ...     {"rewrites": ["b"], "may_be_offered": True, "speedups": [3.0], "predicted": None},
    ...     {"rewrites": ["b", "a"], "may_be_offered": True, "speedups": [4.0], "predicted": None},
    ... ]
    >>> replayed(table, ["a", "b"], (1, 2, 3)), replayed(table, ["b", "a"], (1, 2, 3))
    ([1.1, 3.0, 4.0], [3.0, 3.0, 4.0])
    """
    left = list(candidates)
    verified: list[Mapping[str, Any]] = []
    gone_on_from: set[tuple[str, ...]] = set()
    vain: set[str] = set()
    while left and len(verified) < max(budgets):
        best = best_of_row(verified)
        base = tuple(best["rewrites"]) if best is not None else ()
        if base in gone_on_from:
            verified.append(left.pop(0))
            continue
        if best is not None and not vain:
            first = [each for each in verified if len(each["rewrites"]) == 1]
            vain = {each["rewrites"][0] for each in first if gain_of_row(each) <= _noise(each)}
        gone_on_from.add(base)
        steps = [each for each in left if tuple(each["rewrites"][:-1]) == base]
        steps.sort(key=lambda each: (each["rewrites"][-1] in vain, _place(order, each["rewrites"][-1])))
        verified += steps
        left = [each for each in left if each not in steps]
    return [gain_of_row(best_of_row(verified[:budget])) for budget in budgets]


def _place(order: Sequence[str], name: str) -> int:
    return order.index(name) if name in order else len(order)


def best_of_row(candidates: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The one to offer: the shortest within the noise of the fastest."""
    offered = [each for each in candidates if each["may_be_offered"]]
    most = max(map(gain_of_row, offered), default=1.0)
    near = [each for each in offered if gain_of_row(each) * _noise(each) >= most]
    return min(near, key=lambda each: len(each["rewrites"]), default=None)


def gain_of_row(candidate: Mapping[str, Any] | None) -> float:
    """Its measured speedup at the first size, else the predicted one; 1 of none."""
    if candidate is None:
        return 1.0
    return float(candidate["speedups"][0] if candidate["speedups"] else candidate["predicted"] or 1.0)


def _noise(candidate: Mapping[str, Any]) -> float:
    return MEASURED_NOISE if candidate["speedups"] else PREDICTED_NOISE


def gains(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """What each rewrite gained as a first step, as `warpwright.optimize.order.GAINS` says, the most first."""
    logs: dict[str, list[float]] = {}
    for each in (each for row in rows for each in row["candidates"] if len(each["rewrites"]) == 1):
        gained = max(1.0, gain_of_row(each)) if each["may_be_offered"] else 1.0
        logs.setdefault(each["rewrites"][0], []).append(math.log(gained))
    means = {name: round(math.exp(sum(of) / (len(of) + 1)), 2) for name, of in logs.items()}
    return dict(sorted(means.items(), key=lambda each: (-each[1], each[0])))


def asked(
    row: Mapping[str, Any],
    others: Sequence[Mapping[str, Any]],
    engine: Engine,
    known: Mapping[str, Any],
    deadline: float,
) -> dict[str, Any] | str:
    """One kernel's plan and what each order finds; or why its orders cannot be replayed. The fixed order is by what was
    gained on the `others`; `known` are rows of earlier runs by the hash of what was asked. Nothing is asked after the
    `deadline` of the monotonic clock."""
    program = analyze(read_source(SAMPLES / row["kernel"] / "kernel.cu"), read_include)
    (kernel,) = program.defined_kernels
    steps, findings = applicable(kernel, "speed"), Version.of(program, kernel).findings()
    recorded = {each["rewrites"][0] for each in row["candidates"] if len(each["rewrites"]) == 1}
    if {step.rewrite for step in steps} != recorded:
        return f"{row['kernel']}: other rewrites apply today than were recorded"
    question = plan_question(kernel, findings, steps, "speed")
    prompt = plan_prompt(question, () if engine.is_taught else nearest_shots(question, PLAN_SHOTS))
    digest = sha256(prompt.encode()).hexdigest()
    started = time.monotonic()
    try:
        if digest in known:
            plan, seconds = parse_plan(known[digest]["plan"], sorted(recorded)), known[digest]["seconds"]
        elif started > deadline:
            return f"{row['kernel']}: for lack of time"
        else:
            plan = make_plan(engine, kernel, findings, steps, "speed")
            seconds = time.monotonic() - started
    except EngineError as error:
        return f"{row['kernel']}: {error}"
    names = sorted({name for each in row["candidates"] for name in each["rewrites"]})
    gained = gains(others)
    fixed = sorted(names, key=lambda name: -gained.get(name, UNKNOWN))
    by_chance = [
        replayed(row["candidates"], random.Random(seed).sample(names, len(names)), BUDGETS) for seed in range(SEEDS)
    ]
    return {
        "kernel": row["kernel"],
        "applicable": sorted(recorded),
        "asked_sha256": digest,
        "plan": plan.raw,
        "seconds": round(seconds, 2),
        "fixed": replayed(row["candidates"], fixed, BUDGETS),
        "model": replayed(row["candidates"], [*dict.fromkeys([*plan.optimizations, *fixed])], BUDGETS),
        "chance": [geometric_mean(column) for column in zip(*by_chance, strict=True)],
        "all": gain_of_row(best_of_row(row["candidates"])),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=Path, required=True, metavar="FILE", help="what benchmarks/optimize.py wrote")
    parser.add_argument("--gains", action="store_true", help="print what each rewrite gained, and nothing else")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the result is written")
    parser.add_argument("--answers", nargs="+", type=Path, default=[], metavar="FILE", help="results of earlier runs")
    parser.add_argument("--seconds", type=float, default=1e9, help="leave out what is not asked by then, and say so")
    parser.add_argument("--model", metavar="MODEL", help="as of `warpwright optimize`")
    arguments = parser.parse_args()
    recorded = json.loads(arguments.table.read_text(encoding="utf-8"))
    if arguments.gains:
        print("\n".join(f'    "{name}": {gained:.2f},' for name, gained in gains(recorded["kernels"]).items()))
        return 0
    model = find_model(arguments.model, silent)
    if isinstance(model, Missing) or arguments.out is None:
        print(f"plans: {model if isinstance(model, Missing) else 'say where to write: --out DIR'}", file=sys.stderr)
        return 2
    earlier = (row for file in arguments.answers for row in json.loads(file.read_text(encoding="utf-8"))["kernels"])
    known = {row["asked_sha256"]: row for row in earlier}
    deadline = time.monotonic() + arguments.seconds
    rows: list[dict[str, Any]] = []
    left_out: list[str] = []
    adapter = find_adapter(model)
    with ChildEngine(model, adapter) as engine:
        for row in recorded["kernels"]:
            if sum(len(each["rewrites"]) == 1 for each in row["candidates"]) < 2:
                continue
            others = [other for other in recorded["kernels"] if other is not row]
            found = asked(row, others, engine, known, deadline)
            if isinstance(found, str):
                left_out.append(found)
                print(found, flush=True)
                continue
            rows.append(found)
            print(f"{row['kernel']:32} {found['seconds']:5.1f} s  {found['plan'][-120:]}", flush=True)
    result = {
        "command": "PYTHONPATH=server:benchmarks python3 benchmarks/plans.py --table "
        f"benchmarks/results/{arguments.table.name} --out DIR",
        "hardware": {"cpu": processor(), "load": round(os.getloadavg()[0], 1)},
        "versions": {"python": platform.python_version(), "llama-cpp-python": version("llama-cpp-python")},
        "model": model.name,
        "adapter": adapter.name if adapter is not None else None,
        "verdicts": {
            "file": arguments.table.name,
            "sha256": sha256(arguments.table.read_bytes()).hexdigest(),
            "hardware": recorded["hardware"],
        },
        "budgets": BUDGETS,
        "seeds": SEEDS,
        "left_out": left_out,
        "kernels": rows,
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "plans.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if rows:
        print("\n".join(plan_table(result)))
    print(f"{len(rows)} kernels, {len(left_out)} left out")
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
