"""Collect training examples that the product's own ladder has verified.

    python -m warpwright_upskill.collect --samples csrc_samples --out examples.jsonl

Sources are the samples and the examples on the pages of rules and rewrites, each as it stands and in variants. From
each come:

- plan: a kernel, what was counted in it, and the rewrite for its goal, kept if verification would let the server
  offer the result;
- kernel: what a kernel computes, and a kernel without findings that does.

Nothing is kept that does not compile. What is not kept is written beside the examples with its reason.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import click
from warpwright.assist.generate import read_draft
from warpwright.assist.plan import plan_question
from warpwright.assist.prompts import generate_answer
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Kernel, Program
from warpwright.missing import Missing
from warpwright.progress import Progress, silent
from warpwright.rewrites.base import Rewrite
from warpwright.rewrites.registry import all_rewrites, applicable, find_rewrite
from warpwright.rules.base import Finding, Severity
from warpwright.rules.registry import run_rules
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import descendants
from warpwright.syntax.source import Source
from warpwright.toolchain.compilation import Compiled
from warpwright.toolchain.compile import compile_cubin
from warpwright.toolchain.find import find_toolchain
from warpwright.verify.acceptable import acceptable
from warpwright.verify.verify import verify

from warpwright_upskill.console import StageError, fail, progress_bar, stage
from warpwright_upskill.estimate import bound_speedup
from warpwright_upskill.examples import (
    HELD_OUT,
    KERNEL,
    PLAN,
    TRAIN,
    Example,
    Metrics,
    Provenance,
    Question,
    Rejected,
    held_out_groups,
    write_json_lines,
)
from warpwright_upskill.render import plan_refusal
from warpwright_upskill.sources import Origin, page_origins, sample_origins
from warpwright_upskill.variants import vary
from warpwright_upskill.words import CONSTRAINTS, GOALS, design, diagnosis, outcome, sentences

Result = Example | Rejected


@dataclass(frozen=True, slots=True)
class Text:
    """One text to take examples from, analysed and compiled."""

    origin: Origin
    provenance: Provenance
    program: Program
    compiled: Compiled

    def findings(self, kernel: Kernel) -> list[Finding]:
        return [finding for finding in run_rules(self.program) if finding.kernel == kernel.name]


def collect(origins: Sequence[Origin], variants: int, seed: int, progress: Progress = silent) -> Iterator[Result]:
    """Examples and rejections of all origins, each origin as it stands and in up to `variants` other texts."""
    for at, origin in enumerate(origins):
        progress(origin.provenance.group, at / len(origins))
        plain = analyze(origin.source)
        texts = [(origin.source, origin.provenance)]
        for kernel in plain.defined_kernels[:1]:
            for variant in vary(kernel, origin.source, variants, seed):
                texts.append((variant.source, replace(origin.provenance, structure=variant.how)))
        for source, provenance in texts:
            compiled = compile_cubin(source)
            if compiled.ok:
                yield from _examples(Text(origin, provenance, analyze(source), compiled), seed)
            else:
                yield Rejected(PLAN, provenance, f"The text does not compile: {compiled.reason}")
    progress("done", 1.0)


def _examples(text: Text, seed: int) -> Iterator[Result]:
    clean: list[tuple[Program, str]] = []
    for kernel in text.program.defined_kernels:
        for goal in ("speed", "memory", "fix"):
            for rewrite in applicable(kernel, goal):
                result = _rewritten(text, kernel, rewrite, goal=goal, seed=seed)
                yield result
                if isinstance(result, Example):
                    clean.append((analyze(rewrite.apply()), kernel.name))
        clean.append((text.program, kernel.name))
    if text.origin.problem:
        yield _written(text, clean)


def _rewritten(text: Text, kernel: Kernel, rewrite: Rewrite, *, goal: str, seed: int) -> Result:
    """The example that a rewrite of a kernel makes, if the server would offer its result."""
    findings = text.findings(kernel)
    marked = [f for f in findings if any(fix.rewrite == rewrite.rewrite for fix in f.fixes)]
    if not marked:
        return Rejected(PLAN, text.provenance, f"{rewrite.rewrite}: no finding asks for it")
    candidate = rewrite.apply()
    report = verify(text.program.source, candidate, kernel=kernel.name, goal=goal, expect_gone=marked[0])
    if not acceptable(report, goal):
        return Rejected(PLAN, text.provenance, f"{rewrite.rewrite}: {report.reason or report.to_json()['status']}")
    after = analyze(candidate).kernel(kernel.name)
    if after is None:
        return Rejected(PLAN, text.provenance, f"{rewrite.rewrite}: {kernel.name} is no longer in the text.")
    choices = with_decoys(rewrite, applicable(kernel, goal), kernel, seed)
    asked = plan_question(kernel, findings, choices, goal)
    given = report.to_json()
    example = Example(
        task=PLAN,
        problem=" ".join((GOALS[goal].format(kernel.name), text.origin.problem)).strip(),
        constraints=CONSTRAINTS[goal],
        reasoning_steps=(
            *diagnosis((marked or findings)[:1]),
            f"So {rewrite.rewrite}.",
            *outcome(kernel, after),
            *sentences(rewrite.explanation),
        ),
        cuda_kernel=after.span.text,
        kernel=kernel.name,
        provenance=text.provenance,
        metrics=_metrics(given, *_speedup(given, kernel, after, goal)),
        question=Question(asked.goal, asked.kernel, asked.findings, asked.rewrites),
        source=text.program.source.text(),
        rewrites=(rewrite.rewrite,),
    )
    unreadable = plan_refusal(example)
    return Rejected(PLAN, text.provenance, f"{rewrite.rewrite}: {unreadable}") if unreadable else example


def with_decoys(rewrite: Rewrite, found: Sequence[Rewrite], kernel: Kernel, seed: int) -> list[Rewrite]:
    """The choices to ask about: those that apply, and all others by name and title, shuffled.

    The server names only what applies, often one rewrite alone, and one choice teaches and tests nothing. All have
    the rewrite's general title, since one that names the kernel's own arrays would give the answer away. A decoy's
    edits are empty; it is only ever read as a name.
    """
    known = {r.rewrite for r in found}
    # Others that apply are left out: two right answers to one question make it no question.
    decoys = [
        Rewrite(kind.name, kind.title, kernel.source, (), kind.summary)
        for kind in all_rewrites()
        if kind.name not in known
    ]
    choices = [replace(rewrite, title=_general_title(rewrite.rewrite)), *decoys]
    text = sha256(kernel.source.data).hexdigest()
    Random(f"{seed}:{kernel.name}:{rewrite.rewrite}:{text}").shuffle(choices)
    return choices


def _general_title(name: str) -> str:
    kind = find_rewrite(name)
    return kind.title if kind is not None else name


def _speedup(report: dict[str, Any], before: Kernel, after: Kernel, goal: str) -> tuple[float, str]:
    """Measured at the user's own launch where a GPU timed it, else the bound from the counts, else 1."""
    timed = report["speed"]
    if timed:
        return max(1.0, round(float(timed[0]["speedup"]), 2)), "measured"
    bound = bound_speedup(before, after) if goal == "speed" else None
    return (round(bound, 2), "counted") if bound is not None and bound > 1 else (1.0, "none")


