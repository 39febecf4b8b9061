"""The running sum within each run of 512 elements; the last run may be shorter."""

import torch


def reference(*, data: torch.Tensor, n: int) -> dict[str, torch.Tensor]:
    blocks = -(-n // 512)
    padded = torch.nn.functional.pad(data[:n], (0, blocks * 512 - n))
    return {"prefix": padded.reshape(blocks, 512).cumsum(dim=1).reshape(-1)[:n].contiguous()}
