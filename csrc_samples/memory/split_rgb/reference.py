"""The three planes of an image of interleaved colours."""

import torch


def reference(*, rgb: torch.Tensor, pixels: int) -> dict[str, torch.Tensor]:
    planes = rgb.reshape(pixels, 3).T.contiguous()
    return {"red": planes[0], "green": planes[1], "blue": planes[2]}