def _metrics(report: dict[str, Any], speedup: float, basis: str) -> Metrics:
    """The highest rung that a verification report names, in the report's own words where it goes no higher."""
    compiled = report["compile"] or {}
    resources = {name: value for name, value in compiled.items() if type(value) is int}
    return Metrics(
        level=report["levels"][-1],
        by=f"warpwright verify, run on: {report['backend']}",
        compiler=compiled.get("compiler", ""),
        resources=resources or None,
        not_higher=report["reason"],
        speedup=speedup,
        speedup_basis=basis,
    )


def _written(text: Text, candidates: Sequence[tuple[Program, str]]) -> Result:
    """The example of writing this kernel: its first text that has no finding, made to stand alone."""
    reason = "There is no kernel in the text."
    for program, name in candidates:
        kernel = program.kernel(name)
        if kernel is None or kernel.node is None:
            continue
        found = [f for f in run_rules(program) if f.kernel == name and f.severity in (Severity.ERROR, Severity.WARNING)]
        if found:
            reason = f"{name} still has {found[0].rule} ({found[0].message})."
            continue
        alone = standalone(kernel)
        compiled = compile_cubin(Source(f"{name}.cu", alone.encode()))
        if not compiled.ok:
            reason = f"{name} does not compile without the rest of its file: {compiled.reason}"
            continue
        constraints = [f"The kernel is named {name}."]
        constraints += [f"Elements are {kind}." for kind in element_types(kernel)]
        steps = tuple(design(kernel))
        draft = read_draft(generate_answer(steps, alone))
        if not draft.shown or draft.code != alone.strip():
            reason = f"The server would not show {name} as a draft: {draft.reason or 'it is more than one function'}."
            continue
        return Example(
            task=KERNEL,
            problem=text.origin.problem,
            constraints=tuple(constraints),
            reasoning_steps=steps,
            cuda_kernel=alone,
            kernel=name,
            provenance=text.provenance,
            metrics=_compiled(compiled, name, "re-analysed"),
        )
    return Rejected(KERNEL, text.provenance, reason)


def element_types(kernel: Kernel) -> list[str]:
    """The element types of a kernel's pointers, each once, without const and other qualifiers."""
    kinds: list[str] = []
    for parameter in kernel.parameters:
        if parameter.is_pointer:
            plain = re.sub(r"\b(const|volatile|__restrict__|restrict)\b|[*&]", " ", parameter.type)
            words = plain.split()
            kinds.append(" ".join(words[:-1] if words[-1:] == [parameter.name] else words))
    return [kind for kind in dict.fromkeys(kinds) if kind]


