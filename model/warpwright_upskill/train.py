"""Train a LoRA adapter of Gemma 3 on collected examples, with the loss on the answers alone.

python -m warpwright_upskill.train examples.jsonl --out .build/adapter
"""

from __future__ import annotations

import json
import math
import platform
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

import click
from warpwright.progress import Progress, silent

from warpwright_upskill.console import StageError, fail, progress_bar, stage
from warpwright_upskill.examples import HELD_OUT, TASKS, TRAIN, Example, read_examples
from warpwright_upskill.gemma import BOS, EOS, Tokens, choose_device, load_weights, quiet_warnings
from warpwright_upskill.options import find_base, model_option, read_mix
from warpwright_upskill.render import render

TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True, slots=True)
class Settings:
    """How to train. `mix` is each task's share of what is drawn in an epoch; tasks without examples give theirs up."""

    rank: int = 32
    alpha: int = 64
    targets: tuple[str, ...] = TARGETS
    learning_rate: float = 2e-4
    epochs: int = 3
    max_steps: int = 0  # 0 is no limit
    batch: int = 4
    max_tokens: int = 2048
    warmup: float = 0.1
    dropout: float = 0.05
    mix: tuple[tuple[str, float], ...] = (("formula", 0.3), ("kernel", 0.1), ("plan", 0.3), ("repair", 0.3))
    seed: int = 0
    device: str = "auto"
    dtype: str = "auto"


DEFAULTS = Settings()


@dataclass(frozen=True, slots=True)
class Row:
    """Token ids of one example; the loss is on ids[answer_at:], the answer and its end of sequence."""

    id: str
    task: str
    ids: tuple[int, ...]
    answer_at: int


def tokenise(examples: Sequence[Example], tokens: Tokens, max_tokens: int) -> tuple[list[Row], dict[str, int]]:
    """Rows of the examples that can be trained on, and how many could not, by reason.

    Prompt and answer are tokenised apart, as at inference, where the prompt's last token is fixed before the answer.
    """
    rows: list[Row] = []
    left_out: Counter[str] = Counter()
    for example in examples:
        rendered = render(example)
        if rendered is None:
            left_out["the server asks no such question"] += 1
            continue
        prompt = [BOS, *tokens.encode(rendered.prompt)]
        answer = [*tokens.encode(rendered.answer), EOS]
        if len(prompt) + len(answer) > max_tokens:
            left_out[f"longer than {max_tokens} tokens"] += 1
        else:
            rows.append(Row(example.id, example.task, (*prompt, *answer), len(prompt)))
    return rows, dict(left_out)


def draw_epoch(rows: Sequence[Row], mix: Sequence[tuple[str, float]], random: Random) -> list[Row]:
    """As many rows as there are, tasks in the shares of `mix`; a task's rows are all used before one is used again.

    >>> rows = [Row("a", "plan", (1,), 0), Row("b", "plan", (1,), 0), Row("g", "kernel", (1,), 0)]
    >>> drawn = draw_epoch(rows, [("plan", 0.6), ("kernel", 0.4)], Random(0))
    >>> sorted(row.id for row in drawn)
    ['a', 'b', 'g']
    """
    by_task = {task: [row for row in rows if row.task == task] for task, _ in mix}
    present = [(task, share) for task, share in mix if by_task[task] and share > 0]
    whole = sum(share for _, share in present)
    drawn: list[Row] = []
    for task, share in present:
        count = max(1, round(len(rows) * share / whole))
        pool = by_task[task]
        while count > 0:
            drawn += random.sample(pool, min(count, len(pool)))
            count -= len(pool)
    random.shuffle(drawn)
    return drawn


def batches(rows: Sequence[Row], size: int, random: Random) -> list[Sequence[Row]]:
    """The rows in batches of `size` of about one length, so that little is padded; the batches in random order."""
    ordered = sorted(rows, key=lambda row: len(row.ids))
    made: list[Sequence[Row]] = [ordered[at : at + size] for at in range(0, len(ordered), size)]
    random.shuffle(made)
    return made


