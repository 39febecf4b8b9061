"""input * weights^T + bias."""

import torch


def reference(*, batch: int, inputs: int, outputs: int, **arrays: torch.Tensor) -> dict[str, torch.Tensor]:
    weights = arrays["weights"].reshape(outputs, inputs)
    product = arrays["input"].reshape(batch, inputs) @ weights.T
    return {"output": (product + arrays["bias"]).reshape(-1)}
