"""The price of European call options after Black and Scholes."""

import torch


def reference(
    *, price: torch.Tensor, strike: torch.Tensor, years: torch.Tensor, rate: float, volatility: float, **rest: int
) -> dict[str, torch.Tensor]:
    root = volatility * years.sqrt()
    d1 = ((price / strike).log() + (rate + 0.5 * volatility * volatility) * years) / root
    cdf_1 = 0.5 * torch.erfc(-d1 * 0.5**0.5)
    cdf_2 = 0.5 * torch.erfc(-(d1 - root) * 0.5**0.5)
    return {"call": price * cdf_1 - strike * torch.exp(-rate * years) * cdf_2}
