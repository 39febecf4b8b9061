"""(level - zero) * scale of the element's group."""

import torch


def reference(*, levels: torch.Tensor, scales: torch.Tensor, zero: int, group: int, n: int) -> dict[str, torch.Tensor]:
    return {"values": (levels[:n] - zero).to(scales.dtype) * scales.repeat_interleave(group)[:n]}