def learning_rate_at(step: int, steps: int, settings: Settings) -> float:
    """Linear warm-up over the first `warmup` of the steps, then half a cosine down to a tenth.

    >>> [round(learning_rate_at(s, 10, Settings(learning_rate=1.0)), 3) for s in (0, 1, 9)]
    [1.0, 1.0, 0.127]
    """
    warm = max(1, round(steps * settings.warmup))
    if step < warm:
        return settings.learning_rate * (step + 1) / warm
    done = (step - warm) / max(1, steps - warm)
    return settings.learning_rate * (0.1 + 0.9 * (1 + math.cos(math.pi * done)) / 2)


def answer_loss(model: Any, rows: Sequence[Row], device: str) -> Any:
    """Mean negative log-likelihood in nats per answer token of one padded batch.

    Only the answers' positions go through the output matrix: with 262,144 columns it costs as much as all the layers.
    """
    import torch

    width = max(len(row.ids) for row in rows)
    ids = torch.zeros((len(rows), width), dtype=torch.long)
    seen = torch.zeros((len(rows), width), dtype=torch.long)
    predicts = torch.zeros((len(rows), width), dtype=torch.bool)
    for at, row in enumerate(rows):
        ids[at, : len(row.ids)] = torch.tensor(row.ids)
        seen[at, : len(row.ids)] = 1
        predicts[at, row.answer_at - 1 : len(row.ids) - 1] = True
    targets = torch.cat([torch.tensor(row.ids[row.answer_at :]) for row in rows]).to(device)
    causal = model.get_base_model() if hasattr(model, "get_base_model") else model
    hidden = causal.model(input_ids=ids.to(device), attention_mask=seen.to(device)).last_hidden_state
    logits = causal.lm_head(hidden[predicts.to(device)]).float()
    return torch.nn.functional.cross_entropy(logits, targets)


def mean_loss(model: Any, rows: Sequence[Row], device: str) -> float | None:
    """Mean loss per answer token over all rows; None where there are none."""
    import torch

    if not rows:
        return None
    total, count = 0.0, 0
    model.eval()
    with torch.no_grad():
        for row in rows:
            length = len(row.ids) - row.answer_at
            total += answer_loss(model, [row], device).item() * length
            count += length
    return total / count