def standalone(kernel: Kernel) -> str:
    """The kernel's text with the file's integer constants that it reads declared in its body.

    For example `constexpr int TILE = 32;` above the kernel becomes the body's first line.
    """
    source, node = kernel.source, kernel.node
    body = node.child_by_field_name("body") if node is not None else None
    if node is None or body is None:
        return kernel.span.text
    used = {source.node_text(n) for n in descendants(node, "identifier")}
    lines = [f"\n    constexpr int {name} = {value};" for name, value in _constants(source) if name in used]
    start = kernel.span.start
    text = source.data[start : kernel.span.end]
    edit = TextEdit(body.start_byte + 1 - start, body.start_byte + 1 - start, "".join(lines))
    return Source(source.path, text).edited([edit]).text()


def _constants(source: Source) -> Iterator[tuple[str, str]]:
    for declaration in source.root.children:
        if declaration.type != "declaration" or not source.node_text(declaration).lstrip().startswith("constexpr int"):
            continue
        for init in descendants(declaration, "init_declarator"):
            name, value = init.child_by_field_name("declarator"), init.child_by_field_name("value")
            if name is not None and value is not None:
                yield source.node_text(name), source.node_text(value)


def _compiled(compiled: Compiled, kernel: str, level: str) -> Metrics:
    instances = compiled.instances(kernel)
    resources = None
    if instances:
        first = instances[0]
        resources = {
            "registers": first.registers,
            "spill_store_bytes": first.spill_store_bytes,
            "spill_load_bytes": first.spill_load_bytes,
            "shared_bytes": first.shared_bytes,
        }
    return Metrics(level, "analysis and compiler", compiled.compiler, resources, "It was not run.")


def split(examples: Sequence[Example], share: float) -> list[Example]:
    """The examples with their side of the split.

    All that come from one source text stand on one side. Sources are split apart by the most telling rewrite that
    they lead to, so that each is trained on and asked about where there are two sources for it.
    """
    frequency = Counter(name for example in examples for name in example.rewrites)
    subjects: dict[str, str] = {}
    for example in examples:
        subject = min(
            (subjects.get(example.provenance.group, ""), *example.rewrites), key=lambda n: frequency[n] or 1e9
        )
        subjects[example.provenance.group] = subject
    held = held_out_groups(subjects, share)
    return [replace(e, split=HELD_OUT if e.provenance.group in held else TRAIN) for e in examples]


def unique(results: Sequence[Result]) -> list[Result]:
    """Without examples that say what an earlier one says."""
    seen: set[str] = set()
    kept: list[Result] = []
    for result in results:
        if isinstance(result, Example):
            if result.id in seen:
                continue
            seen.add(result.id)
        kept.append(result)
    return kept


@click.command()
@click.option("--samples", type=click.Path(path_type=Path), multiple=True, help="Folder of samples; may be repeated.")
@click.option("--no-pages", is_flag=True, help="Leave out the examples of rules and rewrites.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="JSON lines to write.")
@click.option("--variants", default=4, show_default=True, type=click.IntRange(0), help="Other texts of each kernel.")
@click.option("--held-out", default=0.2, show_default=True, type=click.FloatRange(0, 0.9), help="Share of sources.")
@click.option("--seed", default=0, show_default=True)
def main(*, samples: tuple[Path, ...], no_pages: bool, out: Path, variants: int, held_out: float, seed: int) -> None:
    """Collect verified examples into OUT; what was not kept goes to OUT's name with .rejected.jsonl, with reasons."""
    toolchain = find_toolchain()
    if isinstance(toolchain, Missing):
        raise StageError(f"{toolchain} Nothing is collected that was not compiled.")
    origins = [origin for folder in samples for origin in sample_origins(folder)]
    origins += [] if no_pages else list(page_origins())
    if not origins:
        fail("There is nothing to collect from: give --samples, or leave out --no-pages.")
    if not out.parent.is_dir():
        fail(f"{out.parent}: no such folder; make it first.")
    with progress_bar("collecting", len(origins)) as progress:
        results = unique(list(collect(origins, variants, seed, progress)))
    examples = split([r for r in results if isinstance(r, Example)], held_out)
    rejected = [r for r in results if isinstance(r, Rejected)]
    write_json_lines(out, examples)
    write_json_lines(out.with_suffix(".rejected.jsonl"), rejected)
    counts = Counter((example.task, example.split) for example in examples)
    summary = {
        "kept": {f"{task}, {side}": count for (task, side), count in sorted(counts.items())},
        "levels": dict(sorted(Counter(example.metrics.level for example in examples).items())),
        "speedups": dict(sorted(Counter(example.metrics.speedup_basis for example in examples).items())),
        "rejected": len(rejected),
        "compiler": f"nvcc {toolchain.version}",
    }
    click.echo(json.dumps(summary, indent=2))
    if not examples:
        fail(f"No example passed; {out.with_suffix('.rejected.jsonl')} says why.")


if __name__ == "__main__":
    stage(main)
