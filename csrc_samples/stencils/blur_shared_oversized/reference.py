"""Half of each element and a quarter of both neighbours; outside stands zero."""

import torch


def reference(*, signal: torch.Tensor, n: int) -> dict[str, torch.Tensor]:
    padded = torch.nn.functional.pad(signal[:n], (1, 1))
    return {"blurred": 0.25 * padded[:-2] + 0.5 * padded[1:-1] + 0.25 * padded[2:]}
