"""The softened accelerations of all bodies by all bodies; a body is x, y, z and a mass."""

import torch


def reference(*, bodies: torch.Tensor, n: int) -> dict[str, torch.Tensor]:
    x = bodies.reshape(n, 4)[:, :3]
    mass = bodies.reshape(n, 4)[:, 3]
    offset = x[None, :, :] - x[:, None, :]
    distance2 = (offset * offset).sum(dim=2) + 0.01
    pull = mass[None, :] / distance2**1.5
    return {"acceleration": (pull[:, :, None] * offset).sum(dim=1).reshape(-1)}
