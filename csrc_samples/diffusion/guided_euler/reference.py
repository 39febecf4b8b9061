"""An Euler step along the guided noise estimate."""

import torch


def reference(
    *, guidance: float, sigma: float, sigma_next: float, n: int, **arrays: torch.Tensor
) -> dict[str, torch.Tensor]:
    without, guided = arrays["noise"][:n], arrays["noise"][n : 2 * n]
    direction = without + guidance * (guided - without)
    return {"latent": arrays["latent"] + (sigma_next - sigma) * direction}
