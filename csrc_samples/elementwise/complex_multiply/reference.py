"""The product of n complex numbers, each stored as two floats."""

import torch


def reference(*, a: torch.Tensor, b: torch.Tensor, n: int) -> dict[str, torch.Tensor]:
    product = torch.view_as_complex(a.reshape(n, 2)) * torch.view_as_complex(b.reshape(n, 2))
    return {"out": torch.view_as_real(product).reshape(-1)}
