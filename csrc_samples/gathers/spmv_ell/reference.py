"""A sparse matrix in ELL format times a vector."""

import torch


def reference(
    *, columns: torch.Tensor, values: torch.Tensor, x: torch.Tensor, rows: int, per_row: int
) -> dict[str, torch.Tensor]:
    return {"y": (values * x[columns.long()]).reshape(rows, per_row).sum(dim=1)}
