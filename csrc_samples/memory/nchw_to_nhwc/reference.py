"""The images with their channels innermost."""

import torch


def reference(*, nchw: torch.Tensor, images: int, channels: int, pixels: int) -> dict[str, torch.Tensor]:
    return {"nhwc": nchw.reshape(images, channels, pixels).transpose(1, 2).reshape(-1)}
