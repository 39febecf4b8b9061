"""Answers of the model in training, many prompts at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from warpwright.progress import Progress, silent

from warpwright_upskill.gemma import EOS, PAD


def sample(
    model: Any,
    prompts: Sequence[Sequence[int]],
    *,
    each: int = 1,
    temperature: float = 0.0,
    most: int = 160,
    seed: int = 0,
    at_once: int = 512,
    progress: Progress = silent,
) -> list[list[tuple[int, ...]]]:
    """`each` answers to each prompt, at most `most` tokens and without the end of sequence, `at_once` side by side.

    Temperature 0 takes the likeliest token. An answer that did not end is cut off there. The random state of torch is
    left as it was, so that training goes on as if nothing had been asked.
    """
    import torch
    import transformers

    answers: list[list[tuple[int, ...]]] = [[] for _ in prompts]
    order = sorted(range(len(prompts)), key=lambda at: (len(prompts[at]), at))
    device = next(model.parameters()).device
    chunk = max(1, at_once // each)
    settings = transformers.GenerationConfig(
        max_new_tokens=most,
        do_sample=temperature > 0,
        temperature=temperature if temperature > 0 else None,
        top_k=None,
        top_p=None,
        num_return_sequences=each,
        eos_token_id=EOS,
        pad_token_id=PAD,
    )
    was_training = model.training
    model.eval()
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices), torch.no_grad():
        for start in range(0, len(order), chunk):
            torch.manual_seed(seed + start)
            part = order[start : start + chunk]
            width = max(len(prompts[at]) for at in part)
            ids = torch.full((len(part), width), PAD)
            seen = torch.zeros((len(part), width), dtype=torch.long)
            for line, at in enumerate(part):
                ids[line, width - len(prompts[at]) :] = torch.tensor(prompts[at])
                seen[line, width - len(prompts[at]) :] = 1
            written = model.generate(
                input_ids=ids.to(device), attention_mask=seen.to(device), generation_config=settings
            )[:, width:].tolist()
            for line, answer in enumerate(written):
                answers[part[line // each]].append(_ended(answer))
            progress(f"{start + len(part)} of {len(order)} prompts answered", (start + len(part)) / len(order))
    model.train(was_training)
    return answers


def _ended(answer: Sequence[int]) -> tuple[int, ...]:
    """
    >>> _ended([7, 8, 1, 0, 0])
    (7, 8)
    """
    return tuple(answer[: answer.index(EOS)] if EOS in answer else answer)
