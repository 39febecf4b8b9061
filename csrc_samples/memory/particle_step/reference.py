"""x, y, z of each particle move by dt * (vx, vy, vz); the other five members stay."""

import torch


def reference(*, particles: torch.Tensor, dt: float, **rest: torch.Tensor) -> dict[str, torch.Tensor]:
    moved = particles.reshape(-1, 8).clone()
    moved[:, :3] += dt * moved[:, 3:6]
    return {"particles": moved.reshape(-1)}
