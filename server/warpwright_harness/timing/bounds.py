"""How fast could any kernel be at a shape? Bytes and operations counted, over the rates measured on this machine.

Counted are the arrays once (in-out ones twice) and, where torch counts them on the reference, the operations of its
matrix products, convolutions and attentions. Where torch counts none, the bound is one of bytes alone, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from warpwright_harness.buffers import ArraySpec
from warpwright_harness.timing.rates import MEMORY, RATES

MARGIN = 1.1
"""How far below a bound a time must lie to be called impossible: rates are measured, too."""


@dataclass(frozen=True, slots=True)
class Bound:
    """`us` is how long the work takes at the measured rates, `limited_by` "memory" or "arithmetic", `what` the work in
    words. Below `least_cold_us` and `least_warm_us` no kernel can be that does it: what may stay in the second-level
    cache is left out, operations run at the fastest rate of any unit, and MARGIN is taken off."""

    us: float
    limited_by: str
    what: str
    bytes: int
    operations: float
    rate: float
    least_cold_us: float
    least_warm_us: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def bound_of(arrays: Sequence[ArraySpec], operations: float, rates: Mapping[str, float], l2_bytes: int) -> Bound | None:
    """The bound for arrays of these extents; None where the machine's rates are not known. Only those of memory are
    needed where no operations were counted.

    `rates` has the keys of `rates.RATES`, per second; `operations` is 0 where they were not counted.
    """
    if not all(name in rates for name in (RATES if operations else MEMORY)):
        return None
    read = sum(_bytes(s) for s in arrays if s.is_input)
    written = sum(_bytes(s) for s in arrays if s.is_output)
    rate_name = _arithmetic(arrays)
    by_memory = (read + written) / rates["dram_bytes"] * 1e6
    by_arithmetic = least_arithmetic = 0.0
    if operations:
        fastest = rates["fp64"] if rate_name == "fp64" else max(rates[n] for n in ("fp32", "fp16_tensor"))
        by_arithmetic, least_arithmetic = operations / rates[rate_name] * 1e6, operations / fastest * 1e6
    # An index array says that others are read in places, nobody knows how many.
    whole = not any(s.limit is not None for s in arrays)
    least_cold = (read + max(0, written - l2_bytes)) / rates["dram_bytes"] * 1e6 if whole else 0.0
    least_warm = (read + written) / rates["l2_bytes"] * 1e6 if whole else 0.0
    memory_bound = by_memory >= by_arithmetic
    moved = f"moving {_scaled(read + written)}B at {_scaled(rates['dram_bytes'])}B/s"
    arithmetic = rates[rate_name] if operations else 0.0
    counted = f"{_scaled(operations)}FLOP at {_scaled(arithmetic)}FLOP/s ({_UNITS[rate_name]})"
    return Bound(
        us=max(by_memory, by_arithmetic),
        limited_by="memory" if memory_bound else "arithmetic",
        what=(moved if operations else f"{moved} (operations not counted)") if memory_bound else counted,
        bytes=read + written,
        operations=operations,
        rate=rates["dram_bytes"] if memory_bound else arithmetic,
        least_cold_us=max(least_cold, least_arithmetic) / MARGIN,
        least_warm_us=max(least_warm, least_arithmetic) / MARGIN,
    )


_UNITS = {"fp32": "FP32", "fp64": "FP64", "fp16_tensor": "FP16 on tensor cores"}


def _bytes(spec: ArraySpec) -> int:
    return spec.scalars * int(spec.dtype.itemsize)


def _arithmetic(arrays: Sequence[ArraySpec]) -> str:
    """The rate that counts: of the widest floating-point type among the arrays."""
    scalars = {s.scalar for s in arrays}
    if "float64" in scalars:
        return "fp64"
    return "fp32" if "float32" in scalars or not scalars & {"float16", "bfloat16"} else "fp16_tensor"


def _scaled(value: float) -> str:
    """A number with its decimal prefix.

    >>> _scaled(201326592), _scaled(4.31e12), _scaled(12)
    ('201 M', '4.31 T', '12 ')
    """
    for prefix in ("", "k", "M", "G", "T"):
        if value < 1000 or prefix == "T":
            return f"{value:.3g} {prefix}"
        value /= 1000
    raise AssertionError
