"""The model that is trained: LoRA matrices beside frozen Gemma weights, in four bits on request, or the weights."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from warpwright_upskill.console import StageError
from warpwright_upskill.gemma import load_weights, quiet_warnings
from warpwright_upskill.gguf_file import fingerprint, read_gguf
from warpwright_upskill.rows import Row
from warpwright_upskill.training.config import Config
from warpwright_upskill.training.whole import (
    add_changes,
    holds_changes,
    low_rank,
    read_changes,
    save_changes,
    whole_model,
)

BASE_FILE = "base.json"


def trained_model(gguf: Path, config: Config, device: str, dtype: str, start: Path | None = None) -> Any:
    """The base with what is trained: LoRA matrices of `rank` beside its weights, or, of rank 0, its projections.

    Training goes on from what the folder `start` holds; matrices begin with what they can hold of trained weights.
    """
    if config.rank:
        model = with_lora(gguf, config, device, dtype, start)
    else:
        if start is not None:
            check_base(start, gguf)
        model = whole_model(gguf, config.targets, device, start)
    if device.startswith("cuda"):
        _compile_layers(model)
    return model


def _compile_layers(model: Any) -> None:
    """Fuse what a layer does between its products: a step of a small model is bound by its launches.

    A layer that cannot be compiled runs as it is.
    """
    import torch

    torch._dynamo.config.suppress_errors = True
    torch._dynamo.config.recompile_limit = 64
    for layer in causal_of(model).model.layers:
        layer.compile(dynamic=True)


def as_it_is() -> Any:
    """A context in which compiled layers run as they are: compiling them for a few passes costs more than it saves."""
    import torch

    return torch.compiler.set_stance("force_eager")


def causal_of(model: Any) -> Any:
    """The Gemma3ForCausalLM in a model that is trained or taught."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def with_lora(gguf: Path, config: Config, device: str, dtype: str, start: Path | None = None) -> Any:
    """A peft model whose LoRA matrices are new, or those of the adapter in folder `start`, and are trained."""
    import peft
    import torch

    base = load_weights(gguf, device="cpu", dtype=dtype)
    if config.quantise == "nf4":
        _to_four_bits(base, config.targets)
    base.to(device)
    if config.recompute:
        base.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        base.enable_input_require_grads()
    if start is not None and not holds_changes(start):
        return load_adapter(base, start, gguf, is_trainable=True)
    lora = peft.LoraConfig(
        r=config.rank,
        lora_alpha=config.alpha,
        target_modules=list(config.targets),
        lora_dropout=config.dropout,
        task_type="CAUSAL_LM",
    )
    with quiet_warnings():
        model = peft.get_peft_model(base, lora)
    if start is not None:
        check_base(start, gguf)
        matrices = low_rank(read_changes(start), config.rank)
        parts = {".lora_A.": 1.0, ".lora_B.": config.rank / config.alpha}
        scaled = {name: torch.from_numpy(matrices[name] * parts[name[-14:-6]]) for name in matrices}
        peft.set_peft_model_state_dict(model, scaled)
    return model


