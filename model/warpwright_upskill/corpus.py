"""Write examples of requests and the formulas that they ask for, each formula verified.

    python -m warpwright_upskill.corpus --out .build/corpus/examples.jsonl

Formulas are composed of operators, of what is applied before and after them, types and layouts, and said in words that
vary (`warpwright_upskill.requests`). Each one is written as CUDA, compiled with hundreds of others and compared in the
emulator with its evaluation by NumPy; --audit has a part of those checked alone, by `warpwright formula`'s own
verification of its fast kernels. Nothing enters that did not pass; what did not lies beside, with its reason.

The same seed gives the same file. Parts lie in OUT's folder `parts`: a run that was interrupted goes on from them.
Compositions that are kept for evaluation, pairs of operators, of a family and a layout, of a family and a type, and two
whole families, never stand in a training example.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import click
from warpwright.emulator.formula_batch import check_many
from warpwright.missing import Missing
from warpwright.progress import never_cancelled, silent
from warpwright.toolchain.find import find_toolchain
from warpwright.verify.formulas import Asked, written_and_checked
from warpwright.verify.report import Status
from warpwright.writer.write import file_text, plain

from warpwright_upskill.admission import KERNEL_NAME, refusal
from warpwright_upskill.console import StageError, fail, progress_bar, stage
from warpwright_upskill.examples import (
    FORMULA,
    Example,
    Metrics,
    Provenance,
    Rejected,
    read_examples,
    write_json_lines,
)
from warpwright_upskill.likeness import likeness
from warpwright_upskill.requests import compose
from warpwright_upskill.requests.compose import Parts
from warpwright_upskill.requests.wording import worded
from warpwright_upskill.splits import side_of

TOGETHER = 200
"""Formulas of a part: one compilation."""
ORIGIN = "requests"


def part(number: int, count: int, wordings: int, seed: str) -> list[Example | Rejected]:
    """The examples of the formulas of one part, and what was rejected."""
    drawn = [(name, compose.composed(name)) for at in range(count) if (name := f"{seed}/{number * TOGETHER + at}")]
    codes = [(f"f{at}", parts.formula, plain(parts.formula, f"f{at}")) for at, (_, parts) in enumerate(drawn)]
    outcomes = check_many(codes)
    found: list[Example | Rejected] = []
    for (name, parts), outcome in zip(drawn, outcomes, strict=True):
        if outcome.status != "correct":
            where = Provenance(ORIGIN, parts.operator.family, parts.structure, "", name)
            found.append(Rejected(FORMULA, where, f"{parts.text}: {outcome.status}: {outcome.reason}"))
            continue
        metrics = Metrics("correct", "emulator, compared with NumPy", runs=outcome.runs)
        kernel = file_text(plain(parts.formula, KERNEL_NAME))
        found += [_admitted(example) for example in examples(parts, name, wordings, kernel, metrics)]
    return found


def examples(parts: Parts, name: str, wordings: int, kernel: str, metrics: Metrics) -> Iterator[Example]:
    """The requests for a formula in `wordings` different words."""
    side = side_of(parts)
    chance = Random(f"{name}/words")
    for _ in range(wordings):
        words = worded(parts, chance)
        yield Example(
            task=FORMULA,
            problem=words.comment,
            given=words.given,
            constraints=words.constraints,
            reasoning_steps=steps(parts),
            formula=parts.text,
            cuda_kernel=kernel,
            kernel=KERNEL_NAME,
            provenance=Provenance(ORIGIN, parts.operator.family, parts.structure, words.how, name),
            metrics=metrics,
            split=side,
        )


def steps(parts: Parts) -> tuple[str, ...]:
    """What the formula says, one sentence for each of its equations.

    For example "m over r: the intermediate result.", "y over r, c: the result, of type f32."
    """
    said = []
    for each in parts.formula.stages:
        over = f" over {', '.join(each.dims)}" if each.dims else ""
        what = "an intermediate result" if each.temporary else f"a result of type {each.type}"
        said.append(f"{each.name}{over}: {what}.")
    return (*said, *parts.formula.promises)


def _admitted(example: Example) -> Example | Rejected:
    reason = refusal(example)
    return Rejected(example.task, example.provenance, reason) if reason else example


def distinct(found: Sequence[Example]) -> list[Example]:
    """Without examples that are like an earlier one."""
    seen: set[str] = set()
    kept: list[Example] = []
    for example in found:
        key = likeness(example)
        if key not in seen:
            seen.add(key)
            kept.append(example)
    return kept


def audited(sample: Sequence[Example], workers: int) -> list[str]:
    """What the product's own verification says against formulas, each alone with its fast kernels."""
    with ProcessPoolExecutor(workers) as pool:
        return [reason for reason in pool.map(_audit, [each.formula for each in sample]) if reason]


