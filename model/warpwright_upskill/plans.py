"""Collect plans: which of the rewrites that apply to a kernel gains most.

    python -m warpwright_upskill.plans --out plans.jsonl

Kernels are the samples, with what each rewrite gained on a GPU where that was recorded, also by other names; and with
--predict, fixtures of the rewrites and kernels that the writer makes plainly, with what the cost model predicts for
candidates that are right. Choices are the rewrites that apply, shuffled. What gains nothing is no plan, and
of equal questions with different answers none is kept.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import click
from warpwright.assist.plan import plan_question
from warpwright.assist.prompts import PlanQuestion, plan_prompt
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Kernel
from warpwright.formulas.resolve import formula_of
from warpwright.formulas.sampler import samples as formulas
from warpwright.optimize.rank import MEASURED_NOISE, PREDICTED_NOISE
from warpwright.rewrites.base import Rewrite
from warpwright.rewrites.registry import applicable
from warpwright.rules.base import Finding
from warpwright.rules.registry import run_rules
from warpwright.syntax.source import Source, read_source
from warpwright.verify.report import PASSED
from warpwright.verify.verify import verify
from warpwright.writer.scatter import ScatterError
from warpwright.writer.write import file_text, plain

from warpwright_upskill.console import StageError, progress_bar, stage
from warpwright_upskill.examples import (
    DEV,
    HELD_OUT,
    PLAN,
    TRAIN,
    Example,
    Metrics,
    Provenance,
    Question,
    Rejected,
    read_examples,
    write_json_lines,
)
from warpwright_upskill.render import plan_refusal
from warpwright_upskill.variants import vary
from warpwright_upskill.words import CONSTRAINTS, GOALS, diagnosis, outcome, sentences

HELD_OUT_FAMILIES = frozenset({"attention", "memory", "scans"})
DEV_FAMILIES = frozenset({"gathers"})
GOAL = "speed"
MOST_NAMED = 3
"""Rewrites in one answer."""
MEASURED, PREDICTED = "measured", "predicted"
_NOISE = {MEASURED: MEASURED_NOISE, PREDICTED: PREDICTED_NOISE}


@dataclass(frozen=True, slots=True)
class Planned:
    """A kernel in its file, and how many times as fast each of the rewrites makes it that apply; `basis` says who knows
    that."""

    source: Source
    kernel: str
    gains: Mapping[str, float]
    basis: str
    provenance: Provenance


def split_of(provenance: Provenance) -> str:
    """Samples by their family, which no rewrite's fixture or formula is of."""
    family = provenance.family.partition("/")[0]
    if provenance.origin != "sample":
        return TRAIN
    return HELD_OUT if family in HELD_OUT_FAMILIES else DEV if family in DEV_FAMILIES else TRAIN


def measured(folder: Path, table: Path, variants: int) -> Iterator[Planned]:
    """The samples with what was recorded of each first step, as they stand and under other names."""
    for row in json.loads(table.read_text(encoding="utf-8"))["kernels"]:
        first = [each for each in row["candidates"] if len(each["rewrites"]) == 1]
        gains = {each["rewrites"][0]: _recorded(each) for each in first}
        own = read_source(folder / row["kernel"] / "kernel.cu")
        source = Source(f"{folder.name}/{row['kernel']}/kernel.cu", own.data)
        (kernel,) = analyze(source).defined_kernels[:1]
        where = Provenance("sample", row["kernel"])
        yield Planned(source, kernel.name, gains, MEASURED, where)
        renamed = (each for each in vary(kernel, source, 4 * variants, 0) if each.how == "renamed")
        for variant in islice(renamed, variants):
            yield Planned(variant.source, variant.kernel, gains, MEASURED, replace(where, structure=variant.how))


def _recorded(candidate: Mapping[str, Any]) -> float:
    return float(candidate["speedups"][0]) if candidate["may_be_offered"] and candidate["speedups"] else 1.0


