"""The squared distance to the nearest centroid, at most 1e30; distances that are no number are left out."""

import torch


def reference(*, points: torch.Tensor, centroids: torch.Tensor, count: int, dim: int) -> dict[str, torch.Tensor]:
    offset = points.reshape(count, 1, dim) - centroids.reshape(1, 64, dim)
    distance = torch.nan_to_num((offset * offset).sum(dim=2), nan=1e30, posinf=1e30)
    return {"nearest": distance.amin(dim=1).clamp(max=1e30)}
