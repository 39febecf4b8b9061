"""Teach the model by its own answers: sample, verify, keep what is right, pair what is wrong with its fix, train again.

    python -m warpwright_upskill.retrain examples.rows --adapter adapter --rounds 2 --out rounds

Each round leaves a folder: `kept.rows` are right answers in the model's own words and the examples that it got wrong,
`pairs.jsonl` are wrong answers with the reason and the fix, `pairs.rows` the same for `prefer`. What was there before
is replayed beside. A round that is there is not made again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import click
from warpwright.progress import Progress, silent

from warpwright_upskill.console import StageError, progress_bar, stage
from warpwright_upskill.examples import DEV, TRAIN
from warpwright_upskill.gemma import EOS, Vocabulary, choose_device, choose_dtype, load_weights, vocabulary_hash
from warpwright_upskill.options import find_base, model_option
from warpwright_upskill.rows import PRETRAIN, Row, read_rows, rows_of, write_rows
from warpwright_upskill.train import train
from warpwright_upskill.training.batching import drawn
from warpwright_upskill.training.config import Config, read_config
from warpwright_upskill.training.lora import load_adapter
from warpwright_upskill.training.sampling import sample
from warpwright_upskill.training.spread import HELP, spread
from warpwright_upskill.training.verdicts import Verdict, judge

MOST_KEPT = 2
"""Right answers kept of one prompt: more say the same again."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A wrong answer to `row`'s prompt, why it is wrong, and a right one."""

    row: Row
    wrong: tuple[int, ...]
    reason: str
    fix: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a round learns from: `right` of `answers` were."""

    kept: tuple[Row, ...]
    pairs: tuple[Pair, ...]
    answers: int
    right: int


def lesson_of(rows: Sequence[Row], answers: Sequence[Sequence[tuple[int, ...]]], verdicts: Sequence[Verdict]) -> Lesson:
    """Sort the answers to the rows' prompts, whose verdicts come in the same order, one after the other.

    A prompt that was always answered rightly teaches nothing. Of one that was answered wrongly the example's own answer
    is kept, with right ones of the model's; each wrong answer is paired with a right one.
    """
    kept: list[Row] = []
    pairs: list[Pair] = []
    judged = iter(verdicts)
    right_of_all = 0
    for row, given in zip(rows, answers, strict=True):
        right: list[tuple[int, ...]] = []
        wrong: dict[tuple[int, ...], str] = {}
        for answer in given:
            verdict = next(judged)
            right_of_all += verdict.right
            if not verdict.right:
                wrong.setdefault(answer, verdict.reason)
            elif answer not in right:
                right.append(answer)
        if not wrong:
            continue
        kept.append(row)
        own = row.answer[:-1]
        for number, answer in enumerate([each for each in right if each != own][:MOST_KEPT]):
            kept.append(replace(row, id=f"{row.id}+{number}", ids=(*row.prompt, *answer, EOS)))
        fix = right[0] if right else own
        pairs += [Pair(row, answer, reason, fix) for answer, reason in wrong.items()]
    return Lesson(tuple(kept), tuple(pairs), len(verdicts), right_of_all)


def taught_by(
    model: Any, rows: Sequence[Row], vocabulary: Vocabulary, config: Config, *, each: int, temperature: float,
    workers: str = "1", seed: int = 0, progress: Progress = silent,
) -> Lesson:  # fmt: skip
    """Answer the rows' prompts `each` times, and judge."""
    prompts = [row.prompt for row in rows]
    answers = sample(
        model, prompts, each=each, temperature=temperature, most=config.answer_tokens, seed=seed,
        at_once=config.answers_at_once, progress=progress,
    )  # fmt: skip
    asked = [
        (row.task, vocabulary.decode(row.answer), vocabulary.decode(answer))
        for row, given in zip(rows, answers, strict=True)
        for answer in given
    ]
    return lesson_of(rows, answers, spread(_verdict, asked, workers, progress))


def _verdict(asked: tuple[str, str, str]) -> Verdict:
    return judge(*asked)


