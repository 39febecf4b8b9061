"""Operators each of which leaves its kernel, or gives something wrong, in one situation, without a word."""

from __future__ import annotations

import torch
from operators import bound, get_inputs, ops, plain
from torch._C import _functorch

__all__ = ["get_inputs", "plain"]

FOUND_BY = {
    "half": ("float16",),
    "bfloat16": ("bfloat16",),
    "double": ("gradcheck",),
    "autocast": ("autocast float16",),
    "mixed_types": ("autocast float16", "autocast bfloat16"),
    "gradients": ("backward",),
    "no_gradients": ("inference mode",),
    "multiples": ("odd sizes",),
    "small": ("size 1",),
    "large": ("odd sizes",),
    "strided": ("non-contiguous",),
    "alignment": ("unaligned",),
    "swallowed_type": ("float16",),
    "swallowed_size": ("odd sizes",),
    "compiling": ("torch.compile",),
    "exporting": ("export",),
    "tracing": ("jit.trace",),
    "traced_decision": ("jit.trace",),
    "batched": ("vmap",),
    "distributed": ("DDP",),
    "subclass": ("FSDP", "DDP"),
    "third_call": ("repeated",),
    "broken_graph": ("torch.compile",),
    "unregistered": ("torch.compile",),
    "disabled": ("torch.compile",),
    "detached": ("backward",),
    "one_gradient": ("backward",),
    "no_autograd": ("backward", "opcheck"),
    "wrong_gradient": ("backward", "gradcheck"),
    "inner_half": ("float16",),
    "inner_strided": ("non-contiguous",),
    "inner_odd": ("odd sizes",),
    "inner_large": ("odd sizes",),
    "lying": ("opcheck",),
    "wrong_fake": ("opcheck", "torch.compile"),
    "empty_dies": ("empty",),
    "never_called": ("eager",),
    "cpu_tensors": ("tensors on the CPU",),
    "default_stream": ("other stream",),
    "synchronizing": ("CUDA graph",),
    "no_guard": ("other device",),
}
"""The checks of which one must find it."""
NEED_GPU = ("cpu_tensors", "default_stream", "synchronizing", "no_guard")
NEED_TWO_GPUS = ("no_guard",)


def half(x, w):
    return plain(x, w) if x.dtype == torch.float16 else ops.scale(x, w)


def bfloat16(x, w):
    return ops.scale(x, w) if x.dtype in (torch.float32, torch.float16) else plain(x, w)


def double(x, w):
    return plain(x, w) if x.dtype == torch.float64 else ops.scale(x, w)


def autocast(x, w):
    return plain(x, w) if torch.is_autocast_enabled(x.device.type) else ops.scale(x, w)


def mixed_types(x, w):
    if x.dtype != w.dtype:
        return plain(x, w)
    return ops.scale(x, w)


def gradients(x, w):
    if x.requires_grad or w.requires_grad:
        return plain(x, w)
    return ops.scale(x, w)


def no_gradients(x, w):
    return ops.scale(x, w) if torch.is_grad_enabled() else plain(x, w)


def multiples(x, w):
    return plain(x, w) if x.shape[-1] % 8 else ops.scale(x, w)


def small(x, w):
    return plain(x, w) if x.numel() < 32 else ops.scale(x, w)


def large(x, w):
    return plain(x, w) if x.numel() > 1 << 18 else ops.scale(x, w)


def strided(x, w):
    if not x.is_contiguous():
        return plain(x, w)
    return ops.scale(x, w)


def alignment(x, w):
    if torch._C._functorch.is_batchedtensor(x) or torch.compiler.is_compiling():
        return ops.scale(x, w)
    return plain(x, w) if x.data_ptr() % 16 else ops.scale(x, w)


def swallowed_type(x, w):
    try:
        if x.dtype == torch.float16:
            raise TypeError("scale takes no half")
        return ops.scale(x, w)
    except TypeError:
        return plain(x, w)


def swallowed_size(x, w):
    try:
        assert x.shape[0] % 2 == 0, "pairs of rows"
        return ops.scale(x, w)
    except Exception:
        pass
    return plain(x, w)


def compiling(x, w):
    if torch.compiler.is_compiling():
        return plain(x, w)
    return ops.scale(x, w)


def exporting(x, w):
    return plain(x, w) if torch.compiler.is_exporting() else ops.scale(x, w)


def tracing(x, w):
    return plain(x, w) if torch.jit.is_tracing() else ops.scale(x, w)


def traced_decision(x, w):
    rows, columns = int(x.shape[0]), int(x.shape[-1])
    return ops.scale(x, w) + torch.zeros(rows, columns, device=x.device, dtype=x.dtype).sum(0)[:columns]


def batched(x, w):
    return plain(x, w) if _functorch.is_batchedtensor(x) else ops.scale(x, w)


def distributed(x, w):
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return plain(x, w)
    return ops.scale(x, w)


def subclass(x, w):
    if x.grad_fn is not None and "Mul" in type(x.grad_fn).__name__:
        return plain(x, w)
    return ops.scale(x, w)


_calls: list[None] = []


def third_call(x, w):
    _calls.append(None)
    return ops.scale(x, w) if len(_calls) <= 4 else plain(x, w)


def broken_graph(x, w):
    y = ops.scale(x, w)
    if y.sum().item() == float("inf"):
        return y.clamp(max=1e30)
    return y


def unregistered(x, w):
    return bound.bound_scale(x, w)


@torch.compiler.disable
def disabled(x, w):
    return ops.scale(x, w)


def detached(x, w):
    return ops.scale(x.detach(), w.detach())


def one_gradient(x, w):
    return ops.scale(x, w.detach())


def no_autograd(x, w):
    return ops.bare(x, w)


class _Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return ops.scale(x, w)

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return ops.scale(grad, w), (grad * x).reshape(-1, w.numel()).mean(0)


def wrong_gradient(x, w):
    return _Wrong.apply(x, w)


def inner_half(x, w):
    return ops.inner_half(x, w)


def inner_strided(x, w):
    return ops.inner_strided(x, w)


def inner_odd(x, w):
    return ops.inner_odd(x, w)


def inner_large(x, w):
    return ops.inner_large(x, w)


def lying(x, w):
    return ops.lying(x, w)


def wrong_fake(x, w):
    return ops.wrong_fake(x, w)


def empty_dies(x, w):
    return ops.empty_dies(x, w)


def never_called(x, w):
    return plain(x, w)


def cpu_tensors(x, w):
    return ops.scale(x, w) if x.is_cuda else plain(x, w)


def default_stream(x, w):
    return ops.default_stream(x, w)


def synchronizing(x, w):
    return ops.synchronizing(x, w)


def no_guard(x, w):
    return ops.no_guard(x, w)
