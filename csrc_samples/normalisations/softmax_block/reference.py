"""The softmax of each row of a rows x cols matrix."""

import torch


def reference(*, x: torch.Tensor, rows: int, cols: int) -> dict[str, torch.Tensor]:
    return {"p": torch.softmax(x.reshape(rows, cols), dim=1).reshape(-1)}
