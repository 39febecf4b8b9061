"""Plans: which of the rewrites that apply to a kernel gains most.

Kernels are the samples, with what each rewrite gained on a GPU where that was recorded, also by other names; and
cases of the rewrites and kernels that the writer makes plainly, with what the cost model predicts for
candidates that are right. Choices are the rewrites that apply, shuffled. What gains nothing is no plan, and
of equal questions with different answers none is kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from warpwright.assist.plan import plan_question
from warpwright.assist.prompts import PlanQuestion, plan_prompt
from warpwright.facts.analyze import analyze
from warpwright.formulas.resolve import formula_of
from warpwright.formulas.sampler import samples as formulas
from warpwright.optimize.rank import MEASURED_NOISE, PREDICTED_NOISE
from warpwright.rewrites.registry import applicable
from warpwright.rules.registry import run_rules
from warpwright.syntax.source import Source, read_source
from warpwright.verify.report import PASSED
from warpwright.verify.verify import verify
from warpwright.writer.scatter import ScatterError
from warpwright.writer.write import file_text, plain

from warpwright_upskill.data.reasons import reasons
from warpwright_upskill.data.renaming import renamed
from warpwright_upskill.data.render import plan_refusal
from warpwright_upskill.examples import (
    DEV,
    HELD_OUT,
    PLAN,
    TRAIN,
    Example,
    Jobs,
    Metrics,
    Provenance,
    Question,
    Rejected,
)

HELD_OUT_FAMILIES = frozenset({"attention", "memory", "scans"})
DEV_FAMILIES = frozenset({"gathers"})
GOAL = "speed"
CONSTRAINTS = ("The results stay the same.", "It is faster at the shapes of the launch and slower at no other.")
MOST_NAMED = 3
"""Rewrites in one answer."""
MEASURED, PREDICTED = "measured", "predicted"
_CASE = re.compile(r"^## (\S+)\n\n```cuda\n(.*?)```$", re.MULTILINE | re.DOTALL)
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


def measured_jobs(folder: Path, table: Path, names: int, seed: str) -> Jobs:
    """The samples with what was recorded of each first step, as they stand and under other names."""
    jobs: Jobs = {}
    for row in json.loads(table.read_text(encoding="utf-8"))["kernels"]:
        first = [each for each in row["candidates"] if len(each["rewrites"]) == 1]
        gains = {each["rewrites"][0]: _recorded(each) for each in first}
        text = read_source(folder / row["kernel"] / "kernel.cu").data
        source = Source(f"{folder.name}/{row['kernel']}/kernel.cu", text)
        digest = sha256(repr((sorted(gains.items()), text)).encode()).hexdigest()[:16]
        jobs[f"measured-{digest}-{names}"] = partial(measured, source, row["kernel"], gains, names, seed)
    return jobs


def measured(
    source: Source, sample: str, gains: Mapping[str, float], names: int, seed: str
) -> list[Example | Rejected]:
    """The plans for the first kernel of a sample, as it stands and under so many other names."""
    (kernel,) = analyze(source).defined_kernels[:1]
    found = [plan_of(Planned(source, kernel.name, gains, MEASURED, Provenance("sample", sample)), seed)]
    where = Provenance("sample", sample, "renamed")
    for text, name in renamed(kernel, names, seed):
        found.append(plan_of(Planned(text, name, gains, MEASURED, where), seed))
    return found


def _recorded(candidate: Mapping[str, Any]) -> float:
    return float(candidate["speedups"][0]) if candidate["may_be_offered"] and candidate["speedups"] else 1.0


def predicted_jobs(cases: Path, count: int, seed: str) -> Jobs:
    texts = islice(unpredicted(cases, seed), count)
    return {
        f"predicted-{sha256(source.data).hexdigest()[:16]}": partial(predicted, source, where, seed)
        for source, where in texts
    }


def predicted(source: Source, where: Provenance, seed: str) -> list[Example | Rejected]:
    found = prediction(source, where)
    return [plan_of(found, seed) if isinstance(found, Planned) else found]


def unpredicted(cases: Path, seed: str) -> Iterator[tuple[Source, Provenance]]:
    """Texts with kernels to which several rewrites apply: a case of a rewrite and a formula in turn."""
    texts = {
        f"{file.stem}/{name}": text
        for file in cases.glob("*.md")
        for name, text in _CASE.findall(file.read_text(encoding="utf-8"))
    }
    sampled = enumerate(formulas(seed))
    for name in sorted(texts, key=lambda name: sha256(f"{seed}/{name}".encode()).hexdigest()):
        yield Source(f"{name}.cu", texts[name].encode()), Provenance("rewrite", name)
        number, sample = next(sampled)
        try:
            code = plain(formula_of(sample.text), f"{sample.family.replace(' ', '_')}_{number}")
        except ScatterError:
            continue
        yield (
            Source("formula.cu", file_text(code).encode()),
            Provenance("sampler", sample.family, seed=f"{seed}/{number}"),
        )


def prediction(source: Source, where: Provenance) -> Planned | Rejected:
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
    after = analyze(candidate).kernel(best.beside or kernel.name)
    example = Example(
        task=PLAN,
        problem=f"Make the kernel {kernel.name} run faster.",
        provenance=planned.provenance,
        metrics=Metrics(
            level="faster" if planned.basis == MEASURED else "correct",
            by="an H200" if planned.basis == MEASURED else "the emulator and the cost model",
            speedup=round(planned.gains[chosen[0]], 2),
            speedup_basis=planned.basis,
            scores={name: round(gain, 3) for name, gain in sorted(planned.gains.items())},
        ),
        constraints=CONSTRAINTS,
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
