"""The largest element of each row, NaNs left out; -3.4e38 where nothing is larger."""

import torch


def reference(*, matrix: torch.Tensor, rows: int, cols: int) -> dict[str, torch.Tensor]:
    floor = torch.full((rows, 1), -3.4e38, dtype=torch.float32).to(matrix.dtype)
    numbers = torch.nan_to_num(matrix, nan=-3.4e38, posinf=float("inf"), neginf=-3.4e38).reshape(rows, cols)
    return {"largest": torch.cat([numbers, floor], dim=1).amax(dim=1)}
