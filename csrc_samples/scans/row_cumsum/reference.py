"""The running sum along each row of a rows x cols matrix."""

import torch


def reference(*, rows: int, cols: int, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"out": inputs["in"].reshape(rows, cols).cumsum(dim=1).reshape(-1)}
