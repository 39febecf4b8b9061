"""Examples as token ids, which is what is trained on: made once, kept in one compact file.

    python -m warpwright_upskill.rows examples.jsonl --out examples.rows

Where llama.cpp is not installed (a training machine), a file of rows is all that `train` needs beside the weights.
"""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from warpwright.formulas.lexer import FormulaError
from warpwright.progress import Progress, silent

from warpwright_upskill.console import StageError, progress_bar, stage
from warpwright_upskill.data.neighbours import neighbours
from warpwright_upskill.data.poison import poison
from warpwright_upskill.data.render import render
from warpwright_upskill.examples import SPLITS, TASKS, TRAIN, Example, read_examples
from warpwright_upskill.gemma import BOS, EOS, Tokens, vocabulary_hash
from warpwright_upskill.options import find_base, model_option

PRETRAIN = "pretrain"
"""The task of rows that are a kernel's text alone."""


@dataclass(frozen=True, slots=True)
class Row:
    """Token ids of one example; the loss is on ids[answer_at:], the answer and its end of sequence."""

    id: str
    task: str
    ids: tuple[int, ...]
    answer_at: int
    split: str = TRAIN

    @property
    def prompt(self) -> tuple[int, ...]:
        return self.ids[: self.answer_at]

    @property
    def answer(self) -> tuple[int, ...]:
        return self.ids[self.answer_at :]


def tokenise(
    examples: Sequence[Example], tokens: Tokens, max_tokens: int, progress: Progress = silent, shown: float = 0.0
) -> tuple[list[Row], dict[str, int]]:
    """Rows of the examples that can be trained on, and how many could not, by reason.

    Prompt and answer are tokenised apart, as at inference, where the prompt's last token is fixed before the answer.
    A training example with a kernel gives one more row, the kernel's text. `shown` is the share of formulas whose
    prompt shows a neighbour.
    """
    rows: list[Row] = []
    left_out: Counter[str] = Counter()
    kernels: set[str] = set()
    for number, (example, neighbour) in enumerate(zip(examples, neighbours(examples, shown), strict=True)):
        if number % 500 == 0:
            progress(f"{number} of {len(examples)} examples", number / len(examples))
        if reason := poison(example):
            left_out[reason] += 1
            continue
        try:
            rendered = render(example, neighbour)
        except FormulaError as error:
            left_out[f"its formula is none: {error.reason}"] += 1
            continue
        if rendered is None:
            left_out["the server asks no such question"] += 1
        elif not rendered.answer.strip():
            left_out["the answer is empty"] += 1
        else:
            prompt = [BOS, *tokens.encode(rendered.prompt)]
            row = Row(
                example.id, example.task, (*prompt, *tokens.encode(rendered.answer), EOS), len(prompt), example.split
            )
            if len(row.ids) > max_tokens:
                left_out[f"longer than {max_tokens} tokens"] += 1
            else:
                rows.append(row)
        kernel = example.cuda_kernel
        if example.split == TRAIN and kernel and kernel not in kernels:
            kernels.add(kernel)
            ids = (BOS, *tokens.encode(kernel), EOS)
            if len(ids) <= max_tokens:
                rows.append(Row(example.id, PRETRAIN, ids, 1))
    return rows, dict(left_out)


def write_rows(rows: Sequence[Row], vocabulary: str, path: Path) -> None:
    """`vocabulary` is the `vocabulary_hash` of the model whose tokens they are. The file is whole or not there."""
    import numpy as np

    heads = [(row.id, row.task, row.split) for row in rows]
    unfinished = path.with_name(f".{path.name}.part")
    with unfinished.open("wb") as file:
        np.savez_compressed(
            file,
            heads=np.frombuffer(json.dumps([vocabulary, *heads]).encode(), dtype=np.uint8),
            ids=np.array([each for row in rows for each in row.ids], dtype=np.int32),
            lengths=np.array([len(row.ids) for row in rows], dtype=np.int32),
            answers=np.array([row.answer_at for row in rows], dtype=np.int32),
        )
    unfinished.replace(path)


