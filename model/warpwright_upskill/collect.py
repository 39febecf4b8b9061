"""Collect examples of all tasks, each verified, into one file.

    python -m warpwright_upskill.collect --out .build/corpus/examples.jsonl

Requests for formulas, plans and repairs (`corpus`, `spelled`, `written`, `plans` and `repairs` of `data`) are made in
parts, which lie in OUT's folder `parts`: a run that was interrupted goes on from them, and one with other sizes makes
what is missing. The same seed and sizes give the same file. Nothing enters that the product's own tools did not pass;
what did not lies beside, with its reason. A share of the formulas with kernels (--audit) is checked alone, as
`warpwright formula` does.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import click
from warpwright.missing import Missing
from warpwright.toolchain.find import find_toolchain

from warpwright_upskill.console import StageError, fail, progress_bar, stage
from warpwright_upskill.data.corpus import audited, distinct, request_jobs
from warpwright_upskill.data.plans import measured_jobs, predicted_jobs, without_contradictions
from warpwright_upskill.data.repairs import repair_jobs
from warpwright_upskill.data.spelled import spelled_jobs
from warpwright_upskill.data.written import written_jobs
from warpwright_upskill.examples import (
    FORMULA,
    PLAN,
    REPAIR,
    WRITTEN,
    Example,
    Jobs,
    Make,
    read_examples,
    write_json_lines,
)


def edition(seed: str) -> str:
    """Names the parts of one program and seed: others are not mixed with them."""
    programs = sorted((Path(__file__).parent / "data").glob("**/*.[pt][yo]*"))
    return hashlib.sha256(b"\0".join([*(path.read_bytes() for path in programs), seed.encode()])).hexdigest()[:12]


def made(jobs: Jobs, folder: Path, workers: int) -> tuple[list[Example], list[str]]:
    """The examples of all jobs, in their order, and the lines of what was rejected. Parts that are there stay."""
    paths = {name: folder / f"{name}.jsonl" for name in jobs}
    missing = [(jobs[name], path) for name, path in paths.items() if not path.exists()]
    with progress_bar("parts", len(jobs)) as progress, ProcessPoolExecutor(workers) as pool:
        for part in as_completed([pool.submit(_write, *each) for each in missing]):
            there = sum(path.exists() for path in paths.values())
            progress(part.result(), there / len(jobs))
    examples = [example for path in paths.values() for example in read_examples(path, skip_rejected=True)]
    lines = [line for path in paths.values() for line in path.read_text(encoding="utf-8").splitlines()]
    return examples, [line for line in lines if '"version"' not in line]


def _write(make: Make, path: Path) -> str:
    begun = path.with_suffix(".begun")
    write_json_lines(begun, make())
    begun.replace(path)
    return path.stem


def merged(examples: Sequence[Example]) -> list[Example]:
    """Without what says the same again, and without plans that contradict each other. Written requests stand under
    other names on purpose."""
    by_task = {task: [each for each in examples if each.task == task] for task in (FORMULA, PLAN, REPAIR)}
    written = {each.id: each for each in by_task[FORMULA] if each.provenance.origin == WRITTEN}
    others = [each for each in by_task[FORMULA] if each.provenance.origin != WRITTEN]
    repairs = {each.id: each for each in by_task[REPAIR]}
    return [*written.values(), *distinct(others), *without_contradictions(by_task[PLAN]), *repairs.values()]


@click.command()
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="JSON lines to write.")
@click.option("--formulas", default=10_000, show_default=True, type=click.IntRange(0), help="Formulas to ask for.")
@click.option("--spelled", default=10_000, show_default=True, type=click.IntRange(0), help="Formulas to spell out.")
@click.option("--wordings", default=3, show_default=True, type=click.IntRange(1), help="Requests of each formula.")
@click.option("--copies", default=4, show_default=True, type=click.IntRange(0), help="Other names of written requests.")
@click.option("--steps", default=4, show_default=True, type=click.IntRange(0), help="Longer forms of written requests.")
@click.option(
    "--written",
    default="model/requests",
    type=click.Path(path_type=Path),
    show_default=True,
    help="Folder of requests that a teacher wrote.",
)
@click.option("--broken", default=600, show_default=True, type=click.IntRange(0), help="Formulas to break kernels of.")
@click.option("--predict", default=200, show_default=True, type=click.IntRange(0), help="Texts to predict gains for.")
@click.option("--renamed", default=8, show_default=True, type=click.IntRange(0), help="Other names of each sample.")
@click.option("--samples", default="csrc_samples", type=click.Path(path_type=Path), show_default=True)
@click.option(
    "--measured", "table", default="benchmarks/results/optimize_cuda.json", show_default=True,
    type=click.Path(path_type=Path), help="What benchmarks/optimize.py recorded of the samples.",
)  # fmt: skip
@click.option("--cases", default="tests/rewrites/cases", type=click.Path(path_type=Path), show_default=True)
@click.option("--audit", default=0.02, show_default=True, type=click.FloatRange(0, 1), help="Share to verify alone.")
@click.option("--seed", default="1", show_default=True)
@click.option("--workers", default=os.cpu_count() or 1, show_default=True, type=click.IntRange(1), help="Processes.")
def main(
    *, out: Path, formulas: int, spelled: int, wordings: int, copies: int, steps: int, written: Path, broken: int,
    predict: int, renamed: int, samples: Path, table: Path, cases: Path, audit: float, seed: str, workers: int,
) -> None:  # fmt: skip
    """Write verified examples into OUT; what was not kept goes to OUT's name with .rejected.jsonl, with reasons."""
    toolchain = find_toolchain()
    if isinstance(toolchain, Missing):
        raise StageError(f"{toolchain} Nothing is collected that was not compiled.")
    for path in (samples, table, cases, written):
        if not path.exists():
            raise StageError(f"{path}: does not exist; run this where the repository is, or name it.")
    started = time.monotonic()
    folder = out.parent / "parts" / edition(seed)
    folder.mkdir(parents=True, exist_ok=True)
    jobs = {
        **measured_jobs(samples, table, renamed, seed),
        **predicted_jobs(cases, predict, seed),
        **repair_jobs(broken, seed),
        **request_jobs(formulas, wordings, seed),
        **spelled_jobs(spelled, wordings, seed),
        **written_jobs(written, copies, steps, seed),
    }
    found, rejected = made(jobs, folder, workers)
    kept = merged(found)
    texts = sorted({each.formula: each for each in kept if each.task == FORMULA}.values(), key=lambda each: each.id)
    against = audited([each for each in texts if each.cuda_kernel], audit, seed, workers)
    write_json_lines(out, kept)
    out.with_suffix(".rejected.jsonl").write_text("".join(f"{line}\n" for line in rejected), encoding="utf-8")
    summary = {
        "kept": {f"{task}, {side}": n for (task, side), n in sorted(Counter((e.task, e.split) for e in kept).items())},
        "formulas": len(texts),
        "said twice or contradictory": len(found) - len(kept),
        "rejected": len(rejected),
        "audit_failed": against,
        "compiler": f"nvcc {toolchain.version}",
        "seconds": round(time.monotonic() - started),
        "processor_seconds": round(sum(os.times()[:4])),
    }
    click.echo(json.dumps(summary, indent=2, ensure_ascii=False))
    if not kept:
        fail(f"No example passed; {out.with_suffix('.rejected.jsonl')} says why.")
    if against:
        fail(f"{len(against)} formulas of the audit are not correct; the examples stand in {out}.")


if __name__ == "__main__":
    stage(main)
