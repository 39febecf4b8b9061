"""Compare the base model with base and adapter, through the server's own engine, on examples it was not trained on.

    python -m warpwright_upskill.evaluate examples.jsonl --adapter adapter.gguf --out evaluation.json

The base model is asked as the server asks it, with worked examples in the prompt; with an adapter there are none.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shlex
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from warpwright.assist.engine import Engine, EngineError
from warpwright.assist.generate import generate
from warpwright.assist.plan import make_plan
from warpwright.facts.analyze import analyze
from warpwright.progress import Progress, silent
from warpwright.rewrites.base import Rewrite
from warpwright.rules.registry import run_rules
from warpwright.syntax.source import Source
from warpwright.toolchain.compile import compile_cubin

from warpwright_upskill.console import fail, progress_bar, stage
from warpwright_upskill.examples import HELD_OUT, KERNEL, TRAIN, Example, Question, read_examples
from warpwright_upskill.install import check_is_adapter
from warpwright_upskill.options import existing_file, find_base, model_option
from warpwright_upskill.render import generation_task


@dataclass(frozen=True, slots=True)
class PlanAnswer:
    """`right`: the first rewrite named is the one that verification passed. `chance` is 1 / number of choices."""

    id: str
    valid: bool
    right: bool
    chance: float
    seconds: float
    said: str


@dataclass(frozen=True, slots=True)
class KernelAnswer:
    id: str
    shown: bool
    compiles: bool
    seconds: float
    said: str


@dataclass(frozen=True, slots=True)
class Score:
    """Answers of one model. Counts are out of the number of answers."""

    plans: tuple[PlanAnswer, ...]
    kernels: tuple[KernelAnswer, ...]

    def summary(self) -> dict[str, Any]:
        return {
            "plans": len(self.plans),
            "plans_valid": sum(a.valid for a in self.plans),
            "plans_right": sum(a.right for a in self.plans),
            "plans_right_by_chance": round(sum(a.chance for a in self.plans), 1),
            "plan_median_s": _median([a.seconds for a in self.plans]),
            "kernels": len(self.kernels),
            "kernels_shown": sum(a.shown for a in self.kernels),
            "kernels_compile": sum(a.compiles for a in self.kernels),
            "kernel_median_s": _median([a.seconds for a in self.kernels]),
        }


def score(engine: Engine, examples: Sequence[Example], progress: Progress = silent) -> Score:
    """Ask the engine about every example. An engine that dies of a request costs that request alone."""
    plans: list[PlanAnswer] = []
    kernels: list[KernelAnswer] = []
    for at, example in enumerate(examples):
        progress(example.task, at / len(examples))
        if example.question is not None:
            plans.append(_plan(engine, example, example.question))
        elif example.task == KERNEL:
            kernels.append(_kernel(engine, example))
    progress("done", 1.0)
    return Score(tuple(plans), tuple(kernels))


def _plan(engine: Engine, example: Example, question: Question) -> PlanAnswer:
    program = analyze(Source("evaluated.cu", example.source.encode()))
    kernel = program.kernel(example.kernel)
    chance = 1 / len(question.rewrites)
    if kernel is None:
        return PlanAnswer(example.id, False, False, chance, 0.0, "The kernel is not in the example's source.")
    findings = [finding for finding in run_rules(program) if finding.kernel == kernel.name]
    choices = [Rewrite(name, title, kernel.source, (), title) for name, title in question.rewrites]
    started = time.perf_counter()
    try:
        plan = make_plan(engine, kernel, findings, choices, question.goal)
    except EngineError as error:
        return PlanAnswer(example.id, False, False, chance, time.perf_counter() - started, str(error))
    right = plan.optimizations[:1] == example.rewrites[:1]
    return PlanAnswer(example.id, True, right, chance, time.perf_counter() - started, plan.raw)


def _kernel(engine: Engine, example: Example) -> KernelAnswer:
    started = time.perf_counter()
    try:
        draft = generate(engine, generation_task(example))
    except EngineError as error:
        return KernelAnswer(example.id, False, False, time.perf_counter() - started, str(error))
    seconds = time.perf_counter() - started
    compiles = draft.shown and compile_cubin(Source("generated.cu", draft.code.encode())).ok
    return KernelAnswer(example.id, draft.shown, compiles, seconds, draft.code or draft.raw)


def _median(values: Sequence[float]) -> float | None:
    return round(statistics.median(values), 2) if values else None


def processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.processor()}, {os.cpu_count()} threads"


def table(results: dict[str, Score]) -> Table:
    made = Table(title="On examples that were not trained on")
    made.add_column("")
    for name in results:
        made.add_column(name, justify="right")
    summaries = [result.summary() for result in results.values()]

    def row(title: str, count: str, of: str) -> None:
        made.add_row(title, *(f"{s[count]} of {s[of]}" if s[of] else "none asked" for s in summaries))

    row("plans that are valid", "plans_valid", "plans")
    row("plans that name the verified rewrite first", "plans_right", "plans")
    row("the same, by chance", "plans_right_by_chance", "plans")
    made.add_row("median seconds of a plan", *(str(s["plan_median_s"]) for s in summaries))
    row("kernels that the server would show", "kernels_shown", "kernels")
    row("kernels that compile", "kernels_compile", "kernels")
    made.add_row("median seconds of a kernel", *(str(s["kernel_median_s"]) for s in summaries))
    return made


@click.command()
@click.argument("examples", type=click.Path(path_type=Path))
@click.option("--adapter", type=click.Path(path_type=Path), required=True, help="GGUF adapter from `export`.")
@click.option("--split", "side", default=HELD_OUT, show_default=True, type=click.Choice([HELD_OUT, TRAIN]))
@click.option("--limit", default=0, help="Ask about so many, evenly spaced; 0 is all.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="JSON file to write.")
@model_option
def main(*, examples: Path, adapter: Path, side: str, limit: int, out: Path | None, model: str | None) -> None:
    """Ask the base model, and the base model with an adapter, about the held-out ones of EXAMPLES."""
    asked = [e for e in read_examples(examples) if e.split == side]
    if 0 < limit < len(asked):
        asked = [asked[at * len(asked) // limit] for at in range(limit)]
    if not asked:
        fail(f"{examples}: holds no {side} example; collect from more sources, or choose another --split.")
    existing_file(adapter, "`export` writes it")
    check_is_adapter(adapter)
    base = find_base(model)
    results: dict[str, Score] = {}
    for name, used in (("base", None), ("base + adapter", adapter)):
        with Engine(base, used) as engine, progress_bar(name, len(asked)) as progress:
            results[name] = score(engine, asked, progress)
    Console().print(table(results))
    if out is not None:
        report = {
            "what": f"answers to {len(asked)} {side} examples through the server's engine, temperature 0 first",
            "command": shlex.join(["python", "-m", "warpwright_upskill.evaluate", *map(_named, sys.argv[1:])]),
            "date": datetime.now(UTC).date().isoformat(),
            "hardware": processor(),
            "versions": {
                "python": platform.python_version(),
                **{name: version(name) for name in ("warpwright", "llama-cpp-python")},
            },
            "model": base.name,
            "adapter_sha256": hashlib.sha256(adapter.read_bytes()).hexdigest(),
            "results": {name: result.summary() for name, result in results.items()},
            "answers": {name: asdict(result) for name, result in results.items()},
        }
        out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
        click.echo(f"written: {out}")


def _named(argument: str) -> str:
    """An argument without the folders of this machine: a record is read elsewhere."""
    return Path(argument).name if os.sep in argument and Path(argument).is_absolute() else argument


if __name__ == "__main__":
    stage(main)
