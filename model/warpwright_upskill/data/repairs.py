"""Repairs: mistakes that are made in kernels that are right, each with what nvcc or the emulator says of it.

Kernels are those that the writer makes of sampled formulas, plainly and as the product writes them. A mistake of which
no tool says anything is no example. The repair is the text before. Families of HELD_OUT_FAMILIES are never trained on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from random import Random

from warpwright.assist.blocks import Proposal, read_blocks
from warpwright.assist.prompts import one_line
from warpwright.assist.repair_task import edits_between, repair_answer
from warpwright.facts.analyze import analyze
from warpwright.formulas.sampler import FAMILIES, Sample, samples
from warpwright.syntax.source import Source
from warpwright.writer.scatter import ScatterError

from warpwright_upskill.data.bugs import COMPILE, RUN, Bug, bugs_of
from warpwright_upskill.data.symptoms import FORMS, Verdict, Written, verdicts
from warpwright_upskill.examples import (
    DEV,
    HELD_OUT,
    REPAIR,
    TRAIN,
    Example,
    Jobs,
    Metrics,
    Provenance,
    Rejected,
    in_parts,
)

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


def repair_jobs(formulas: int, seed: str) -> Jobs:
    return in_parts("repairs", formulas, PART, partial(part, seed=seed))


def part(first: int, count: int, *, seed: str) -> list[Example | Rejected]:
    """The examples of some formulas from the number `first` on, and what was rejected."""
    found = islice(samples(seed), first, first + count)
    return examples_of(list(broken_kernels(list(enumerate(found, first)), seed)))


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


def written_of(example: Example) -> Written:
    """The code that an example's kernel is of."""
    form = example.provenance.structure.partition(" ")[0]
    name = re.match(r"[a-z_]+_\d+x\d+", example.kernel)
    assert name is not None, example.kernel
    return Written(example.formula, form, name[0], example.kernel)
