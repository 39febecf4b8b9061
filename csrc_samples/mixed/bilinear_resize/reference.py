"""The image at dst_w x dst_h points between its pixels; the points are computed in float32, as in the kernel."""

import torch


def reference(*, src: torch.Tensor, src_w: int, src_h: int, dst_w: int, dst_h: int) -> dict[str, torch.Tensor]:
    if src.numel() == 0:
        return {"dst": src.new_zeros(dst_w * dst_h)}
    image = src.reshape(src_h, src_w)
    fy = torch.arange(dst_h, dtype=torch.float32) * (src_h - 1) / max(dst_h, 1)
    fx = torch.arange(dst_w, dtype=torch.float32) * (src_w - 1) / max(dst_w, 1)
    y0, x0 = fy.long(), fx.long()
    y1, x1 = (y0 + 1).clamp(max=src_h - 1), (x0 + 1).clamp(max=src_w - 1)
    wy, wx = (fy - y0).to(src.dtype)[:, None], (fx - x0).to(src.dtype)[None, :]
    top = (1.0 - wx) * image[y0][:, x0] + wx * image[y0][:, x1]
    bottom = (1.0 - wx) * image[y1][:, x0] + wx * image[y1][:, x1]
    return {"dst": ((1.0 - wy) * top + wy * bottom).reshape(-1)}
