"""One step of Adam; beta1 and beta2 are the floats that the kernel takes."""

import torch


def reference(*, rate: float, beta1: float, beta2: float, step: int, **arrays: torch.Tensor) -> dict[str, torch.Tensor]:
    beta1, beta2 = torch.tensor([beta1, beta2], dtype=torch.float32).tolist()
    g = arrays["g"]
    m = beta1 * arrays["m"] + (1.0 - beta1) * g
    v = beta2 * arrays["v"] + (1.0 - beta2) * g * g
    m_hat, v_hat = m / (1.0 - beta1**step), v / (1.0 - beta2**step)
    return {"w": arrays["w"] - rate * m_hat / (v_hat.sqrt() + 1e-8), "m": m, "v": v}
