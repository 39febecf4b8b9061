"""A trained adapter's answers to the prompts by hand, on the machine that trained it: no llama.cpp, no export.

    python -m warpwright_upskill.answers prepare --model base.gguf --out prompts.json        # where the prompts are
    python -m warpwright_upskill.answers ask prompts.json --adapter FOLDER --out answers.json    # where the GPU is
    python -m warpwright_upskill.evaluate --ask kept --answers answers.json                  # judged where torch is

Hundreds of answers are written side by side, so that a comparison of two runs costs a minute. There is no grammar:
what the shipped file is worth is asked through the server's engine.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from warpwright.assist.formula_examples import Examples
from warpwright.assist.formula_task import FormulaRequest, formula_prompt
from warpwright.assist.formula_votes import TEMPERATURE

from warpwright_upskill.console import StageError, progress_bar, stage
from warpwright_upskill.data.render import render
from warpwright_upskill.examples import FORMULA, HELD_OUT, PLAN, REPAIR, evenly_spaced, read_examples
from warpwright_upskill.gemma import BOS, Tokens, Vocabulary, choose_device, choose_dtype, load_weights, vocabulary_hash
from warpwright_upskill.options import find_base, model_option
from warpwright_upskill.prompts import read_prompts
from warpwright_upskill.training.lora import load_adapter
from warpwright_upskill.training.sampling import sample

AT_ONCE = 2048


def read_answers(path: Path) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """How answers were made, and those to each prompt. Raises StageError."""
    with _reading(path, "answers", "answers ask"):
        said = json.loads(path.read_text(encoding="utf-8"))
        answers = {str(name): [str(each) for each in texts] for name, texts in said["answers"].items()}
        return dict(said["settings"]), answers


@contextmanager
def _reading(path: Path, what: str, writer: str) -> Iterator[None]:
    """Turns what reading a file of JSON raises into a StageError."""
    try:
        yield
    except OSError as error:
        raise StageError(f"{path}: cannot be read ({error.strerror}); `{writer}` writes it.") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise StageError(f"{path}: holds no {what}; `{writer}` writes it.") from None


@click.group(help=__doc__)
def main() -> None:
    pass


@main.command()
@click.option("--prompts", type=click.Path(path_type=Path), default=Path("model/prompts"), show_default=True)
@click.option("--shown", type=click.Path(path_type=Path), help="JSON lines of which each prompt shows the nearest.")
@click.option(
    "--examples", type=click.Path(path_type=Path), help="JSON lines whose held-out plans and repairs are asked."
)
@click.option("--limit", default=0, help="So many prompts, evenly spaced; 0 is all.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True)
@model_option
def prepare(prompts: Path, shown: Path | None, examples: Path | None, limit: int, out: Path, model: str | None) -> None:
    """Write the tokens of the prompts, for a machine without their tokenizer."""
    gguf = find_base(model).path
    known = read_examples(shown) if shown else []
    index = Examples((each.problem, each.formula) for each in known if each.task == FORMULA and each.split != HELD_OUT)
    tokens = Tokens(gguf)
    found = {}
    for prompt in evenly_spaced(read_prompts(prompts), limit):
        near = index.nearest(prompt.comment)
        request = FormulaRequest(prompt.comment, prompt.given, near[0] if near else None)
        found[prompt.id] = [BOS, *tokens.encode(formula_prompt(request))]
    for example in read_examples(examples) if examples else []:
        if example.split == HELD_OUT and example.task in (PLAN, REPAIR) and (rendered := render(example)) is not None:
            found[example.id] = [BOS, *tokens.encode(rendered.prompt)]
    tokens.close()
    made = {"vocabulary": vocabulary_hash(gguf)[0], "shown": shown.name if shown else "", "prompts": found}
    out.write_text(json.dumps(made), encoding="utf-8")
    click.echo(f"{out}: {len(found)} prompts")


@main.command()
@click.argument("prompts", type=click.Path(path_type=Path))
@click.option("--adapter", type=click.Path(path_type=Path), required=True, help="Folder that `train` wrote.")
@click.option("--tries", default=8, show_default=True, type=click.IntRange(1, 64), help="Answers to each prompt.")
@click.option("--most", default=256, show_default=True, type=click.IntRange(1), help="Tokens of an answer.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True)
@model_option
def ask(prompts: Path, adapter: Path, tries: int, most: int, out: Path, model: str | None) -> None:
    """Answer PROMPTS: the likeliest answer first, then drawn ones."""
    gguf = find_base(model).path
    with _reading(prompts, "prompts", "answers prepare"):
        said = json.loads(prompts.read_text(encoding="utf-8"))
        asked = {str(name): [int(each) for each in ids] for name, ids in said["prompts"].items()}
        vocabulary, shown = said["vocabulary"], said["shown"]
    if vocabulary != vocabulary_hash(gguf)[0]:
        raise StageError(f"{prompts}: holds tokens of another vocabulary; prepare them with this --model.")
    pieces = Vocabulary(gguf)
    device = choose_device("auto")
    weights = load_weights(gguf, device=device, dtype=choose_dtype("auto", device))
    taught = load_adapter(weights, adapter, gguf)
    rows = list(asked.values())
    with progress_bar("answers", 100) as progress:
        first = sample(taught, rows, most=most, at_once=AT_ONCE, progress=progress)
        more: list[list[tuple[int, ...]]] = [[] for _ in rows]
        if tries > 1:
            more = sample(
                taught,
                rows,
                each=tries - 1,
                temperature=TEMPERATURE,
                most=most,
                at_once=AT_ONCE,
                progress=progress,
            )
    answers = {name: [pieces.decode(each) for each in (*a, *b)] for name, a, b in zip(asked, first, more, strict=True)}
    settings = {
        "adapter": adapter.name,
        "shown": shown,
        "temperature": [0, TEMPERATURE],
        "grammar": False,
        "tries": tries,
    }
    out.write_text(json.dumps({"settings": settings, "answers": answers}), encoding="utf-8")
    click.echo(f"{out}: {len(answers)} prompts, {tries} answers each")


if __name__ == "__main__":
    stage(main)
