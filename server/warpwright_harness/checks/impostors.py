"""Would something that computes nothing pass? Then the comparison proves nothing, and the problem is at fault.

Impostors are an output of zeros, of its own mean, of the means along one axis of the shape, and, of an array that is
read and written, what it held before. One that equals the original's output exactly is no impostor but the answer;
where the output is not finite, all hold what it holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch

from warpwright_harness.buffers import ArraySpec, bits
from warpwright_harness.checks.compare import ULPS, compare

LEAST_ELEMENTS = 32
"""Fewer values say nothing about an output: one number is its own mean."""


def impostor_that_passes(
    spec: ArraySpec,
    expected: torch.Tensor,
    due: torch.Tensor,
    tolerance: float,
    given: torch.Tensor | None,
    shape: Mapping[str, int],
) -> str:
    """What passes without computing anything, in words such as "zero everywhere"; "" where nothing does.

    `due` says which elements are to be written, `given` what an in-out array held before.
    """
    if int(due.sum()) < LEAST_ELEMENTS:
        return ""
    known = due & torch.isfinite(expected)
    if not bool(known.any()):
        return ""
    wide = expected.double()
    ulps = ULPS * torch.finfo(spec.dtype).eps if spec.is_float else 0.0
    allowed = max(tolerance, 0.0) + ulps * wide.abs()
    for words, made in _impostors(expected, known, given, shape):
        if bool((known & ((made.double() - wide).abs() > allowed)).any()):
            continue  # as `compare` would find, with fewer kernels: nearly every impostor ends here
        impostor = torch.where(torch.isfinite(expected), made, expected)
        is_answer = bool((bits(impostor[due]) == bits(expected[due])).all())
        if not is_answer and not compare(spec, impostor, expected, (due, due), tolerance).why:
            return words
    return ""


def _impostors(
    expected: torch.Tensor, known: torch.Tensor, given: torch.Tensor | None, shape: Mapping[str, int]
) -> Iterator[tuple[str, torch.Tensor]]:
    yield "zero everywhere", torch.zeros_like(expected)
    yield (
        "its mean everywhere",
        torch.full_like(expected, float(torch.where(known, expected.double(), 0.0).sum() / known.sum())),
    )
    if given is not None:
        yield "what it held before", given
    for name, size in shape.items():
        if 1 < size < expected.numel() and expected.numel() % size == 0 and bool(known.all()):
            rows = expected.double().view(-1, size)
            for axis in (0, 1):
                means = rows.mean(dim=axis, keepdim=True).expand(rows.shape)
                yield f"its mean along {name}", means.reshape(-1).to(expected.dtype)
