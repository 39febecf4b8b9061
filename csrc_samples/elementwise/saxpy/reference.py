"""a * x + y, element by element."""

import torch


def reference(*, x: torch.Tensor, y: torch.Tensor, a: float, **sizes: int) -> dict[str, torch.Tensor]:
    return {"y": a * x + y}