def unpredicted(fixtures: Path, seed: str) -> Iterator[tuple[Source, Provenance]]:
    """Texts with kernels to which several rewrites apply: a fixture and a formula in turn, each file once."""
    paths = [path for path in fixtures.glob("*/*.cu") if not path.name.endswith(".after.cu")]
    paths.sort(key=lambda path: sha256(f"{seed}/{path.parent.name}/{path.name}".encode()).hexdigest())
    sampled = enumerate(formulas(seed))
    for path in paths:
        where = Provenance("rewrite", f"{path.parent.name}/{path.stem}")
        yield Source(f"{path.parent.name}/{path.name}", path.read_bytes()), where
        number, sample = next(sampled)
        try:
            code = plain(formula_of(sample.text), f"{sample.family.replace(' ', '_')}_{number}")
        except ScatterError:
            continue
        yield (
            Source("formula.cu", file_text(code).encode()),
            Provenance("sampler", sample.family, seed=f"{seed}/{number}"),
        )


def predicted(source: Source, where: Provenance) -> Planned | Rejected:
    """A kernel of the text to which several rewrites apply, with what is predicted of those that are right."""
    for kernel in analyze(source).defined_kernels:
        steps = applicable(kernel, GOAL)
        if len(steps) < 2:
            continue
        gains: dict[str, float] = {}
        for step in steps:
            report = verify(source, step.apply(), kernel=kernel.name, goal=GOAL, backend="emulator")
            if report.status not in PASSED or report.predicted is None:
                return Rejected(PLAN, where, f"{step.rewrite}: {report.reason or 'Nothing is predicted of it.'}")
            gains[step.rewrite] = report.predicted.speedup
        return Planned(source, kernel.name, gains, PREDICTED, where)
    return Rejected(PLAN, where, "No kernel has a choice of rewrites.")


def plan_of(planned: Planned, seed: str) -> Example | Rejected:
    """The example of planning for a kernel."""
    program = analyze(planned.source)
    kernel = program.kernel(planned.kernel)
    if kernel is None:
        return Rejected(PLAN, planned.provenance, f"{planned.kernel} is not in the text.")
    steps = {step.rewrite: step for step in applicable(kernel, GOAL)}
    if steps.keys() != planned.gains.keys():
        return Rejected(PLAN, planned.provenance, "Other rewrites apply today than were recorded.")
    order = sorted(steps, key=lambda name: -planned.gains[name])
    chosen = [name for name in order if planned.gains[name] > _NOISE[planned.basis]][:MOST_NAMED]
    if not chosen or len(steps) < 2:
        return Rejected(PLAN, planned.provenance, "There is no choice of rewrites, or none gains.")
    findings = [finding for finding in run_rules(program) if finding.kernel == kernel.name]
    choices = sorted(steps.values(), key=lambda step: step.rewrite)
    Random(f"{seed}:{sha256(planned.source.data).hexdigest()}").shuffle(choices)
    asked = plan_question(kernel, findings, choices, GOAL)
    best = steps[chosen[0]]
    candidate = best.apply()
    after = analyze(candidate).kernel(kernel.name)
    example = Example(
        task=PLAN,
        problem=GOALS[GOAL].format(kernel.name),
        provenance=planned.provenance,
        metrics=Metrics(
            level="faster" if planned.basis == MEASURED else "correct",
            by="an H200" if planned.basis == MEASURED else "the emulator and the cost model",
            speedup=round(planned.gains[chosen[0]], 2),
            speedup_basis=planned.basis,
            scores={name: round(gain, 3) for name, gain in sorted(planned.gains.items())},
        ),
        constraints=CONSTRAINTS[GOAL],
        reasoning_steps=(*reasons(kernel, after, findings, best), f"So {best.rewrite}."),
        cuda_kernel=after.span.text if after is not None else "",
        kernel=kernel.name,
        source=planned.source.text(),
        question=Question(asked.goal, asked.kernel, asked.findings, asked.rewrites),
        rewrites=tuple(chosen),
        split=split_of(planned.provenance),
    )
    unreadable = plan_refusal(example)
    return Rejected(PLAN, planned.provenance, unreadable) if unreadable else example


def reasons(kernel: Kernel, after: Kernel | None, findings: Sequence[Finding], step: Rewrite) -> list[str]:
    """What was counted: in the finding that asks for the rewrite, and of both texts; else what the rewrite is for."""
    asking = [finding for finding in findings if any(fix.rewrite == step.rewrite for fix in finding.fixes)]
    counted = outcome(kernel, after) if after is not None else []
    return [*diagnosis(asking[:1]), *counted] or sentences(step.explanation)[:2]


