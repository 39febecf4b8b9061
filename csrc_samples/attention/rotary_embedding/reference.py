"""Pairs of features, rotated by position * 10000^(-2 pair / dim)."""

import torch


def reference(*, q: torch.Tensor, positions: int, dim: int) -> dict[str, torch.Tensor]:
    pairs = dim // 2
    rotated = q.reshape(positions, dim).clone()
    frequency = 10000.0 ** (-2.0 * torch.arange(pairs, dtype=torch.float64) / max(dim, 1))
    angle = (torch.arange(positions, dtype=torch.float64)[:, None] * frequency).to(torch.float32).to(q.dtype)
    a, b = rotated[:, 0 : 2 * pairs : 2].clone(), rotated[:, 1 : 2 * pairs : 2].clone()
    rotated[:, 0 : 2 * pairs : 2] = a * angle.cos() - b * angle.sin()
    rotated[:, 1 : 2 * pairs : 2] = a * angle.sin() + b * angle.cos()
    return {"q": rotated.reshape(-1)}
