"""Operators of public extensions, each with arguments and with what computes the same in torch. The packages are
installed beside torch; what is not installed is not checked."""

from __future__ import annotations

import torch

PACKAGES = {
    "muladd": "extension_cpp", "mul": "extension_cpp", "add_out": "extension_cpp",
    "padded": "fbgemm_gpu", "jagged": "fbgemm_gpu", "jagged_add": "fbgemm_gpu", "jagged_mul": "fbgemm_gpu",
    "jagged_softmax": "fbgemm_gpu", "jagged_product": "fbgemm_gpu", "summed_segments": "fbgemm_gpu",
    "permuted": "fbgemm_gpu", "running_sum": "fbgemm_gpu",
}  # fmt: skip
"""Which package has what an operator calls."""
SOURCES = {
    "extension_cpp": "github.com/pytorch/extension-cpp at 0ec4969c7bc8e15a8456e5eb9d9ca0a7ec15bc95",
    "fbgemm_gpu": "fbgemm-gpu-cpu 1.8.0 of PyPI",
}
ARGUMENTS = {
    "muladd": "pair", "mul": "pair", "add_out": "into", "jagged_add": "with_dense", "jagged_mul": "with_dense",
    "jagged_product": "with_weights", "running_sum": "lengths",
}  # fmt: skip


READ = {
    "mul": "no derivative is registered for it, and gradients end there without an error",
    "add_out": "the same; an operator that writes to its argument",
    "jagged": "a number of rows that is computed in Python is kept by the trace, perhaps of the caller here",
    "jagged_product": "weights of fewer groups than the offsets name are read past their end; they may not fit",
    "summed_segments": "no derivative is registered for it",
    "permuted": "the length of its result depends on data, and the graph breaks",
}
"""The causes of the faults: of extension-cpp its code shows them, of FBGEMM the messages do."""


def positive():
    return torch.rand(64, 128) + 0.5


def pair():
    return positive(), positive()


def into():
    return positive(), positive(), torch.empty(64, 128)


def get_inputs():
    return (positive(),)


def muladd(a, b):
    import extension_cpp

    return extension_cpp.ops.mymuladd(a, b, 2.0)


def plain_muladd(a, b):
    return a * b + 2.0


def mul(a, b):
    import extension_cpp  # noqa: F401

    return torch.ops.extension_cpp.mymul(a, b)


def plain_mul(a, b):
    return a * b


def add_out(a, b, out):
    import extension_cpp

    extension_cpp.ops.myadd_out(a, b, out)
    return out


def plain_add_out(a, b, out):
    return out.copy_(a + b)


def _ends(x):
    """Where groups of four rows end, whatever the number of rows."""
    return torch.arange(0, x.shape[0] + 4, 4, device=x.device).clamp(max=x.shape[0])


def padded(x):
    import fbgemm_gpu  # noqa: F401

    return torch.ops.fbgemm.jagged_to_padded_dense(x, [_ends(x)], [4], 0.0)


def plain_padded(x):
    groups = (x.shape[0] + 3) // 4
    missing = torch.zeros(groups * 4 - x.shape[0], x.shape[1], dtype=x.dtype, device=x.device)
    return torch.cat([x, missing]).reshape(groups, 4, x.shape[1])


def jagged(x):
    import fbgemm_gpu  # noqa: F401

    return torch.ops.fbgemm.dense_to_jagged(plain_padded(x), [_ends(x)], x.shape[0])[0]


def plain_jagged(x):
    return x * 1


def with_dense():
    return torch.rand(64, 128), torch.rand(16, 4, 128)


def jagged_add(x, dense):
    import fbgemm_gpu  # noqa: F401

    return torch.ops.fbgemm.jagged_dense_elementwise_add_jagged_output(x, [_ends(x)], dense)[0]


def plain_jagged_add(x, dense):
    return x + dense.reshape(-1, x.shape[1])[: x.shape[0]]


def jagged_mul(x, dense):
    import fbgemm_gpu  # noqa: F401

    return torch.ops.fbgemm.jagged_dense_elementwise_mul(x, [_ends(x)], dense)[0]


def plain_jagged_mul(x, dense):
    return x * dense.reshape(-1, x.shape[1])[: x.shape[0]]


def jagged_softmax(x):
    import fbgemm_gpu  # noqa: F401

    return torch.ops.fbgemm.jagged_softmax(x, _ends(x), 4)[0]


def plain_jagged_softmax(x):
    return torch.cat([torch.softmax(rows, 0) for rows in x.split(4)]) if x.shape[0] else x * 1


def with_weights():
    return torch.rand(64, 24), torch.rand(16, 24, 8)


def jagged_product(x, weights):
    import fbgemm_gpu  # noqa: F401

    return torch.ops.fbgemm.jagged_dense_bmm(x, _ends(x), weights, 4)[0]


def plain_jagged_product(x, weights):
    return torch.cat([rows @ weight for rows, weight in zip(x.split(4), weights, strict=False)])


def summed_segments(x):
    import fbgemm_gpu  # noqa: F401

    flat = x.flatten()
    ends = torch.arange(0, flat.numel() + 4, 4, device=x.device, dtype=torch.int32).clamp(max=flat.numel())
    return torch.ops.fbgemm.segment_sum_csr(1, ends, flat)


def plain_summed_segments(x):
    flat = x.flatten()
    missing = torch.zeros(-flat.numel() % 4, dtype=x.dtype, device=x.device)
    return torch.cat([flat, missing]).reshape(-1, 4).sum(1)


def permuted(x):
    import fbgemm_gpu  # noqa: F401

    order = torch.arange(x.shape[0] - 1, -1, -1, device=x.device, dtype=torch.int32)
    lengths = torch.ones(x.shape[0], 1, device=x.device, dtype=torch.int32)
    first = x[:, 0].contiguous() if x.shape[1] else x.sum(1)
    return torch.ops.fbgemm.permute_2D_sparse_data(order, lengths, first, None, None)[1]


def plain_permuted(x):
    return x[:, 0].flip(0)


def lengths():
    return (torch.randint(0, 9, (64,)),)


def running_sum(x):
    import fbgemm_gpu  # noqa: F401

    return torch.ops.fbgemm.asynchronous_complete_cumsum(x)


def plain_running_sum(x):
    return torch.cat([torch.zeros(1, dtype=x.dtype, device=x.device), x.cumsum(0)])
