"""Arguments of a call in other types, sizes and layouts. Tensors may stand in lists and dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as tree

ODD = (1237, 853, 61, 37, 19, 11, 7, 5)
SMALL_ODD = (61, 37, 19, 11, 7, 5, 3, 2)
MOST_ELEMENTS = 1 << 24
LEAST_SIZE = 8
"""A whole number among the arguments that is an extent too, from here on, is that extent."""


def tensors_of(args: Any) -> list[torch.Tensor]:
    return [each for each in tree.tree_leaves(args) if isinstance(each, torch.Tensor)]


def mapped(args: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    return tree.tree_map_only(torch.Tensor, change, args)


def copied(args: Any) -> Any:
    """Fresh tensors with the same strides, which a call may write to."""
    return mapped(args, _copied)


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    own: torch.Tensor = tensor.detach()
    if not own.is_contiguous() or own.data_ptr() % 16:
        return own  # its place in memory is what is tried
    fresh = own.clone()
    fresh.requires_grad = tensor.requires_grad
    return fresh


def in_type(args: Any, dtype: torch.dtype) -> Any:
    return mapped(args, lambda each: each.detach().to(dtype) if each.is_floating_point() else each)


def first_in_type(args: Any, dtype: torch.dtype) -> Any:
    """The first tensor of floating point in that type, as an operator before this one leaves it under autocast."""
    floating = [each for each in tensors_of(args) if each.is_floating_point()]
    return mapped(args, lambda each: each.detach().to(dtype) if floating and each is floating[0] else each)


def with_gradients(args: Any) -> Any:
    return mapped(args, lambda e: e.detach().clone().requires_grad_() if e.is_floating_point() else e)


def extents(args: Any) -> list[int]:
    """The extents above 1, each once, in the order in which they come up."""
    return list(dict.fromkeys(size for each in tensors_of(args) for size in each.shape if size > 1))


def resized(args: Any, sizes: Mapping[int, int]) -> Any:
    """Each extent as `sizes` says, with elements drawn from those that were there."""
    generator = torch.Generator().manual_seed(7)

    def drawn(tensor: torch.Tensor) -> torch.Tensor:
        shape = [sizes.get(size, size) for size in tensor.shape]
        number = int(torch.Size(shape).numel())
        flat = tensor.detach().reshape(-1)
        if not flat.numel():
            return tensor.detach().new_zeros(shape)
        picked = torch.randint(flat.numel(), (number,), generator=generator)
        return flat[picked.to(flat.device)].reshape(shape)

    def number(each: Any) -> Any:
        is_size = isinstance(each, int) and not isinstance(each, bool) and each >= LEAST_SIZE
        return sizes.get(each, each) if is_size else each

    return tree.tree_map(lambda each: drawn(each) if isinstance(each, torch.Tensor) else number(each), args)


def odd(args: Any, wanted: Sequence[int] = ODD) -> Any:
    """1237 for the first extent, 853 for the second, and so on; smaller odd ones where that would be too much."""
    made = dict(zip(extents(args), wanted, strict=False))
    for each in tensors_of(args):
        if torch.Size([made.get(size, size) for size in each.shape]).numel() > MOST_ELEMENTS:
            return odd(args, SMALL_ODD) if wanted is ODD else resized(args, made)
    return resized(args, made)


def non_contiguous(args: Any) -> Any:
    return mapped(args, _strided)


def _strided(tensor: torch.Tensor) -> torch.Tensor:
    own = tensor.detach()
    if own.dim() >= 2:
        return own.transpose(-1, -2).contiguous().transpose(-1, -2)
    return torch.stack([own, own], -1)[..., 0] if own.dim() else own


def unaligned(args: Any) -> Any:
    """Each tensor one element behind the beginning of its memory."""

    def moved(tensor: torch.Tensor) -> torch.Tensor:
        room = tensor.detach().new_empty(tensor.numel() + 1)
        place = room[1:].view(tensor.shape)
        return place.copy_(tensor.detach())

    return mapped(args, moved)


def same(one: Any, other: Any, tolerance: float) -> str:
    """Empty, or how two results differ: the norm of the difference against that of the second."""
    ones, others = tensors_of(one), tensors_of(other)
    if len(ones) != len(others):
        return f"{len(ones)} tensors in place of {len(others)}"
    for number, (a, b) in enumerate(zip(ones, others, strict=True)):
        which = f"result {number}: " if len(ones) > 1 else ""
        if a.shape != b.shape:
            return f"{which}the shape {tuple(a.shape)} in place of {tuple(b.shape)}"
        if not a.is_floating_point() and not a.is_complex():
            if not torch.equal(a.cpu(), b.cpu().to(a.dtype)):
                return f"{which}other values"
            continue
        kind = torch.complex128 if a.is_complex() else torch.float64
        mine, wanted = a.detach().cpu().to(kind), b.detach().cpu().to(kind)
        if not torch.equal(mine.isnan(), wanted.isnan()):
            return f"{which}NaN at other places"
        finite = mine.isfinite() & wanted.isfinite()
        apart = float((mine[finite] - wanted[finite]).norm())
        size = float(wanted[finite].norm())
        if apart > tolerance * size + 1e-12 * finite.sum().item():
            return f"{which}a relative difference of {apart / size if size else float('inf'):.2g}"
    return ""