def write_lesson(lesson: Lesson, gguf: Path, vocabulary: Vocabulary, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    name, _ = vocabulary_hash(gguf)
    told = [pair for pair in lesson.pairs if pair.wrong]  # an empty answer is no row
    both = [replace(pair.row, ids=(*pair.row.prompt, *side, EOS)) for pair in told for side in (pair.fix, pair.wrong)]
    write_rows(both, name, folder / "pairs.rows")
    with (folder / "pairs.jsonl").open("w", encoding="utf-8") as file:
        for pair in lesson.pairs:
            said = {
                "id": pair.row.id,
                "task": pair.row.task,
                "prompt": vocabulary.decode(pair.row.prompt),
                "wrong": vocabulary.decode(pair.wrong),
                "reason": pair.reason,
                "fix": vocabulary.decode(pair.fix),
            }
            file.write(json.dumps(said, ensure_ascii=False) + "\n")
    counted = {"answers": lesson.answers, "right": lesson.right, "pairs": len(lesson.pairs)}
    (folder / "counted.json").write_text(json.dumps(counted) + "\n", encoding="utf-8")
    write_rows(lesson.kept, name, folder / "kept.rows")  # the last: it says that the others are there


def retrain(
    *, gguf: Path, rows: Sequence[Row], history: Sequence[Row], adapter: Path, out: Path, config: Config, rounds: int,
    prompts: int, each: int, temperature: float, workers: str = "1", progress: Progress = silent,
) -> list[dict[str, Any]]:  # fmt: skip
    """`rounds` rounds, each from the adapter of the one before; a report of each."""
    taught = [row for row in rows if row.split == TRAIN and row.task != PRETRAIN]
    dev = [row for row in rows if row.split == DEV]
    vocabulary = Vocabulary(gguf)
    reports: list[dict[str, Any]] = []
    for number in range(1, rounds + 1):
        folder = out / f"round{number}"
        if not (folder / "round.json").is_file():
            asked = _asked(taught, prompts, config, Random(f"{config.seed}/{number}"))
            if not asked:
                raise StageError("There is no training row of a task that `mix` gives a share.")
            if not (folder / "kept.rows").is_file():
                device = choose_device(config.device)
                dtype = choose_dtype(config.dtype, device)
                model = load_adapter(load_weights(gguf, device=device, dtype=dtype), adapter, gguf)
                lesson = taught_by(
                    model, asked, vocabulary, config, each=each, temperature=temperature, workers=workers,
                    seed=config.seed + number, progress=progress,
                )  # fmt: skip
                del model
                progress(f"round {number}: {lesson.right} of {lesson.answers} answers are right", None)
                write_lesson(lesson, gguf, vocabulary, folder)
            kept = read_rows(folder / "kept.rows", *vocabulary_hash(gguf))
            counted = json.loads((folder / "counted.json").read_text(encoding="utf-8"))
            report: dict[str, Any] = {
                "round": number,
                **counted,
                "kept": dict(Counter(row.task for row in kept)),
                "history": len(history),
            }
            if kept or history:
                trained = train(
                    gguf=gguf, rows=[*kept, *history, *dev], out=folder / "adapter", config=config, replayed=taught,
                    start=adapter, progress=progress,
                )  # fmt: skip
                report |= {name: trained[name] for name in ("steps", "judged", "dev_loss_before", "dev_loss_after")}
            (folder / "round.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
        reports.append(json.loads((folder / "round.json").read_text(encoding="utf-8")))
        if (folder / "adapter" / "training.json").is_file():
            adapter = folder / "adapter"
    return reports


def _asked(rows: Sequence[Row], count: int, config: Config, random: Random) -> list[Row]:
    """About `count` rows, the tasks in their shares."""
    by_task = {task: [row for row in rows if row.task == task] for task, share in config.mix if share > 0}
    whole = sum(share for task, share in config.mix if by_task.get(task))
    return [
        row
        for task, share in config.mix
        if (pool := by_task.get(task))
        for row in drawn(pool, min(len(pool), max(1, round(count * share / whole))), random)
    ]


@click.command()
@click.argument("examples", type=click.Path(path_type=Path))
@click.option("--adapter", type=click.Path(path_type=Path), required=True, help="Folder of the adapter to begin with.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder for the rounds.")
@click.option("--rounds", default=2, show_default=True, type=click.IntRange(1))
@click.option("--prompts", default=4000, show_default=True, type=click.IntRange(1), help="Asked in a round.")
@click.option("--each", default=4, show_default=True, type=click.IntRange(1), help="Answers to one prompt.")
@click.option("--temperature", default=0.8, show_default=True, type=click.FloatRange(0.01, 2.0))
@click.option(
    "--history", type=click.Path(path_type=Path), help="Examples made of your own failures; none else is read."
)
@click.option("--workers", default="1", show_default=True, help=HELP)
@click.option("--config", "file", type=click.Path(path_type=Path), help="TOML or JSON file of settings, as of `train`.")
@click.option("--set", "changes", multiple=True, metavar="NAME=VALUE", help="Change a setting; may be repeated.")
@model_option
def main(
    examples: Path, adapter: Path, out: Path, history: Path | None, file: Path | None, changes: tuple[str, ...],
    model: str | None, **given: Any,
) -> None:  # fmt: skip
    """Ask an adapter the training prompts of EXAMPLES, and teach it by what it got right and wrong."""
    config = read_config(file, changes)
    gguf = find_base(model).path
    with progress_bar("retraining", 100) as progress:
        rows, _ = rows_of(examples, gguf, config.max_tokens, progress)
        own = rows_of(history, gguf, config.max_tokens)[0] if history else []
        own = [row for row in own if row.split == TRAIN and row.task != PRETRAIN]
        reports = retrain(
            gguf=gguf, rows=rows, history=own, adapter=adapter, out=out, config=config, progress=progress, **given
        )
    for report in reports:
        click.echo(json.dumps(report))


if __name__ == "__main__":
    stage(main)
