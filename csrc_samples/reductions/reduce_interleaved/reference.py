"""The sum of each run of 256 elements; the last run may be shorter."""

import torch


def reference(*, n: int, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
    blocks = -(-n // 256)
    padded = torch.nn.functional.pad(inputs["in"][:n], (0, blocks * 256 - n))
    return {"sums": padded.reshape(blocks, 256).sum(dim=1)}
