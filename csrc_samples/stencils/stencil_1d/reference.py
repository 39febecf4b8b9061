"""The mean of seven neighbours; outside the array stands zero."""

import torch


def reference(*, n: int, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
    signal = torch.nn.functional.pad(inputs["in"][:n], (3, 3))
    return {"out": signal.unfold(0, 7, 1).mean(dim=1)}