def _audit(text: str) -> str:
    from warpwright.formulas.resolve import formula_of

    report = written_and_checked(formula_of(text), Asked("audited"), silent, never_cancelled).report
    if report is None or report.status is not Status.CORRECT:
        return f"{text}: {report.reason or report.status.value if report else 'no report'}"
    return ""


def edition(*said: Any) -> str:
    """Names the parts of one program and one choice of options: others are not mixed with them."""
    folder = Path(__file__).parent
    texts = [
        path.read_bytes()
        for path in sorted([*folder.glob("requests/**/*.[pt][yo]*"), Path(__file__), folder / "splits.py"])
    ]
    return hashlib.sha256(b"\0".join([*texts, repr(said).encode()])).hexdigest()[:12]


def _write_part(job: tuple[int, int], wordings: int, seed: str, folder: Path) -> Path:
    number, count = job
    path = folder / f"{number:05}.jsonl"
    if not path.exists():
        begun = path.with_suffix(".begun")
        write_json_lines(begun, part(number, count, wordings, seed))
        begun.replace(path)
    return path


def _read_part(path: Path) -> tuple[list[Example], list[dict[str, Any]]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    rejected = [given for line in lines if "reason" in (given := json.loads(line))]
    return read_examples(path, skip_rejected=True), rejected


@click.command()
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="JSON lines to write.")
@click.option("--formulas", default=10_000, show_default=True, type=click.IntRange(1), help="Formulas to draw.")
@click.option("--wordings", default=3, show_default=True, type=click.IntRange(1), help="Requests of each formula.")
@click.option("--seed", default="1", show_default=True)
@click.option("--workers", default=2, show_default=True, type=click.IntRange(1), help="Processes.")
@click.option("--audit", default=0.02, show_default=True, type=click.FloatRange(0, 1), help="Share to verify alone.")
def main(*, out: Path, formulas: int, wordings: int, seed: str, workers: int, audit: float) -> None:
    """Write verified examples of the task formula into OUT, and what was rejected beside it."""
    toolchain = find_toolchain()
    if isinstance(toolchain, Missing):
        raise StageError(f"{toolchain} Nothing is written that was not compiled.")
    started = time.monotonic()
    folder = out.parent / "parts" / edition(seed, wordings)
    folder.mkdir(parents=True, exist_ok=True)
    jobs = [(number, min(TOGETHER, formulas - at)) for number, at in enumerate(range(0, formulas, TOGETHER))]
    write = partial(_write_part, wordings=wordings, seed=seed, folder=folder)
    with progress_bar("formulas", len(jobs)) as progress, ProcessPoolExecutor(workers) as pool:
        for done, _ in enumerate(as_completed([pool.submit(write, job) for job in jobs]), 1):
            progress(f"{done * TOGETHER:,} written and compared", done / len(jobs))
    found, rejected = [], []
    for number, _ in jobs:
        kept, refused = _read_part(folder / f"{number:05}.jsonl")
        found += kept
        rejected += refused
    kept = distinct(found)
    texts = sorted({each.formula: each for each in kept}.values(), key=lambda each: each.id)
    against = audited(Random(seed).sample(texts, round(len(texts) * audit)), workers)
    write_json_lines(out, kept)
    reasons = [json.dumps(each, ensure_ascii=False) for each in rejected]
    out.with_suffix(".rejected.jsonl").write_text("".join(f"{each}\n" for each in reasons), encoding="utf-8")
    summary = {
        "examples": dict(Counter(each.split for each in kept)),
        "formulas": len(texts),
        "families": dict(sorted(Counter(each.provenance.family for each in kept).items())),
        "near_duplicates": len(found) - len(kept),
        "rejected": len(rejected),
        "audited": round(len(texts) * audit),
        "audit_failed": against,
        "compiler": f"nvcc {toolchain.version}",
        "seconds": round(time.monotonic() - started),
    }
    click.echo(json.dumps(summary, indent=2, ensure_ascii=False))
    if against:
        fail(f"{len(against)} formulas of the audit are not correct; the examples stand in {out}.")


if __name__ == "__main__":
    stage(main)