def without_contradictions(examples: Sequence[Example]) -> list[Example]:
    """Of those with equal questions the first, and none where their answers differ."""
    answers: dict[str, set[tuple[str, ...]]] = {}
    for each in examples:
        answers.setdefault(_asked(each), set()).add(each.rewrites)
    kept: dict[str, Example] = {}
    for each in examples:
        if len(answers[_asked(each)]) == 1:
            kept.setdefault(_asked(each), each)
    return list(kept.values())


def _asked(example: Example) -> str:
    """What is asked, in whatever order the choices stand."""
    question = example.question
    assert question is not None
    return plan_prompt(
        PlanQuestion(question.goal, question.kernel, question.findings, tuple(sorted(question.rewrites)))
    )


def _predicted_part(job: tuple[Source, Provenance], seed: str, folder: Path) -> Path:
    source, where = job
    digest = sha256(source.data).hexdigest()[:16]
    path = folder / f"{digest}.jsonl"
    if not path.exists():
        found = predicted(source, where)
        made = plan_of(found, seed) if isinstance(found, Planned) else found
        write_json_lines(path.with_suffix(".rejected"), [made] if isinstance(made, Rejected) else [])
        write_json_lines(path.with_suffix(".new"), [made] if isinstance(made, Example) else [])
        path.with_suffix(".new").rename(path)
    return path


@click.command()
@click.option("--samples", default="csrc_samples", type=click.Path(path_type=Path), show_default=True)
@click.option(
    "--measured", "table", default="benchmarks/results/optimize_cuda.json", show_default=True,
    type=click.Path(path_type=Path), help="What benchmarks/optimize.py recorded of the samples.",
)  # fmt: skip
@click.option("--variants", default=8, show_default=True, type=click.IntRange(0), help="Other names of each sample.")
@click.option("--fixtures", default="tests/rewrites/fixtures", type=click.Path(path_type=Path), show_default=True)
@click.option("--predict", default=0, show_default=True, help="Texts to predict gains for, some 20 seconds each.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="JSON lines to write.")
@click.option("--seed", default="1", show_default=True, help="The same seed gives the same examples.")
@click.option("--workers", default=os.cpu_count() or 1, show_default=True, type=click.IntRange(1), help="Processes.")
def main(
    *, samples: Path, table: Path, variants: int, fixtures: Path, predict: int, out: Path, seed: str, workers: int
) -> None:
    """Collect plans into OUT; what was not kept goes to OUT's name with .rejected.jsonl, with reasons."""
    for path in (samples, table, out.parent):
        if not path.exists():
            raise StageError(f"{path}: does not exist; run this where the repository is, or name it.")
    started = time.monotonic()
    planned = list(measured(samples, table, variants))
    with progress_bar("measured plans", len(planned)) as progress:
        found: list[Example | Rejected] = []
        for at, each in enumerate(planned, 1):
            found.append(plan_of(each, seed))
            progress(each.provenance.family, at / len(planned))
    rejected = [each.to_json() for each in found if isinstance(each, Rejected)]
    examples = [each for each in found if isinstance(each, Example)]
    parts = out.with_suffix(f".{seed}.parts")
    parts.mkdir(exist_ok=True)
    texts = list(islice(unpredicted(fixtures, seed), predict))
    with progress_bar("predicted plans", len(texts)) as progress, ProcessPoolExecutor(workers) as pool:
        for at, path in enumerate(pool.map(partial(_predicted_part, seed=seed, folder=parts), texts), 1):
            examples += read_examples(path)
            rejected += [json.loads(line) for line in path.with_suffix(".rejected").read_text("utf-8").splitlines()]
            progress(path.stem, at / len(texts))
    kept = without_contradictions(examples)
    write_json_lines(out, kept)
    lines = "".join(json.dumps(each) + "\n" for each in rejected)
    out.with_suffix(".rejected.jsonl").write_text(lines, encoding="utf-8")
    summary = {
        "kept": {f"{side}, {basis}": n for (side, basis), n in sorted(Counter(map(_kind, kept)).items())},
        "best": dict(Counter(each.rewrites[0] for each in kept).most_common()),
        "contradictory or twice": len(examples) - len(kept),
        "rejected": len(rejected),
        "minutes": round((time.monotonic() - started) / 60, 1),
    }
    click.echo(json.dumps(summary, indent=2))


def _kind(example: Example) -> tuple[str, str]:
    return example.split, example.metrics.speedup_basis


if __name__ == "__main__":
    stage(main)