def read_rows(path: Path, vocabulary: str, size: int) -> list[Row]:
    """The rows in `path`, each checked. Raises StageError for a file of another vocabulary, or a row that is none.

    `size` is the number of tokens of the model.
    """
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as file:
            of, *heads = json.loads(file["heads"].tobytes())
            ids, lengths, answers = (file[name].tolist() for name in ("ids", "lengths", "answers"))
    except OSError as error:
        raise StageError(f"{path}: cannot be read ({error.strerror or error}); `rows` writes it.") from None
    except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
        raise StageError(f"{path}: is no file of rows; `rows` writes it.") from None
    if of != vocabulary:
        raise StageError(f"{path}: holds tokens of a model with another vocabulary; make it again with this --model.")
    if not len(heads) == len(lengths) == len(answers) or sum(lengths) != len(ids):
        raise StageError(f"{path}: is damaged; make it again.")
    rows: list[Row] = []
    at = 0
    for number, ((name, task, split), length, answer) in enumerate(zip(heads, lengths, answers, strict=True), 1):
        row = Row(name, task, tuple(ids[at : at + length]), answer, split)
        at += length
        if refusal := row_refusal(row, size):
            raise StageError(f"{path}: row {number} ({name}) {refusal}; make it again.")
        rows.append(row)
    return rows


def row_refusal(row: Row, size: int) -> str:
    """What is wrong with a row, as a predicate; "" for a good one.

    >>> row_refusal(Row("a", "plan", (2, 9, 1), 3), 10)
    'has no answer'
    """
    if row.task not in (*TASKS, PRETRAIN) or row.split not in SPLITS:
        return "has an unknown task or split"
    if not 0 < row.answer_at < len(row.ids) - 1:
        return "has no answer"
    if min(row.ids) < 0 or max(row.ids) >= size:
        return "has a token that the model has not"
    if row.ids[0] != BOS or row.ids[-1] != EOS:
        return "does not begin and end as the model's texts do"
    return ""


def rows_of(path: Path, gguf: Path, max_tokens: int, progress: Progress = silent) -> tuple[list[Row], dict[str, int]]:
    """The rows of a file of examples or of rows, those of at most `max_tokens`; how many were left out, by reason."""
    if path.suffix == ".jsonl":
        examples = read_examples(path)
        tokens = Tokens(gguf)
        try:
            return tokenise(examples, tokens, max_tokens, progress)
        finally:
            tokens.close()
    vocabulary, size = vocabulary_hash(gguf)
    rows = read_rows(path, vocabulary, size)
    kept = [row for row in rows if len(row.ids) <= max_tokens]
    return kept, {f"longer than {max_tokens} tokens": len(rows) - len(kept)} if len(kept) < len(rows) else {}


@click.command()
@click.argument("examples", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="File of rows to write.")
@click.option("--max-tokens", default=2048, show_default=True, type=click.IntRange(16), help="Leave longer ones out.")
@click.option(
    "--shown", default=0.0, show_default=True, type=click.FloatRange(0, 1), help="Share of formulas with a neighbour."
)
@model_option
def main(examples: Path, out: Path, max_tokens: int, shown: float, model: str | None) -> None:
    """Turn EXAMPLES (JSON lines from `collect`) into token ids of the base model."""
    found = read_examples(examples)
    gguf = find_base(model).path
    tokens = Tokens(gguf)
    try:
        with progress_bar("tokens", 100) as progress:
            rows, left_out = tokenise(found, tokens, max_tokens, progress, shown)
    finally:
        tokens.close()
    if not rows:
        raise StageError(f"{examples}: holds no example of at most {max_tokens} tokens.")
    write_rows(rows, vocabulary_hash(gguf)[0], out)
    for reason, count in left_out.items():
        click.echo(f"left out {count} examples: {reason}", err=True)
    by_task: dict[str, Any] = Counter(row.task for row in rows)
    total = sum(len(row.ids) for row in rows)
    click.echo(f"{out}: {dict(by_task)}, {total} tokens, {out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    stage(main)
