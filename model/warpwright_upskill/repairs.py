"""Collect repairs: mistakes that are made in kernels that are right, each with what nvcc or the emulator says of it.

    python -m warpwright_upskill.repairs --count 600 --out repairs.jsonl

Kernels are those that the writer makes of sampled formulas, plainly and as the product writes them. A mistake of which
no tool says anything is no example. The repair is the text before. Families of HELD_OUT_FAMILIES are never trained on.
Finished parts are kept beside OUT until all are there, so that a run that was stopped goes on.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from random import Random

import click
from warpwright.assist.blocks import Proposal, read_blocks
from warpwright.assist.prompts import one_line
from warpwright.assist.repair_task import edits_between, repair_answer
from warpwright.facts.analyze import analyze
from warpwright.formulas.sampler import FAMILIES, Sample, samples
from warpwright.missing import Missing
from warpwright.syntax.source import Source
from warpwright.toolchain.find import find_toolchain
from warpwright.writer.scatter import ScatterError

from warpwright_upskill.bugs import COMPILE, RUN, Bug, bugs_of
from warpwright_upskill.console import StageError, fail, progress_bar, stage
from warpwright_upskill.examples import (
    DEV,
    HELD_OUT,
    REPAIR,
    TRAIN,
    Example,
    Metrics,
    Provenance,
    Rejected,
    read_examples,
    write_json_lines,
)
from warpwright_upskill.symptoms import FORMS, Verdict, Written, verdicts

HELD_OUT_FAMILIES = frozenset({"row reduction", "stencil", "gather", "loss", "mask"})
DEV_FAMILIES = frozenset({"integers", "quantisation"})
LONGEST_KERNEL = 2400
"""Characters: a prompt with its answer stays inside of what is trained on at once."""
BUGS = 4
"""Of one kernel."""
PART = len(FAMILIES)
"""Formulas of one part: one of each family."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A kernel with one mistake in it."""

    written: Written
    bug: Bug
    right: str
    family: str
    seed: str


def split_of(family: str) -> str:
    return HELD_OUT if family in HELD_OUT_FAMILIES else DEV if family in DEV_FAMILIES else TRAIN


def broken_kernels(found: Sequence[tuple[int, Sample]], seed: str) -> Iterator[Broken]:
    """Kernels of some numbered formulas, each with up to BUGS mistakes of different kinds, one in each text."""
    for number, sample in found:
        for form in FORMS:
            try:
                names = [each.name for each in _named(sample, form, f"{number}x0").code().kernels]
            except ScatterError:
                continue
            for place, name in enumerate(names):
                yield from _of_kernel(sample, form, number, place, name, seed)


def _of_kernel(sample: Sample, form: str, number: int, place: int, name: str, seed: str) -> Iterator[Broken]:
    random = Random(f"{seed}/{number}/{form}/{place}")
    own = Written(sample.text, form, _name(sample, f"{number}x0"), name)
    kinds = sorted({bug.kind for bug in bugs_of(own.text())})
    for nth, kind in enumerate(random.sample(kinds, min(BUGS, len(kinds)))):
        # Each has a name of its own, so that many are compiled at once.
        each = _named(sample, form, f"{number}x{(2 * place + (form == 'plain')) * BUGS + nth}")
        each = Written(each.formula, form, each.name, each.code().kernels[place].name)
        right = each.text()
        made = [bug for bug in bugs_of(right) if bug.kind == kind]
        if made and len(right) <= LONGEST_KERNEL:
            yield Broken(each, random.choice(made), right, sample.family, f"{seed}/{number}")


def _named(sample: Sample, form: str, number: str) -> Written:
    return Written(sample.text, form, _name(sample, number), "")


def _name(sample: Sample, number: str) -> str:
    return f"{sample.family.replace(' ', '_')}_{number}"


def examples_of(broken: Sequence[Broken]) -> list[Example | Rejected]:
    """The examples that tools confirm, of kernels that compute their formulas without the mistake."""
    whole = {(each.written.formula, each.written.form): each.written for each in broken}
    right = [replace(each, name=f"{each.name.partition('x')[0]}y{each.form}", kernel="") for each in whole.values()]
    judged = zip(whole, verdicts([(each, "") for each in right]), strict=True)
    sound = {which for which, verdict in judged if verdict.status == "correct"}
    broken = [each for each in broken if (each.written.formula, each.written.form) in sound]
    found: list[Example | Rejected] = []
    for shows in (COMPILE, RUN):
        some = [each for each in broken if each.bug.shows == shows]
        said = verdicts([(each.written, each.bug.text) for each in some])
        found += [_example(each, verdict) for each, verdict in zip(some, said, strict=True)]
    return found


