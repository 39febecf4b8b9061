"""The square of each element."""

import torch


def reference(*, x: torch.Tensor, n: int) -> dict[str, torch.Tensor]:
    return {"y": x[:n] * x[:n]}
