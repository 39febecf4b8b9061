"""Whether a statement about sizes is true, asked by trying it with numbers around those that sizes come in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

Values = Mapping[str, int]

SIZES = (
    1, 2, 3, 4, 7, 31, 32, 33, 64, 127, 255, 256, 257, 511, 1000, 1023, 1024, 1025, 4093, 4096, 65537, 1 << 20,
    33_333_333, 2**31 - 1,
)  # fmt: skip
"""Values that a number which the text leaves open is given."""
TRIALS = 400


def holds(test: Callable[[Values], bool | None], symbols: frozenset[str], fixed: Values | None = None) -> bool:
    """Whether a statement is true for every value tried of the symbols, those of `fixed` left as they are. Trials in
    which it has no truth are left out, unless that is all of them."""
    given = dict(fixed or {})
    names = sorted(symbols - given.keys())
    random, truths = Random(1), 0
    for trial in range(TRIALS if names else 1):
        values = {name: SIZES[trial] if trial < len(SIZES) else random.choice(SIZES) for name in names}
        truth = test({**given, **values})
        if truth is False:
            return False
        truths += truth is not None
    return truths > 0
