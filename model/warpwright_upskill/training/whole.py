"""Training of the projections' weights themselves, kept as their differences from the base's.

A small model learns more of a new language this way than through matrices of low rank beside frozen weights. What was
learned goes into one file with the base (`merge`), or is cut to a rank for an adapter (`export --rank`), which loses
some of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from warpwright_upskill.console import StageError
from warpwright_upskill.gemma import load_weights

CHANGES_FILE = "changes.safetensors"
PEFT = "base_model.model."


def whole_model(gguf: Path, targets: Sequence[str], device: str, start: Path | None = None) -> Any:
    """The base in float32, of which the projections `targets` are trained, with the changes in folder `start`."""
    model = load_weights(gguf, device="cpu", dtype="float32")
    for name, weights in model.named_parameters():
        weights.requires_grad_(name.removesuffix(".weight").rpartition(".")[2] in targets)
    if start is not None:
        add_changes(model, read_changes(start))
    return model.to(device)


def holds_changes(folder: Path) -> bool:
    return (folder / CHANGES_FILE).is_file()


def save_changes(model: Any, folder: Path, gguf: Path) -> None:
    """Write what training changed of each weight, as float16."""
    import torch
    from safetensors.torch import save_file

    base = dict(load_weights(gguf, device="cpu", dtype="float32").named_parameters())
    changed = {
        name: (weights.detach().float().cpu() - base[name]).to(torch.float16)
        for name, weights in model.named_parameters()
        if weights.requires_grad
    }
    folder.mkdir(parents=True, exist_ok=True)
    save_file(changed, folder / CHANGES_FILE)


def read_changes(folder: Path) -> dict[str, Any]:
    """The change of each weight by its name in torch, (rows, columns). Raises StageError."""
    from safetensors.numpy import load_file

    try:
        found: dict[str, Any] = load_file(folder / CHANGES_FILE)
        return found
    except OSError as error:
        raise StageError(
            f"{folder}: holds no trained weights ({error.strerror or error}); `train` writes them."
        ) from None
    except Exception as error:  # safetensors' own error class derives from Exception alone
        raise StageError(f"{folder}: holds damaged weights ({error}); train them anew.") from None


def add_changes(model: Any, changes: Mapping[str, Any]) -> None:
    """Add changes to the weights of a base. Raises StageError where they are of another one."""
    import torch

    weights = dict(model.named_parameters())
    with torch.no_grad():
        for name, change in changes.items():
            if name not in weights or weights[name].shape != change.shape:
                raise StageError(f"The trained weights {name} do not fit this base model; name theirs with --model.")
            weights[name].add_(torch.from_numpy(change).to(weights[name]))


def low_rank(changes: Mapping[str, Any], rank: int) -> dict[str, Any]:
    """LoRA matrices with alpha = rank, in peft's names, whose products are nearest to the changes (Eckart and Young).

    They have `rank` columns and rows also where a change has fewer: llama.cpp divides by what it finds.

    >>> import numpy as np
    >>> change = np.outer([1.0, 2.0, 3.0], [4.0, 5.0]).astype("float32")
    >>> found = low_rank({"model.layers.0.mlp.up_proj.weight": change}, 1)
    >>> sorted(name.removeprefix(PEFT) for name in found)
    ['model.layers.0.mlp.up_proj.lora_A.weight', 'model.layers.0.mlp.up_proj.lora_B.weight']
    >>> down, up = (found[name] for name in sorted(found))
    >>> bool(np.abs(up @ down - change).max() < 1e-5)
    True
    """
    import torch

    found: dict[str, Any] = {}
    for name, change in changes.items():
        left, sizes, right = torch.linalg.svd(torch.from_numpy(change).float(), full_matrices=False)
        missing = max(0, rank - len(sizes))
        left, right = (torch.nn.functional.pad(left, (0, missing)), torch.nn.functional.pad(right, (0, 0, 0, missing)))
        half = torch.nn.functional.pad(sizes, (0, missing))[:rank].sqrt()
        stem = PEFT + name.removesuffix(".weight")
        found[f"{stem}.lora_A.weight"] = (half[:, None] * right[:rank]).contiguous().numpy()
        found[f"{stem}.lora_B.weight"] = (left[:, :rank] * half).contiguous().numpy()
    return found
