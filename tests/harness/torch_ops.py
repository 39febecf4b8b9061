"""Operators with and without silent fallbacks, for `test_torch_check`; imported in the process that checks them."""

import os
import signal

import torch


@torch.library.custom_op("checked::scale", mutates_args=())
def scale(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x * w


@scale.register_fake
def _(x, w):
    return torch.empty_like(x)


scale.register_autograd(
    lambda ctx, grad: (grad * ctx.saved_tensors[1], (grad * ctx.saved_tensors[0]).sum(0)),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)


def get_inputs():
    return torch.randn(16, 32), torch.randn(32)


def plain(x, w):
    return x * w


def halves(x, w):
    if x.dtype != torch.float32:
        return x * w
    return scale(x, w)


def swallows(x, w):
    try:
        if x.shape[1] % 4:
            raise ValueError("a multiple of 4 is wanted")
        return scale(x, w)
    except Exception:
        return x * w


def trains(x, w):
    return x * w if x.requires_grad else scale(x, w)


def compiles(x, w):
    return x * w if torch.compiler.is_compiling() else scale(x, w)


def joins(x, w):
    return x * w if torch.distributed.is_initialized() else scale(x, w)


def detached(x, w):
    return scale(x.detach(), w.detach())


def off_by_one(x, w):
    y = scale(x, w)
    return y + 1 if x.dtype == torch.bfloat16 else y


def crashes(x, w):
    if x.dtype == torch.float16:
        os.kill(os.getpid(), signal.SIGSEGV)
    return swallows(x, w)


def hangs(x, w):
    while x.dtype == torch.float16:
        pass
    return scale(x, w)
