"""What ran in a call, as torch's profiler sees it: operators that were dispatched, kernels that were launched.

On a machine without a GPU no launches can be seen: an operator counts as run when torch dispatched it and torch's own
operators did not compute inside of it in place of its code.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
from torch.profiler import ProfilerActivity

from warpwright_harness.torch_check.cause import is_users

TORCHS_OWN = frozenset(
    (
        "aten", "c10d_functional", "onnx", "onnx_symbolic", "streams", "flex_lib", "_inductor_test", "prim", "prims",
        "profiler", "inductor", "quantized", "sparse", "static_runtime", "c10d", "_c10d_functional",
        "_c10d_functional_autograd", "debugprims", "rngprims", "quantized_decomposed", "higher_order", "onednn",
        "mkldnn", "mkldnn_prepacked", "cuda", "xla", "torchvision", "torchaudio", "fsdp", "symm_mem", "_quantized",
        "__backends__", "_dtensor", "dist_auto_functional", "mkl",
    )
)  # fmt: skip
"""Namespaces of operators that come with torch."""
_MOVES = frozenset(
    (
        "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "contiguous", "clone", "copy_", "to",
        "_to_copy", "view", "reshape", "as_strided", "resize_", "set_", "transpose", "t", "slice", "select",
        "unsqueeze", "squeeze", "expand", "detach", "alias", "zeros", "zero_", "fill_", "zeros_like", "permute",
        "flatten", "narrow", "_unsafe_view", "is_same_size", "result_type", "item", "_local_scalar_dense", "numel",
        "lift_fresh", "view_as", "expand_as", "new_zeros", "cat", "stack", "movedim", "unbind",
    )
)  # fmt: skip
"""Operators of aten that compute nothing."""
_AROUND = ("FSDP", "DistributedDataParallel", "Torch-Compiled Region", "autograd::")
"""What stands around operators in a profile and computes nothing itself."""
_OURS = "warpwright"
"""In a profile, what a check itself computes."""
_LIBRARIES = re.compile(
    r"^(Memcpy|Memset|triton_|ampere_|hopper_|sm\d+_|volta_|turing_|nvjet|cudnn|cask_|nccl|cutlass|gemm|gemv|splitK"
    r"|cublas|at::|at_cuda_detail|cub::|thrust::|c10::|pytorch_flash|std::enable_if|internal::gemv)"
)
"""Kernels of torch and of NVIDIA's libraries, and those that torch.compile writes, by the beginning of their names."""


@dataclass(frozen=True, slots=True)
class Seen:
    """How often each operator, kernel and bound function ran, and microseconds of each kernel and outermost operator.
    `inside` names the operators of aten that computed inside of each custom operator, `launched` the kernels that
    custom operators launched themselves, `devices` the GPUs on which each kernel ran."""

    operators: Mapping[str, int]
    kernels: Mapping[str, int]
    functions: Mapping[str, int]
    kernel_us: Mapping[str, float]
    operator_us: Mapping[str, float]
    total_us: float
    inside: Mapping[str, frozenset[str]]
    launched: frozenset[str]
    devices: Mapping[str, frozenset[int]]

    def count(self, names: Iterable[str]) -> int:
        """How often any of `names` ran, as a kernel where kernels have these names, else as an operator or function."""
        wanted = [_named(each) for each in names]
        for counts in (self.kernels, self.operators, self.functions):
            found = sum(number for name, number in counts.items() if any(each.search(name) for each in wanted))
            if found:
                return found
        return 0

    def ran_on(self, names: Iterable[str]) -> frozenset[int]:
        """The GPUs on which kernels of `names` ran."""
        wanted = [_named(each) for each in names]
        found = (where for name, where in self.devices.items() if any(each.search(name) for each in wanted))
        return frozenset().union(*found)

    def share(self, names: Iterable[str]) -> float | None:
        """The part of the time that `names` took; None where nothing was timed."""
        wanted = [_named(each) for each in names]
        times = self.kernel_us or self.operator_us
        total = sum(self.kernel_us.values()) or self.total_us
        own = sum(us for name, us in times.items() if any(each.search(name) for each in wanted))
        return min(1.0, own / total) if total else None

    @property
    def foreign(self) -> tuple[str, ...]:
        """Kernels that custom operators launched, else kernels that are not torch's, else operators that are not, else
        functions of extension modules."""
        kernels = {function_of(each) for each in self.launched or self.kernels}
        own = {each for each in kernels if not _LIBRARIES.search(each)}
        return tuple(sorted(own or self.operators or self.functions))

    @property
    def most(self) -> str:
        """The kernel or operator of torch that took longest."""
        computes = {name: us for name, us in self.operator_us.items() if not name.startswith(_AROUND)}
        times = self.kernel_us or computes or self.operator_us
        return max(times, key=lambda each: times[each], default="")


