"""The mean of Gaussians of the given width around the points, at each query."""

import torch


def reference(
    *, queries: torch.Tensor, points: torch.Tensor, width: float, n: int, **rest: int
) -> dict[str, torch.Tensor]:
    u = (queries[:, None] - points[None, :]) / width
    return {"density": torch.exp(-0.5 * u * u).sum(dim=1) / (n * width * 2.5066282746)}
