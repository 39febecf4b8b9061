"""The sum of what stands before each element in its run of 256."""

import torch


def reference(*, counts: torch.Tensor, segments: int) -> dict[str, torch.Tensor]:
    runs = counts.reshape(segments, 256)
    before = torch.nn.functional.pad(runs[:, :-1], (1, 0)).cumsum(dim=1)
    return {"offsets": before.reshape(-1)}
