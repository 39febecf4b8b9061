"""The stages of warpwright_upskill as a user runs them: processes, their exit status and what they printed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.command import Ran, run_forked
from warpwright.facts.analyze import analyze
from warpwright.rewrites.registry import applicable
from warpwright.syntax.source import read_source

STAGES = (
    "admission", "collect", "evaluate", "export", "install", "merge", "prefer", "prompts", "prune", "retrain",
    "review", "rows", "ship", "tiny", "train",
)  # fmt: skip
TASK = "double the elements"
FORMULA = "y[i] = 2 * x[i]"
KERNEL = """__global__ void twice(float *x, int n) {
  int i = threadIdx.x;
  if (i < n) x[i] *= 2;
}"""
SAMPLES = Path(__file__).resolve().parent.parent / "upskill" / "fixtures" / "samples"


def run_stage(stage: str, *arguments: str | Path, env: Mapping[str, str] | None = None, seconds: float = 240) -> Ran:
    """Run `python -m warpwright_upskill.STAGE ARGUMENTS...`. Whatever it is for, it must not print a traceback."""
    given = dict(os.environ) | dict(env or {})
    return run_forked("upskill", stage, *arguments, cwd=Path.cwd(), env=given, seconds=seconds)


def ran(stage: str, *arguments: str | Path, env: Mapping[str, str] | None = None) -> Ran:
    """The same for a stage that must succeed."""
    result = run_stage(stage, *arguments, env=env)
    assert result.status == 0, result.stderr
    return result


def refused(stage: str, *arguments: str | Path, env: Mapping[str, str] | None = None) -> str:
    """The one sentence of a stage that must refuse its work, with exit status 2."""
    result = run_stage(stage, *arguments, env=env)
    lines = [line for line in result.stderr.strip().splitlines() if line]
    assert result.status == 2, (result.status, result.stderr)
    assert lines[-1].startswith("error: "), lines
    assert sum(line.startswith("error: ") for line in lines) == 1
    return " ".join(lines[lines.index(next(line for line in lines if line.startswith("error: "))) :])


def gains_of_turn(best: str) -> dict[str, float]:
    """What the rewrites of the sample tiles/turn gain, of which one is to be best."""
    source = read_source(SAMPLES / "tiles" / "turn" / "kernel.cu")
    (kernel,) = analyze(source).defined_kernels
    gains = {step.rewrite: 1.0 for step in applicable(kernel, "speed")}
    assert best in gains and len(gains) > 1
    return {**gains, best: 2.0}


def write_measured(path: Path) -> dict[str, float]:
    """Writes a table as benchmarks/optimize.py does, of the sample tiles/turn alone; gives its gains."""
    gains = gains_of_turn("pad-shared-array")
    steps = [{"rewrites": [name], "may_be_offered": True, "speedups": [gain]} for name, gain in gains.items()]
    path.write_text(json.dumps({"kernels": [{"kernel": "tiles/turn", "candidates": steps}]}), encoding="utf-8")
    return gains


def collect_few(out: Path) -> None:
    """Some examples of each task."""
    table = out.with_name("measured.json")
    write_measured(table)
    counts = {"formulas": 6, "spelled": 4, "wordings": 2, "copies": 1, "broken": 3, "predict": 0, "renamed": 2}
    sizes = [part for name, count in counts.items() for part in (f"--{name}", str(count))]
    requests = SAMPLES.parent / "requests"
    ran(
        "collect", "--samples", SAMPLES, "--measured", table, "--written", requests, *sizes, "--workers", "1",
        "--audit", "0.1", "--out", out,
    )  # fmt: skip


def settings(**values: object) -> list[str]:
    """Options of `train` that change settings."""
    return [part for name, value in values.items() for part in ("--set", f"{name}={value}")]


def json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
