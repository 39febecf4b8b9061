"""Whether a model does better with formulas or with the text of kernels: the same requests, answered either way.

    python -m warpwright_upskill.texts make examples.jsonl --out FOLDER      # its rows and what is asked
    model/runs/away.sh texts FOLDER                                          # where the GPU is: train and answer
    python -m warpwright_upskill.texts judge examples.jsonl answers.json...  # which answers are right

Of each request whose formula one kernel computes, one example has the formula as its answer and one the kernel's text.
Asked are those of compositions that are held out. A formula is right that computes what the example's own does; a text
that nvcc takes and that computes it in the emulator at three sizes, whatever its parameters are called.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from warpwright.emulator.formula_batch import check_many
from warpwright.formulas.resolve import formula_of
from warpwright.writer.code import Code
from warpwright.writer.write import plain

from warpwright_upskill.answers import read_answers
from warpwright_upskill.console import progress_bar, stage
from warpwright_upskill.data.render import render
from warpwright_upskill.examples import FORMULA, HELD_OUT, KERNEL, Example, read_examples
from warpwright_upskill.gemma import BOS, Tokens, vocabulary_hash
from warpwright_upskill.options import find_base, model_option
from warpwright_upskill.rows import tokenise, write_rows
from warpwright_upskill.training import verdicts

WAYS = (FORMULA, KERNEL)
NAME = "f"
MOST_TOKENS = 1024
TOGETHER = 50
"""Texts that are judged in one compilation, as long as nvcc takes them."""


def both_ways(examples: Sequence[Example]) -> Iterator[Example]:
    """Each request whose formula one kernel computes, with the formula as its answer and with the kernel."""
    for each in examples:
        if each.task == FORMULA and each.cuda_kernel and (text := _text(plain(formula_of(each.formula), NAME))):
            yield replace(each, cuda_kernel="")
            problem = f"{each.problem} {each.given}".strip()
            yield replace(each, task=KERNEL, problem=problem, reasoning_steps=(), cuda_kernel=text)


def _text(code: Code) -> str:
    """The only kernel, "" where there are several."""
    return code.kernels[0].text if len(code.kernels) == 1 else ""


def right_texts(asked: Sequence[tuple[Example, str]]) -> list[bool]:
    """Whether each text computes the formula of its example."""
    codes = []
    for at, (example, text) in enumerate(asked):
        formula = formula_of(example.formula)
        code = plain(formula, f"{NAME}{at}")
        named = text.replace(f"{NAME}_kernel", code.kernels[0].name)
        if named.count("__global__") == 1 and code.kernels[0].name in named:
            kernel = replace(code.kernels[0], text=named)
            codes.append((str(at), formula, replace(code, kernels=(kernel,))))
    right = {each.name for each in check_many(codes) if each.status == "correct"}
    return [str(at) in right for at in range(len(asked))]


@click.group(help=__doc__)
def main() -> None:
    pass


@main.command()
@click.argument("examples", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True)
@model_option
def make(examples: Path, out: Path, model: str | None) -> None:
    """Write the tokens of both kinds of examples, and of the requests that are asked."""
    gguf = find_base(model).path
    found = list(both_ways(read_examples(examples)))
    tokens = Tokens(gguf)
    rows, left_out = tokenise(found, tokens, MOST_TOKENS + 512)
    asked = {
        task: {each.id: render(each) for each in found if each.split == HELD_OUT and each.task == task} for task in WAYS
    }
    out.mkdir(parents=True, exist_ok=True)
    vocabulary = vocabulary_hash(gguf)[0]
    write_rows(rows, vocabulary, out / "examples.rows")
    for task, held in asked.items():
        prompts = {name: [BOS, *tokens.encode(each.prompt)] for name, each in held.items() if each is not None}
        said = {"vocabulary": vocabulary, "shown": "", "prompts": prompts}
        (out / f"{task}.json").write_text(json.dumps(said), encoding="utf-8")
    tokens.close()
    click.echo(f"{out}: {len(rows)} rows, {len(asked[FORMULA])} requests; left out: {left_out or 'none'}")


@main.command()
@click.argument("examples", type=click.Path(path_type=Path))
@click.argument("answers", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--workers", default=2, show_default=True, type=click.IntRange(1), help="Processes.")
def judge(examples: Path, answers: tuple[Path, ...], out: Path | None, workers: int) -> None:
    """Count the right ANSWERS of several runs, at the first try and within all."""
    held = {each.id: each for each in both_ways(read_examples(examples)) if each.split == HELD_OUT}
    table = Table("run", "answers", "asked", "right at first", "within", "tries")
    counts = []
    for path in answers:
        settings, said = read_answers(path)
        tried = [(held[name], text) for name, texts in said.items() if name in held for text in dict.fromkeys(texts)]
        with progress_bar(path.stem, len(tried)) as progress, ProcessPoolExecutor(workers) as pool:
            groups = [tried[at : at + TOGETHER] for at in range(0, len(tried), TOGETHER)]
            right = set()
            for at, (group, verdict) in enumerate(zip(groups, pool.map(_right, groups), strict=True)):
                right |= {(each.id, text) for (each, text), ok in zip(group, verdict, strict=True) if ok}
                progress(f"{len(right)} right", (at + 1) / len(groups))
        for task in WAYS:
            of_task = {name: texts for name, texts in said.items() if name in held and held[name].task == task}
            if not of_task:
                continue
            first = sum((name, texts[0]) in right for name, texts in of_task.items())
            within = sum(any((name, text) in right for text in texts) for name, texts in of_task.items())
            counts.append((path.stem, task, len(of_task), first, within, settings["tries"]))
            table.add_row(*map(str, counts[-1]))
    Console().print(table)
    if out is not None:
        named = [
            dict(zip(("run", "answers", "asked", "first", "within", "tries"), each, strict=True)) for each in counts
        ]
        out.write_text(json.dumps(named, indent=2) + "\n", encoding="utf-8")


def _right(asked: Sequence[tuple[Example, str]]) -> list[bool]:
    texts = [each for each in asked if each[0].task == KERNEL]
    right = dict(zip(map(id, texts), right_texts(texts), strict=True))
    return [
        right[id(each)] if each[0].task == KERNEL else verdicts.judge(FORMULA, each[0].formula, each[1]).right
        for each in asked
    ]


if __name__ == "__main__":
    stage(main)
