"""Train a LoRA adapter of Gemma 3, or its weights, on collected examples, with the loss on the answers alone.

    python -m warpwright_upskill.train examples.jsonl --config run.toml --out .build/adapter
    accelerate launch --num_processes 8 -m warpwright_upskill.train examples.rows --config run.toml --out .build/adapter

A run that was interrupted goes on where it was saved when it is started again, to the same result.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from warpwright.progress import Progress, silent

from warpwright_upskill.console import fail, progress_bar, stage
from warpwright_upskill.examples import DEV, TRAIN, evenly_spaced
from warpwright_upskill.gemma import Vocabulary, choose_device, choose_dtype
from warpwright_upskill.gguf_file import fingerprint, read_gguf
from warpwright_upskill.options import find_base, model_option
from warpwright_upskill.rows import Row, rows_of
from warpwright_upskill.training.batching import Batch, learning_rate_at, passes, steps_of
from warpwright_upskill.training.checkpoint import FILE, State, load_run, run_key, save_run
from warpwright_upskill.training.config import Config, read_config, write_config
from warpwright_upskill.training.lora import (
    as_it_is,
    losses_module,
    padded,
    save_adapter,
    set_trained_weights,
    trained_model,
    trained_weights,
)
from warpwright_upskill.training.sampling import sample
from warpwright_upskill.training.verdicts import judge_all

LOOK = 10
"""Steps between looks at the loss, each of which waits for the GPU."""
JUDGE_SECONDS = 60.0
MOST_MEASURED = 400
"""Held-back rows that the loss is measured on."""


def train(
    *,
    gguf: Path,
    rows: Sequence[Row],
    out: Path,
    config: Config,
    replayed: Sequence[Row] = (),
    start: Path | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Train on the rows whose split is "train", write `out`, and return the report.

    `start` is the folder of an adapter to go on with, `replayed` are rows of earlier rounds. Rows of the split "dev"
    are answered and judged. With several processes, of accelerate, the first one writes.
    """
    import accelerate
    import peft
    import torch
    import transformers

    started = time.perf_counter()
    device = choose_device(config.device)
    dtype = choose_dtype(config.dtype, device)
    here = accelerate.Accelerator(
        cpu=device == "cpu", mixed_precision="bf16" if (device, dtype) == ("cuda", "bfloat16") else "no"
    )
    tell: Progress = progress if here.is_main_process else silent
    taught = [row for row in rows if row.split == TRAIN]
    if config.examples:
        tasks = sorted({row.task for row in taught})
        taught = [r for task in tasks for r in evenly_spaced([r for r in taught if r.task == task], config.examples)]
    shares = dict(config.mix)
    dev = [row for row in rows if row.split == DEV and shares.get(row.task, 0.0) > 0]
    steps = steps_of(taught, replayed, config)
    if not steps:
        fail("There is nothing to train on: no training row is of a task that `mix` gives a share.")
    if config.judge_every and not dev:
        fail("judge_every is set, but no example of these tasks is of the split `dev`; collect some, or set it to 0.")
    key = run_key(config, fingerprint(read_gguf(gguf)), rows, replayed)
    saved = load_run(out, key)

    tell("loading the weights", None)
    torch.manual_seed(config.seed)
    model = trained_model(gguf, config, str(here.device), dtype, start)
    trained = [each for each in model.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=config.learning_rate, weight_decay=0.0)
    module: Any = here.prepare(losses_module(model))
    measured = evenly_spaced(dev, MOST_MEASURED)
    before = mean_loss(module, measured, here, config)
    state = State()
    if saved is not None:
        state, weights, moments = saved
        set_trained_weights(model, weights)
        optimizer.load_state_dict(moments)
        tell(f"going on after step {state.step}", None)
    vocabulary = Vocabulary(gguf) if config.judge_every else None

    loop_started, first = time.perf_counter(), state.step
    seen_tokens = 0
    waiting: list[Any] = []

    def looked() -> None:
        if waiting:
            state.losses += [round(each, 4) for each in here.reduce(torch.stack(waiting), "mean").tolist()]
            waiting.clear()
            if not all(each < float("inf") for each in state.losses[-LOOK:]):
                fail(f"The loss is not finite near step {state.step}; try a lower learning_rate.")
            tell(f"step {state.step} of {len(steps)}, loss {state.losses[-1]:.3f}", state.step / len(steps))

    module.train()
    while state.step < len(steps) and not is_over(state.judged, config.patience):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate_at(state.step, len(steps), config)
        # The dropout of a step depends on its number alone, so that an interrupted run draws the same.
        torch.manual_seed(hash((config.seed, state.step, here.process_index)))
        waiting.append(_backward(module, steps[state.step], here, config))
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seen_tokens += sum(len(row.ids) for row in steps[state.step])
        state.step += 1
        if state.step % LOOK == 0:
            looked()
        if config.judge_every and (state.step % config.judge_every == 0 or state.step == len(steps)):
            assert vocabulary is not None
            looked()
            result = judge_model(model, dev, vocabulary, here, config)
            tell(f"step {state.step}: right {result['right']}", None)
            if result["score"] >= max((each["score"] for each in state.judged), default=0.0):
                state.best = trained_weights(model)
            state.judged.append({"step": state.step, **result})
        if state.step % config.save_every == 0 and state.step < len(steps):
            looked()
            if here.is_main_process:
                save_run(out, key, state, trained_weights(model), optimizer)
            here.wait_for_everyone()
    looked()
    loop_seconds = time.perf_counter() - loop_started
    if state.best is not None:
        set_trained_weights(model, state.best)
    after = mean_loss(module, measured, here, config)
    report: dict[str, Any] = {
        "version": 2,
        "base": gguf.name,
        "device": torch.cuda.get_device_name() if device == "cuda" else f"CPU, {torch.get_num_threads()} threads",
        "processes": here.num_processes,
        "dtype": dtype,
        "python": platform.python_version(),
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__, "peft": peft.__version__},
        "config": asdict(config),
        "trained_parameters": sum(each.numel() for each in trained),
        "rows": dict(Counter(row.task for row in taught)),
        "dev_rows": dict(Counter(row.task for row in dev)),
        "replayed_rows": len(replayed),
        "steps": state.step,
        "planned_steps": len(steps),
        "resumed_at": first,
        "loss": state.losses,
        "judged": state.judged,
        "dev_loss_before": before,
        "dev_loss_after": after,
        "tokens_per_second": round(seen_tokens / max(loop_seconds, 1e-9)),
        "peak_gpu_bytes": torch.cuda.max_memory_allocated() if device == "cuda" else 0,
        "seconds": {"loop": round(loop_seconds, 1), "all": round(time.perf_counter() - started, 1)},
    }
    if here.is_main_process:
        save_adapter(model, out, gguf)
        write_config(config, out / "config.json")
        (out / "training.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
        (out / FILE).unlink(missing_ok=True)
    here.wait_for_everyone()
    return report


def _backward(module: Any, batch: Batch, here: Any, config: Config) -> Any:
    """Add the gradient of a batch's mean loss per answer token; returns this process's part of the loss.

    Processes take rows in turn, and gradients are averaged over them: hence the factor. A process without a row takes
    one that counts nothing, as all must take part.
    """
    own = batch[here.process_index :: here.num_processes]
    scale = here.num_processes / sum(len(row.answer) for row in batch)
    parts = passes(own or batch[:1], config.tokens_at_once)
    loss: Any = 0.0
    for number, part in enumerate(parts, 1):
        with nullcontext() if number == len(parts) else here.no_sync(module):
            mine = module(*padded(part, here.device)).sum() * (scale if own else 0.0)
            mine.backward()
        loss = loss + mine.detach()
    return loss


def is_over(judged: Sequence[dict[str, Any]], patience: int) -> bool:
    """Whether the last `patience` judgements were no better than one before.

    >>> is_over([{"score": 0.5}, {"score": 0.4}, {"score": 0.5}], 2)
    True
    """
    scores = [each["score"] for each in judged]
    return len(scores) > patience and max(scores[-patience:]) <= max(scores[:-patience])


def mean_loss(module: Any, rows: Sequence[Row], here: Any, config: Config) -> float | None:
    """Mean loss per answer token over all rows; None where there are none."""
    import torch
    from accelerate.utils import gather_object

    if not rows:
        return None
    total, count = 0.0, 0
    inner = here.unwrap_model(module)  # processes make different numbers of passes, which the wrapped module must not
    inner.eval()
    with torch.no_grad(), here.autocast(), as_it_is():
        for part in passes(rows[here.process_index :: here.num_processes], config.tokens_at_once):
            losses = inner(*padded(part, here.device))
            total, count = total + losses.sum().item(), count + losses.numel()
    inner.train()
    sums = gather_object([(total, count)])
    return float(sum(each for each, _ in sums) / sum(each for _, each in sums))


def judge_model(model: Any, rows: Sequence[Row], vocabulary: Vocabulary, here: Any, config: Config) -> dict[str, Any]:
    """Answer `judged` rows of each task and judge the answers: the share that is right by task, and of all by `mix`."""
    from accelerate.utils import gather_object

    asked = [
        row
        for task, _ in (config.mix if config.judged else ())  # of `evenly_spaced`, 0 is all
        for row in evenly_spaced([row for row in rows if row.task == task], config.judged)
    ]
    own = asked[here.process_index :: here.num_processes]
    with here.autocast(), as_it_is():
        answers = sample(model, [row.prompt for row in own], most=config.answer_tokens, at_once=config.answers_at_once)
    said = [
        (row.task, vocabulary.decode(row.answer), vocabulary.decode(answer))
        for row, (answer,) in zip(own, answers, strict=True)
    ]
    verdicts = judge_all(said, JUDGE_SECONDS)
    found = gather_object([(row.task, verdict.right) for row, verdict in zip(own, verdicts, strict=True)])
    right: dict[str, float] = {}
    for task, _ in config.mix:
        if of := [is_right for its, is_right in found if its == task]:
            right[task] = sum(of) / len(of)
    shares = {task: share for task, share in config.mix if task in right}
    whole = sum(shares.values()) or 1.0
    return {"right": right, "score": sum(right[task] * share for task, share in shares.items()) / whole}


@click.command()
@click.argument("examples", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder for the adapter.")
@click.option("--config", "file", type=click.Path(path_type=Path), help="TOML or JSON file of settings.")
@click.option("--set", "changes", multiple=True, metavar="NAME=VALUE", help="Change a setting; may be repeated.")
@click.option("--adapter", type=click.Path(path_type=Path), help="Folder of an earlier run to go on with.")
@click.option("--replay", type=click.Path(path_type=Path), help="Examples of earlier rounds, mixed in by `replay`.")
@model_option
def main(
    examples: Path, out: Path, file: Path | None, changes: tuple[str, ...], adapter: Path | None, replay: Path | None,
    model: str | None,
) -> None:  # fmt: skip
    """Train a LoRA adapter, or with rank 0 the model's projections, on EXAMPLES.

    EXAMPLES are JSON lines from `collect`, or the tokens that `rows` made of them.

    The settings and what they mean are those of warpwright_upskill/training/config.py.
    """
    config = read_config(file, changes)
    gguf = find_base(model).path
    with progress_bar("training", 100) as bar:
        progress: Progress = bar if int(os.environ.get("RANK", "0")) == 0 else silent
        progress("reading the examples", None)
        rows, left_out = rows_of(examples, gguf, config.max_tokens)
        replayed = [row for row in rows_of(replay, gguf, config.max_tokens)[0] if row.split == TRAIN] if replay else []
        for reason, count in left_out.items():
            progress(f"left out {count} examples: {reason}", None)
        report = train(
            gguf=gguf, rows=rows, out=out, config=config, replayed=replayed, start=adapter, progress=progress
        )
    if int(os.environ.get("RANK", "0")) == 0:
        click.echo(
            f"{sum(report['rows'].values())} rows, {report['steps']} steps, "
            f"loss {report['loss'][0]:.3f} -> {report['loss'][-1]:.3f}, "
            f"dev {_number(report['dev_loss_before'])} -> {_number(report['dev_loss_after'])}, "
            f"{report['tokens_per_second']} tokens/s, {report['seconds']['loop']:.0f} s on {report['device']}"
        )
        for judged in report["judged"]:
            click.echo(f"step {judged['step']}: right {judged['right']}")
        click.echo(f"adapter: {out}")


def _number(loss: float | None) -> str:
    return "none" if loss is None else f"{loss:.3f}"


if __name__ == "__main__":
    stage(main)
