"""Operators whose kernel runs wherever they give a result; some refuse what they do not take."""

from __future__ import annotations

import torch
from operators import get_inputs, ops, plain

__all__ = ["get_inputs", "plain"]

NAMES = (
    "direct", "refuses_half", "refuses_strided", "contiguous", "as_module", "as_function", "writes_into", "two_calls",
    "with_epilogue", "rows_first", "casts", "with_vmap", "drops_out", "keyword", "frozen",
)  # fmt: skip


def direct(x, w):
    return ops.scale(x, w)


def refuses_half(x, w):
    if x.dtype in (torch.float16, torch.bfloat16):
        raise TypeError("refuses_half takes float and double")
    return ops.scale(x, w)


def refuses_strided(x, w):
    torch._check(x.is_contiguous(), lambda: "x must be contiguous")
    return ops.scale(x, w)


def contiguous(x, w):
    return ops.scale(x.contiguous(), w.contiguous())


class as_module(torch.nn.Module):  # noqa: N801
    def forward(self, x, w):
        return ops.scale(x, w)


class _Function(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, w):
        return ops.scale(x, w)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return ops.scale(grad, w), (grad * x).reshape(-1, w.numel()).sum(0)


def as_function(x, w):
    return _Function.apply(x, w)


def writes_into(x, w):
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if torch.is_grad_enabled() and (x.requires_grad or w.requires_grad):
        raise RuntimeError("writes_into has no derivative")
    ops.scale_into(x, w, y)
    return y


def two_calls(x, w):
    return ops.scale(ops.scale(x, w), torch.reciprocal(w.abs() + 1)) * (w.abs() + 1)


def with_epilogue(x, w):
    return ops.scale(x, w).relu() - ops.scale(x, w).neg().relu()


def rows_first(x, w):
    return ops.scale(x.flatten(0, -2), w).unflatten(0, x.shape[:-1])


def casts(x, w):
    return ops.scale(x, w.to(x.dtype))


@torch.library.custom_op("fallbacks::mapped", mutates_args=())
def mapped(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return ops.scale(x, w)


mapped.register_fake(lambda x, w: torch.empty_like(x, memory_format=torch.contiguous_format))
mapped.register_autograd(
    lambda ctx, g: (g * ctx.saved_tensors[1], (g * ctx.saved_tensors[0]).reshape(-1, g.shape[-1]).sum(0)),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)


@mapped.register_vmap
def _(info, in_dims, x, w):
    x = x.movedim(in_dims[0], 0) if in_dims[0] is not None else x.expand(info.batch_size, *x.shape)
    if in_dims[1] is None:
        return mapped(x, w), 0
    return mapped(x, torch.ones_like(w.movedim(in_dims[1], 0)[0])) * w.movedim(in_dims[1], 0)[:, None], 0


def with_vmap(x, w):
    return mapped(x, w)


def drops_out(x, w):
    return torch.nn.functional.dropout(ops.scale(x, w), 0.0)


def keyword(x, w):
    return ops.scale(x=x, w=w)


def frozen(x, w):
    with torch.no_grad():
        doubled = ops.scale(w[None], torch.full_like(w, 2.0))[0]
    return ops.scale(x, w) + ops.scale(x, doubled.detach() * 0)