def train(
    *,
    gguf: Path,
    train_rows: Sequence[Row],
    held_out_rows: Sequence[Row],
    out: Path,
    settings: Settings,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Train, write the peft adapter and `training.json` into `out`, and return the report.

    The same rows, settings and machine give the same adapter.
    """
    import peft
    import torch
    import transformers

    started = time.perf_counter()
    device = choose_device(settings.device)
    dtype = ("bfloat16" if device == "cuda" else "float32") if settings.dtype == "auto" else settings.dtype
    torch.manual_seed(settings.seed)
    progress("loading the weights", None)
    base = load_weights(gguf, device=device, dtype=dtype)
    lora = peft.LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        target_modules=list(settings.targets),
        lora_dropout=settings.dropout,
        task_type="CAUSAL_LM",
    )
    with quiet_warnings():
        model: Any = peft.get_peft_model(base, lora)
    progress(f"measuring the loss on {len(held_out_rows)} held-out examples", None)
    before = mean_loss(model, held_out_rows, device)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=settings.learning_rate, weight_decay=0.0)
    random = Random(settings.seed)
    plan = [
        batch
        for _ in range(settings.epochs)
        for batch in batches(draw_epoch(train_rows, settings.mix, random), settings.batch, random)
    ]
    plan = plan[: settings.max_steps] if settings.max_steps else plan
    losses: list[float] = []
    loop_started = time.perf_counter()
    model.train()
    for step, batch in enumerate(plan):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate_at(step, len(plan), settings)
        loss = answer_loss(model, batch, device)
        if not torch.isfinite(loss):
            fail(f"The loss is not finite at step {step + 1}; try a smaller --learning-rate.")
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        progress(f"step {step + 1} of {len(plan)}, loss {losses[-1]:.3f}", (step + 1) / len(plan))
    loop_seconds = time.perf_counter() - loop_started
    progress(f"measuring the loss on {len(held_out_rows)} held-out examples", None)
    after = mean_loss(model, held_out_rows, device)
    out.mkdir(parents=True, exist_ok=True)
    with quiet_warnings():
        model.save_pretrained(str(out))
    report: dict[str, Any] = {
        "version": 1,
        "base": gguf.name,
        "settings": asdict(settings),
        "device": torch.cuda.get_device_name() if device == "cuda" else f"CPU, {torch.get_num_threads()} threads",
        "dtype": dtype,
        "python": platform.python_version(),
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__, "peft": peft.__version__},
        "trained_parameters": sum(parameter.numel() for parameter in trained),
        "examples": {task: sum(row.task == task for row in train_rows) for task in TASKS},
        "held_out_examples": {task: sum(row.task == task for row in held_out_rows) for task in TASKS},
        "steps": len(plan),
        "loss": [round(loss, 4) for loss in losses],
        "held_out_loss_before": before,
        "held_out_loss_after": after,
        "seconds": {"loop": round(loop_seconds, 1), "all": round(time.perf_counter() - started, 1)},
    }
    (out / "training.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return report


@click.command()
@click.argument("examples", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder for the adapter.")
@model_option
@click.option("--rank", default=DEFAULTS.rank, show_default=True, type=click.IntRange(1, 512), help="LoRA rank.")
@click.option("--alpha", default=DEFAULTS.alpha, show_default=True, type=click.IntRange(1), help="LoRA alpha.")
@click.option("--targets", default=",".join(TARGETS), show_default=True, help="Projections to adapt, by comma.")
@click.option("--learning-rate", default=DEFAULTS.learning_rate, show_default=True, type=float)
@click.option("--epochs", default=DEFAULTS.epochs, show_default=True, type=click.IntRange(1))
@click.option("--max-steps", default=DEFAULTS.max_steps, show_default=True, help="Stop after so many; 0 is no limit.")
@click.option("--batch", default=DEFAULTS.batch, show_default=True, type=click.IntRange(1))
@click.option("--max-tokens", default=DEFAULTS.max_tokens, show_default=True, help="Longer examples are left out.")
@click.option("--mix", default="formula=0.3,kernel=0.1,plan=0.3,repair=0.3", show_default=True, help="Shares of tasks.")
@click.option("--seed", default=0, show_default=True)
@click.option("--device", default="auto", show_default=True, type=click.Choice(["auto", "cpu", "cuda"]))
@click.option("--dtype", default="auto", show_default=True, type=click.Choice(["auto", "float32", "bfloat16"]))
def main(examples: Path, out: Path, model: str | None, targets: str, mix: str, **given: Any) -> None:
    """Train a LoRA adapter on EXAMPLES (JSON lines from `collect`)."""
    unknown = sorted(set(targets.split(",")) - set(TARGETS))
    if unknown:
        fail(f"--targets: {unknown[0]!r} is no projection of Gemma 3; choose of {', '.join(TARGETS)}.")
    settings = Settings(targets=tuple(targets.split(",")), mix=read_mix(mix), **given)
    found = read_examples(examples)
    gguf = find_base(model).path
    tokens = Tokens(gguf)
    try:
        train_rows, left_out = tokenise([e for e in found if e.split == TRAIN], tokens, settings.max_tokens)
        held_rows, _ = tokenise([e for e in found if e.split == HELD_OUT], tokens, settings.max_tokens)
    finally:
        tokens.close()
    if not train_rows:
        raise StageError(f"{examples}: holds no training example of at most {settings.max_tokens} tokens.")
    for reason, count in left_out.items():
        click.echo(f"left out {count} training examples: {reason}", err=True)
    with progress_bar("training", 100) as progress:
        report = train(
            gguf=gguf, train_rows=train_rows, held_out_rows=held_rows, out=out, settings=settings, progress=progress
        )
    click.echo(
        f"{len(train_rows)} examples, {report['steps']} steps, "
        f"loss {report['loss'][0]:.3f} -> {report['loss'][-1]:.3f}, "
        f"held out ({len(held_rows)}) {_number(report['held_out_loss_before'])} -> "
        f"{_number(report['held_out_loss_after'])}, {report['seconds']['loop']:.0f} s on {report['device']}"
    )
    click.echo(f"adapter: {out}")


def _number(loss: float | None) -> str:
    return "none" if loss is None else f"{loss:.3f}"


if __name__ == "__main__":
    stage(main)
