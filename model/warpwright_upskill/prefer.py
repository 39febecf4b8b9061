"""Preference training (DPO): make right answers likelier than the model's own wrong ones.

    python -m warpwright_upskill.prefer rounds/round1/pairs.rows --adapter adapter --out preferred

The reference is the adapter itself as it was before. `learning_rate`, `batch` and `epochs` are those of the
configuration; a tenth of the rate of `train` is usual.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

import click
from warpwright.progress import Progress, silent

from warpwright_upskill.console import fail, progress_bar, stage
from warpwright_upskill.gemma import choose_device, choose_dtype, vocabulary_hash
from warpwright_upskill.options import find_base, model_option
from warpwright_upskill.rows import Row, read_rows
from warpwright_upskill.training.batching import learning_rate_at
from warpwright_upskill.training.config import Config, read_config, write_config
from warpwright_upskill.training.lora import losses_module, padded, save_adapter, trained_model

Pair = tuple[Row, Row]
"""The right and the wrong answer to one prompt."""


def pairs_of(rows: Sequence[Row], path: Path) -> list[Pair]:
    """Rows as `retrain` writes them, right and wrong in turn."""
    pairs = list(zip(rows[::2], rows[1::2], strict=False))
    if len(rows) % 2 or any(right.prompt != wrong.prompt for right, wrong in pairs):
        fail(f"{path}: holds no pairs of answers; `retrain` writes them.")
    if not pairs:
        fail(f"{path}: holds no pair; the model answered nothing wrongly.")
    return pairs


def prefer(
    *, gguf: Path, pairs: Sequence[Pair], start: Path, out: Path, config: Config, beta: float,
    progress: Progress = silent,
) -> dict[str, Any]:  # fmt: skip
    """Train the adapter in `start` on the pairs and write it to `out`; the report."""
    import torch

    device = choose_device(config.device)
    dtype = choose_dtype(config.dtype, device)
    model = trained_model(gguf, config, device, dtype, start)
    trained = [each for each in model.parameters() if each.requires_grad]
    module = losses_module(model)
    optimizer = torch.optim.AdamW(trained, lr=config.learning_rate, weight_decay=0.0)
    module.eval()
    autocast = torch.autocast(device, torch.bfloat16, enabled=dtype == "bfloat16")
    reference: list[Any] = []
    with torch.no_grad(), autocast:
        for at in range(0, len(pairs), config.batch):
            reference += _log_odds(module, pairs[at : at + config.batch], device)
            progress("what it holds likely", min(1.0, (at + config.batch) / len(pairs)))
    random = Random(config.seed)
    orders = [random.sample(range(len(pairs)), len(pairs)) for _ in range(config.epochs)]
    steps = [order[at : at + config.batch] for order in orders for at in range(0, len(order), config.batch)]
    steps = steps[: config.max_steps] if config.max_steps else steps
    losses: list[float] = []
    preferred: list[float] = []
    module.train()
    for number, step in enumerate(steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate_at(number, len(steps), config)
        torch.manual_seed(hash((config.seed, number)))
        with autocast:
            now = torch.stack(_log_odds(module, [pairs[each] for each in step], device))
        margin = now - torch.stack([reference[each] for each in step])
        loss = -torch.nn.functional.logsigmoid(beta * margin).mean()
        if not torch.isfinite(loss):
            fail(f"The loss is not finite at step {number + 1}; try a lower learning_rate.")
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(round(loss.item(), 4))
        preferred.append(round((margin > 0).float().mean().item(), 4))
        progress(f"step {number + 1} of {len(steps)}, loss {losses[-1]:.3f}", (number + 1) / len(steps))
    report = {
        "version": 1,
        "base": gguf.name,
        "config": asdict(config),
        "beta": beta,
        "pairs": len(pairs),
        "loss": losses,
        "preferred_more_than_before": preferred,
    }
    save_adapter(model, out, gguf)
    write_config(config, out / "config.json")
    (out / "training.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return report


def _log_odds(module: Any, pairs: Sequence[Pair], device: str) -> list[Any]:
    """How much likelier each pair's right answer is than its wrong one, in nats."""
    rows = [row for pair in pairs for row in pair]
    losses = module(*padded(rows, device)).split([len(row.answer) for row in rows])
    return [wrong.sum() - right.sum() for right, wrong in zip(losses[::2], losses[1::2], strict=True)]


@click.command()
@click.argument("pairs", type=click.Path(path_type=Path))
@click.option("--adapter", type=click.Path(path_type=Path), required=True, help="Folder of the adapter that answered.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder for the new one.")
@click.option("--beta", default=0.1, show_default=True, type=click.FloatRange(0.001, 10), help="How hard to prefer.")
@click.option("--config", "file", type=click.Path(path_type=Path), help="TOML or JSON file of settings, as of `train`.")
@click.option("--set", "changes", multiple=True, metavar="NAME=VALUE", help="Change a setting; may be repeated.")
@model_option
def main(
    pairs: Path, adapter: Path, out: Path, beta: float, file: Path | None, changes: tuple[str, ...], model: str | None
) -> None:
    """Teach an adapter to prefer the right answers of PAIRS (`pairs.rows` of a round) to its own wrong ones."""
    config = read_config(file, ("learning_rate=2e-5", *changes) if file is None else changes)
    gguf = find_base(model).path
    found = pairs_of(read_rows(pairs, *vocabulary_hash(gguf)), pairs)
    with progress_bar("preferring", 100) as progress:
        report = prefer(gguf=gguf, pairs=found, start=adapter, out=out, config=config, beta=beta, progress=progress)
    share = report["preferred_more_than_before"]
    click.echo(f"{len(found)} pairs, {len(share)} steps, loss {report['loss'][0]:.3f} -> {report['loss'][-1]:.3f}")
    click.echo(f"adapter: {out}")


if __name__ == "__main__":
    stage(main)