def load_adapter(base: Any, folder: Path, gguf: Path, *, is_trainable: bool = False) -> Any:
    """The base with a trained adapter, or with trained weights in the place of its own.

    Raises StageError for what was trained on another base.
    """
    import peft

    check_base(folder, gguf)
    if holds_changes(folder):
        add_changes(base, read_changes(folder))
        return base
    try:
        with quiet_warnings():
            return peft.PeftModel.from_pretrained(base, str(folder), is_trainable=is_trainable)
    except RuntimeError:
        raise StageError(f"{folder}: the adapter does not fit {gguf.name}; it is of another base model.") from None
    except (OSError, ValueError, TypeError, KeyError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise StageError(f"{folder}: holds no trained adapter ({reason}); `train` writes it.") from None


def save_adapter(model: Any, folder: Path, gguf: Path) -> None:
    """Write the adapter, or the changes of trained weights, and which model it is of."""
    folder.mkdir(parents=True, exist_ok=True)
    if causal_of(model) is model:
        save_changes(model, folder, gguf)
    else:
        with quiet_warnings():
            model.save_pretrained(str(folder))
    write_base(gguf, folder)


def write_base(gguf: Path, folder: Path) -> None:
    """Note which model what is in `folder` is of."""
    said = {"name": gguf.name, "fingerprint": fingerprint(read_gguf(gguf))}
    (folder / BASE_FILE).write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")


def check_base(folder: Path, gguf: Path) -> None:
    """Raises StageError where the adapter in `folder` was trained on other layers than those of `gguf`."""
    try:
        said = json.loads((folder / BASE_FILE).read_text(encoding="utf-8"))
        name, of = str(said["name"]), str(said["fingerprint"])
    except OSError as error:
        raise StageError(f"{folder}: holds no trained adapter ({error.strerror}); `train` writes it.") from None
    except (ValueError, KeyError, TypeError):
        raise StageError(f"{folder}/{BASE_FILE}: does not say which model the adapter is of; train it anew.") from None
    if of != fingerprint(read_gguf(gguf)):
        raise StageError(f"{folder}: was trained on {name}, not on {gguf.name}; name its base with --model.")


def _to_four_bits(base: Any, targets: Sequence[str]) -> None:
    """Replace the adapted projections by ones with frozen NF4 weights; moving them to the device quantises them."""
    import bitsandbytes
    import torch

    for parent in list(base.modules()):
        for name, child in list(parent.named_children()):
            if name in targets and isinstance(child, torch.nn.Linear):
                dtype = child.weight.dtype
                four = bitsandbytes.nn.Linear4bit(
                    child.in_features, child.out_features, bias=False, compute_dtype=dtype, quant_type="nf4"
                )
                four.weight = bitsandbytes.nn.Params4bit(child.weight.data, requires_grad=False, quant_type="nf4")
                # Else its weights are packed for inference at the first answer and have no gradient from then on.
                four.support_avx512bf16_for_cpu = False
                setattr(parent, name, four)
    base.is_loaded_in_4bit = True  # what peft asks


def trained_weights(model: Any) -> dict[str, Any]:
    """What is trained, as it is now."""
    return {name: each.detach().cpu().clone() for name, each in model.named_parameters() if each.requires_grad}


def set_trained_weights(model: Any, weights: dict[str, Any]) -> None:
    import torch

    with torch.no_grad():
        for name, each in model.named_parameters():
            if each.requires_grad:
                each.copy_(weights[name])


def padded(rows: Sequence[Row], device: Any) -> tuple[Any, Any, Any]:
    """(ids, positions that predict the answers, their targets) of one padded batch, for `losses_module`.

    Padding stands behind the rows, where a causal model does not see it; no mask is needed. Lengths are multiples
    of 16, so that a compiled layer meets few of them.
    """
    import torch

    width = -(-max(len(row.ids) for row in rows) // 16) * 16
    ids = torch.zeros((len(rows), width), dtype=torch.long)
    predicts = torch.zeros((len(rows), width), dtype=torch.bool)
    for at, row in enumerate(rows):
        ids[at, : len(row.ids)] = torch.tensor(row.ids)
        predicts[at, row.answer_at - 1 : len(row.ids) - 1] = True
    targets = torch.tensor([each for row in rows for each in row.answer])
    return ids.to(device), predicts.to(device), targets.to(device)


def losses_module(model: Any) -> Any:
    """A module whose forward gives the negative log-likelihood of each answer token, row after row.

    Only the answers' positions go through the output matrix: with 262,144 columns it costs as much as all the layers.
    """
    import torch

    class Losses(torch.nn.Module):  # type: ignore[misc]  # torch is untyped here
        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, ids: Any, predicts: Any, targets: Any) -> Any:
            causal = causal_of(self.inner)
            hidden = causal.model(input_ids=ids, use_cache=False).last_hidden_state
            logits = causal.lm_head(hidden[predicts]).float()
            return torch.nn.functional.cross_entropy(logits, targets, reduction="none")

    return Losses()
