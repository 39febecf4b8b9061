"""The row of the table that each token asks for."""

import torch


def reference(
    *, table: torch.Tensor, tokens: torch.Tensor, vocabulary: int, dim: int, **rest: int
) -> dict[str, torch.Tensor]:
    return {"out": table.reshape(vocabulary, dim)[tokens.long()].reshape(-1)}
