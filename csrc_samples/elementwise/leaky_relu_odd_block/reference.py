"""Each element, times the slope where it is negative."""

import torch


def reference(*, slope: float, n: int, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"out": torch.nn.functional.leaky_relu(inputs["in"][:n], slope)}
