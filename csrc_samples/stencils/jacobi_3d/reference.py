"""One Jacobi sweep; the border of v stays as it is."""

import torch


def reference(*, nx: int, ny: int, nz: int, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
    u, f, v = (inputs[name].reshape(nz, ny, nx) for name in ("u", "f", "v"))
    v = v.clone()
    if min(nx, ny, nz) > 2:
        middle = slice(1, -1)
        around = u[middle, middle, :-2] + u[middle, middle, 2:] + u[middle, :-2, middle] + u[middle, 2:, middle]
        around = around + u[:-2, middle, middle] + u[2:, middle, middle]
        v[middle, middle, middle] = (around - f[middle, middle, middle]) / 6.0
    return {"v": v.reshape(-1)}
