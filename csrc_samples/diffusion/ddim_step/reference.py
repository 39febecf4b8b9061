"""One DDIM step without added noise."""

import torch


def reference(
    *, x: torch.Tensor, noise: torch.Tensor, alpha: float, alpha_next: float, **rest: int
) -> dict[str, torch.Tensor]:
    clean = (x - (1.0 - alpha) ** 0.5 * noise) / alpha**0.5
    return {"x": alpha_next**0.5 * clean + (1.0 - alpha_next) ** 0.5 * noise}
