"""What training changed of a weight, in a few bits for each number.

Changes of fine-tuning are small beside the weights, and their values lie about as a normal distribution's: a code of 2
bits with a scale for each group of a row keeps nine tenths of their square sum (cf. Liu et al., BitDelta, 2024, with 1
bit). The levels are those of least mean squared error for a normal distribution (Max, Quantizing for minimum
distortion, 1960).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

GROUP = 128
"""Columns that share a scale; all of them where they are no multiple of it."""
_LEVELS = {
    1: (0.7979,),
    2: (0.4528, 1.5104),
    3: (0.2451, 0.7560, 1.3439, 2.1520),
    4: (0.1284, 0.3881, 0.6568, 0.9424, 1.2562, 1.6181, 2.0690, 2.7326),
}
_FITS = 4
"""How often scales and codes are fitted to each other."""


@dataclass(frozen=True, slots=True)
class Codes:
    """A matrix of (rows, columns). `planes` are the bits of the codes, lowest first, eight columns to a byte: (bits,
    rows, columns / 8); `scales` are float16, (rows, groups)."""

    planes: Any
    scales: Any


def codes_of(change: Any, bits: int) -> Codes:
    """Codes of a matrix of floats, whose columns are a multiple of 8.

    >>> import numpy as np
    >>> change = np.random.default_rng(0).normal(0, 1e-3, (64, 256)).astype("float32")
    >>> for bits in (1, 2, 3):
    ...     error = change_of(codes_of(change, bits)) - change
    ...     print(bits, round(float((error**2).sum() / (change**2).sum()), 2))
    1 0.36
    2 0.12
    3 0.03
    """
    import numpy as np

    positive = np.array(_LEVELS[bits], dtype=np.float32)
    levels = np.concatenate([-positive[::-1], positive])
    middles = (levels[1:] + levels[:-1]) / 2
    rows, columns = change.shape
    groups = np.asarray(change, dtype=np.float32).reshape(rows, -1, columns if columns % GROUP else GROUP)
    scales = np.sqrt((groups**2).mean(axis=2))
    codes = np.zeros(groups.shape, dtype=np.uint8)
    for _ in range(_FITS):
        codes = np.searchsorted(middles, groups / np.maximum(scales, 1e-30)[:, :, None]).astype(np.uint8)
        values = levels[codes]
        scales = (values * groups).sum(axis=2) / (values**2).sum(axis=2)
    flat = codes.reshape(rows, columns)
    planes = np.stack([np.packbits(flat >> bit & 1, axis=1) for bit in range(bits)])
    return Codes(planes, scales.astype(np.float16))


def change_of(codes: Codes) -> Any:
    """The matrix that codes stand for, in float32."""
    import numpy as np

    bits, rows = codes.planes.shape[:2]
    positive = np.array(_LEVELS[bits], dtype=np.float32)
    levels = np.concatenate([-positive[::-1], positive])
    flat = sum(np.unpackbits(plane, axis=1) << bit for bit, plane in enumerate(codes.planes))
    groups = levels[flat].reshape(rows, codes.scales.shape[1], -1) * codes.scales.astype(np.float32)[:, :, None]
    return groups.reshape(rows, -1)
