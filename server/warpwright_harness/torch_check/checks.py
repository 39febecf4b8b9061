"""All checks in their order, each with the cure for what it may find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch

from warpwright_harness.torch_check import gradient_checks, graph_checks, parallel_checks, plain_checks
from warpwright_harness.torch_check.subject import Answer, Subject


@dataclass(frozen=True, slots=True)
class Check:
    """`cure` is what to do where the kernel does not run."""

    name: str
    run: Callable[[Subject], Answer]
    cure: str


_CAST = (
    "Dispatch {} in the kernel (AT_DISPATCH_FLOATING_TYPES_AND2), or register a cast (torch.library.register_autocast)."
)
_LAYOUT = "Call .contiguous() on the argument, or read it by its strides."

CHECKS = (
    Check("repeated", plain_checks.repeated, "Keep no state between calls that chooses the path."),
    Check("inference mode", plain_checks.inference, "Do not choose the path by torch.is_grad_enabled()."),
    Check("backward", gradient_checks.backward, gradient_checks.CURE),
    Check("gradcheck", gradient_checks.gradcheck,
          "Compare the backward with the derivative; give the kernel an f64 instance."),
    Check("float16", partial(plain_checks.of_type, dtype=torch.float16), _CAST.format("half")),
    Check("bfloat16", partial(plain_checks.of_type, dtype=torch.bfloat16), _CAST.format("bfloat16")),
    Check("autocast float16", partial(plain_checks.autocast, dtype=torch.float16), _CAST.format("half")),
    Check("autocast bfloat16", partial(plain_checks.autocast, dtype=torch.bfloat16), _CAST.format("bfloat16")),
    Check("odd sizes", plain_checks.odd_sizes,
          "Guard the last elements in the kernel (`if (i < n)`) in place of a test for multiples."),
    Check("size 1", plain_checks.ones, "Let the kernel take every size; a limit needs a general path beside it."),
    Check("empty", plain_checks.empty, "Return an empty tensor of the right shape before the launch."),
    Check("non-contiguous", plain_checks.strided, _LAYOUT),
    Check("unaligned", plain_checks.misaligned,
          "Test the address for the wide path only, inside of the launch function."),
    Check("channels last", plain_checks.channels_last, _LAYOUT),
    Check("other device", plain_checks.other_device, "Set c10::cuda::CUDAGuard to the argument's device."),
    Check("tensors on the CPU", plain_checks.on_cpu, "Raise where a tensor is not on a GPU, or register a CPU kernel."),
    Check("other stream", plain_checks.other_stream, "Launch on c10::cuda::getCurrentCUDAStream()."),
    Check("CUDA graph", plain_checks.cuda_graph, "Remove what synchronizes from the operator."),
    Check("torch.compile", graph_checks.compiled,
          "Register the operator with torch.library and a fake kernel (register_fake), and do not ask is_compiling()."),
    Check("torch.compile, backward", graph_checks.compiled_backward,
          "Register the backward with torch.library.register_autograd."),
    Check("export", graph_checks.exported,
          "Register the operator with torch.library and a fake kernel (register_fake)."),
    Check("jit.trace", graph_checks.traced, "Decide in the operator, not in Python: a trace keeps one side of `if`."),
    Check("vmap", graph_checks.vmapped, "Register a batching rule with torch.library.register_vmap."),
    Check("DDP", parallel_checks.ddp, "Do not choose the path by the module's wrapper or torch.distributed."),
    Check("FSDP", parallel_checks.fsdp, "Do not choose the path by the module's wrapper or torch.distributed."),
    Check("FSDP in bfloat16", parallel_checks.fsdp_bfloat16, _CAST.format("bfloat16")),
    Check("opcheck", graph_checks.opcheck,
          "Make schema, fake kernel and Autograd registration say what the operator does."),
)  # fmt: skip
"""After the plain call, "eager"."""