def _example(broken: Broken, verdict: Verdict) -> Example | Rejected:
    bug = broken.bug
    origin = Provenance("sampler", broken.family, f"{broken.written.form} {bug.kind}", "", broken.seed)
    if verdict.status not in ("wrong", "does-not-compile"):
        reason = verdict.said[0] if verdict.said else "No tool says anything of it."
        return Rejected(REPAIR, origin, f"{bug.kind}: {verdict.status}. {reason}")
    edits = edits_between(bug.text, broken.right)
    kernels = analyze(Source("kernel.cu", bug.text.encode())).defined_kernels
    proposal = read_blocks(repair_answer(bug.why, edits), kernels[0]) if kernels else "there is no kernel in it"
    if not isinstance(proposal, Proposal):
        return Rejected(REPAIR, origin, f"{bug.kind}: the server would not take the repair: {proposal}.")
    by = "nvcc" if verdict.status == "does-not-compile" else "the emulator beside the formula"
    return Example(
        task=REPAIR,
        problem=f"Fix {broken.written.kernel}.",
        provenance=origin,
        metrics=Metrics("correct", by, runs=verdict.runs),
        reasoning_steps=(bug.why,),
        formula=broken.written.formula,
        cuda_kernel=broken.right,
        kernel=broken.written.kernel,
        source=bug.text,
        message="\n".join(one_line(each) for each in verdict.said),
        edits=edits,
        split=split_of(broken.family),
    )


def repaired_answer(example: Example) -> str:
    """The answer that an example teaches."""
    return repair_answer(example.reasoning_steps[0], example.edits)


def written_of(example: Example) -> Written:
    """The code that an example's kernel is of."""
    form = example.provenance.structure.partition(" ")[0]
    name = re.match(r"[a-z_]+_\d+x\d+", example.kernel)
    assert name is not None, example.kernel
    return Written(example.formula, form, name[0], example.kernel)


def _part(job: tuple[int, int, str, Path]) -> Path:
    """Makes a part, where it is not there yet: some formulas from the number `first` on."""
    first, count, seed, path = job
    if not path.exists():
        found = list(islice(samples(seed), first, first + count))
        made = examples_of(list(broken_kernels(list(enumerate(found, first)), seed)))
        rejected = [each for each in made if isinstance(each, Rejected)]
        write_json_lines(path.with_suffix(".rejected"), rejected)
        write_json_lines(path.with_suffix(".new"), [each for each in made if isinstance(each, Example)])
        path.with_suffix(".new").rename(path)
    return path


@click.command()
@click.option("--count", default=600, show_default=True, type=click.IntRange(1), help="Formulas to break kernels of.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="JSON lines to write.")
@click.option("--seed", default="1", show_default=True, help="The same seed gives the same examples.")
@click.option("--workers", default=os.cpu_count() or 1, show_default=True, type=click.IntRange(1), help="Processes.")
def main(*, count: int, out: Path, seed: str, workers: int) -> None:
    """Collect verified repairs into OUT; what was not kept goes to OUT's name with .rejected.jsonl, with reasons."""
    if isinstance(missing := find_toolchain(), Missing):
        raise StageError(f"{missing} Nothing is collected that no tool has seen.")
    if not out.parent.is_dir():
        fail(f"{out.parent}: no such folder; make it first.")
    parts = out.with_suffix(f".{seed}.parts")
    parts.mkdir(exist_ok=True)
    jobs = [
        (at, min(PART, count - at), seed, parts / f"{at}-{min(PART, count - at)}.jsonl") for at in range(0, count, PART)
    ]
    started = time.monotonic()
    with progress_bar("breaking kernels", count) as progress, ProcessPoolExecutor(workers) as pool:
        for at, path in enumerate(pool.map(_part, jobs), 1):
            progress(path.stem, at / len(jobs))
    examples = [example for *_, path in jobs for example in read_examples(path)]
    rejected = [line for *_, path in jobs for line in path.with_suffix(".rejected").read_text("utf-8").splitlines()]
    write_json_lines(out, {each.id: each for each in examples}.values())
    out.with_suffix(".rejected.jsonl").write_text("".join(f"{line}\n" for line in rejected), encoding="utf-8")
    minutes = (time.monotonic() - started) / 60
    kinds = Counter(each.provenance.structure.partition(" ")[2] for each in examples)
    summary = {
        "kept": dict(Counter(each.split for each in examples)),
        "kinds": dict(sorted(kinds.items())),
        "rejected": len(rejected),
        "kernels a minute": round((len(examples) + len(rejected)) / minutes),
        "workers": workers,
    }
    click.echo(json.dumps(summary, indent=2))


if __name__ == "__main__":
    stage(main)
