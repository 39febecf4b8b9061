"""Builds the operators for the machine at hand, and registers their fake kernels and derivatives."""

from __future__ import annotations

from pathlib import Path

import torch
from torch.utils.cpp_extension import load_inline

HERE = Path(__file__).parent
GPU = torch.cuda.is_available()

bound = load_inline(
    "warpwright_fallbacks",
    cpp_sources=(HERE / "operators.cpp").read_text(encoding="utf-8"),
    cuda_sources=(HERE / "operators.cu").read_text(encoding="utf-8") if GPU else "",
    functions=["bound_scale"],
    with_cuda=GPU,
    extra_cflags=["-O1", *(["-DWITH_CUDA"] if GPU else [])],
)
ops = torch.ops.fallbacks
LIKE_SCALE = ("scale", "inner_half", "inner_strided", "inner_odd", "inner_large", "lying", "wrong_fake", "empty_dies")
ON_GPU = ("default_stream", "no_guard", "synchronizing")


def keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def derivative(ctx, grad):
    x, w = ctx.saved_tensors
    return ops.scale(grad, w), (grad * x).reshape(-1, w.numel()).sum(0)


def like_x(x, w):
    return torch.empty(x.shape, dtype=x.dtype, device=x.device)


for name in (*LIKE_SCALE, *(ON_GPU if GPU else ())):
    torch.library.register_autograd(f"fallbacks::{name}", derivative, setup_context=keep)
    if name != "wrong_fake":
        torch.library.register_fake(f"fallbacks::{name}", like_x)
torch.library.register_fake("fallbacks::bare", like_x)
torch.library.register_fake("fallbacks::wrong_fake", lambda x, w: x.new_empty(x.shape[::-1]))
torch.library.register_fake("fallbacks::scale_into", lambda x, w, out: None)


def get_inputs():
    return torch.randn(64, 128), torch.randn(128)


def plain(x, w):
    return x * w