def function_of(kernel: str) -> str:
    """The name of a kernel without its arguments and template arguments.

    >>> function_of("void mine::scale<float, 4>(float*, int)"), function_of("(anonymous namespace)::scale(float*)")
    ('mine::scale', 'scale')
    """
    named = kernel.removeprefix("void ").replace("(anonymous namespace)::", "")
    return re.split(r"[<(]", named, maxsplit=1)[0].strip()


def watch(call: Callable[[], Any], device: str, functions: bool = False) -> tuple[Any, Seen]:
    """What `call` gives, and what ran meanwhile. `functions`: count calls of functions of extension modules too."""
    on_gpu = device == "cuda"
    bound: Counter[str] = Counter()
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    before = sys.getprofile()
    with torch.profiler.profile(activities=activities) as profile:
        if functions:
            sys.setprofile(_counter(bound))
        try:
            result = call()
        finally:
            if functions:
                sys.setprofile(before)
            if on_gpu:
                torch.cuda.synchronize()
    return result, _seen(profile.events(), bound)


def unseen() -> AbstractContextManager[object]:
    """Around what a check itself computes in a call that is watched."""
    made: AbstractContextManager[object] = torch.profiler.record_function(_OURS)
    return made


def _is_ours(event: Any) -> bool:
    while event is not None and event.name != _OURS:
        event = event.cpu_parent
    return event is not None


def _counter(bound: Counter[str]) -> Callable[..., None]:
    """Counts functions of extension modules, but torch's, that are called from the user's Python."""

    def saw(frame: FrameType, event: str, function: Any) -> None:
        if event == "c_call" and is_users(frame.f_code.co_filename) and _is_foreign(function):
            bound[str(function.__name__)] += 1

    return saw


def _is_foreign(function: Any) -> bool:
    module = str(getattr(function, "__module__", None) or "").split(".", maxsplit=1)[0]
    if module == "torch" or module in sys.stdlib_module_names:
        return False
    is_bound = type(getattr(function, "__self__", None)).__name__.startswith(("PyCapsule", "pybind11"))
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return (is_bound and not hasattr(torch._C, function.__name__)) or (file.endswith(".so") and module != "numpy")


def _seen(events: Sequence[Any], bound: Mapping[str, int]) -> Seen:
    kernels, operators, kernel_us, operator_us = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    inside: dict[str, frozenset[str]] = {}
    launched: set[str] = set()
    devices: dict[str, frozenset[int]] = {}
    total = 0.0
    for event in events:
        took = event.time_range.elapsed_us()
        if event.device_type == torch.autograd.DeviceType.CUDA:
            if not getattr(event, "is_user_annotation", False):
                kernels[event.name] += 1
                kernel_us[event.name] += took
                devices[event.name] = devices.get(event.name, frozenset()) | {event.device_index}
            continue
        if _is_ours(event):
            continue
        if event.cpu_parent is None:
            total += took
        namespace, separator, _ = event.name.partition("::")
        if not separator or not namespace.isidentifier():
            continue
        operator_us[event.name] += event.self_cpu_time_total if namespace == "aten" else took
        if namespace not in TORCHS_OWN and not namespace.startswith("autograd"):
            operators[event.name] += 1
            launched |= {each.name for each in event.kernels}
            inside[event.name] = inside.get(event.name, frozenset()) | frozenset(_computing(event))
    return Seen(operators, kernels, bound, kernel_us, operator_us, total, inside, frozenset(launched), devices)


def _computing(event: Any) -> Iterable[str]:
    """Operators of aten below an event that compute something."""
    for child in event.cpu_children:
        namespace, _, name = child.name.partition("::")
        if namespace == "aten" and name not in _MOVES:
            yield child.name
        yield from _computing(child)


def _named(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w]){re.escape(name)}(?![\w])")
