"""DDP and FSDP in a process group of this one process, which needs neither network nor a second GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from warpwright_harness.torch_check.gradient_checks import explained
from warpwright_harness.torch_check.seen import watch
from warpwright_harness.torch_check.subject import TOLERANCE, Answer, Subject, first_line, judged, quiet, result_of
from warpwright_harness.torch_check.variants import copied, tensors_of

_NO_FSDP = f"torch {torch.__version__} has no fully_shard: 2.6 is the first with it"


class _Learned(torch.nn.Module):  # type: ignore[misc] # torch is not typed here
    """The operator behind a parameter of ones by which the first argument of floating point is multiplied."""

    def __init__(self, subject: Subject) -> None:
        super().__init__()
        self.call = subject.call
        self.factor = torch.nn.Parameter(torch.ones(4, device=subject.device))
        places = [n for n, e in enumerate(subject.args) if isinstance(e, torch.Tensor) and e.is_floating_point()]
        self.place = places[0]

    def forward(self, *args: Any) -> Any:
        made = list(args)
        made[self.place] = made[self.place] * self.factor.mean().to(made[self.place].dtype)
        return self.call(*made)


def ddp(subject: Subject) -> Answer:
    return _wrapped(subject, torch.nn.parallel.DistributedDataParallel, 1e-3)


def fsdp(subject: Subject) -> Answer:
    return Answer("not-run", _NO_FSDP) if _lacks_fsdp() else _wrapped(subject, _sharded, 1e-3)


def fsdp_bfloat16(subject: Subject) -> Answer:
    """FSDP with parameters and inputs in bfloat16, as it is mostly used."""

    def sharded(module: torch.nn.Module) -> torch.nn.Module:
        from torch.distributed.fsdp import MixedPrecisionPolicy

        return _sharded(module, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))

    return Answer("not-run", _NO_FSDP) if _lacks_fsdp() else _wrapped(subject, sharded, TOLERANCE[torch.bfloat16])


def _lacks_fsdp() -> bool:
    if not dist.is_available():
        return False  # which is said where the process group is made
    from torch.distributed import fsdp as module

    return not hasattr(module, "fully_shard")


def _sharded(module: torch.nn.Module, **options: Any) -> torch.nn.Module:
    from torch.distributed.fsdp import fully_shard

    device = next(module.parameters()).device.type
    sharded: torch.nn.Module = fully_shard(module, mesh=dist.init_device_mesh(device, (1,)), **options)
    return sharded


def _wrapped(subject: Subject, wrap: Callable[[torch.nn.Module], torch.nn.Module], tolerance: float) -> Answer:
    if not any(each.is_floating_point() for each in tensors_of(subject.args)):
        return Answer("not-run", "no argument is of floating point")
    if why := _joined():
        return Answer("not-run", why)
    args = copied(subject.args)

    def step() -> Any:
        result = result_of(module, args)
        outs = [each for each in tensors_of(result) if each.requires_grad]
        if outs:
            torch.autograd.backward(outs, [torch.ones_like(each) for each in outs])
        return result

    def with_operator(call: Callable[..., Any]) -> None:
        learned.call = call
        step()

    with quiet():
        try:
            learned = _Learned(subject)
            module = wrap(learned)
            result, seen = watch(step, subject.device, functions=True)
        except Exception as error:
            return Answer("raises", first_line(error))
        answer = judged(subject, result, seen, subject.expected, tolerance)
        if answer.status == "fallback":
            return explained(subject, with_operator, answer)
    is_learned = all(each.grad is not None for each in module.parameters())
    if answer.status == "ran" and subject.is_differentiable and not is_learned:
        return Answer("wrong", "no gradient comes to a parameter before the operator", answer.launches)
    return answer


def _joined() -> str:
    """Make the process group; why there is none, or empty."""
    if not dist.is_available():
        return "this torch has no torch.distributed"
    if not dist.is_initialized():
        try:
            dist.Backend.register_backend("warpwright", lambda *_: _alone(), devices=["cpu", "cuda"])
            dist.init_process_group("warpwright", rank=0, world_size=1, store=dist.HashStore())
        except Exception as error:
            return f"no process group can be made: {first_line(error)}"
    return ""


def _alone() -> Any:
    """A process group of one, whose collectives hand on what they are given."""
    c10d: Any = torch._C._distributed_c10d

    def done(value: Any) -> Any:
        future: Any = torch.futures.Future()
        future.set_result(value)
        return c10d._create_work_from_future(future)

    def into(outputs: Any, inputs: Any) -> Any:
        outputs.copy_(inputs.reshape(outputs.shape))
        return done(outputs)

    class Alone(c10d.ProcessGroup):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(0, 1)
            self.named = ""

        def _set_group_name(self, name: str) -> None:
            self.named = name

        @property
        def group_name(self) -> str:
            return self.named

        def size(self) -> int:
            return 1

        def rank(self) -> int:
            return 0

        def getBackendName(self) -> str:  # noqa: N802
            return "warpwright"

        def allreduce(self, tensors: Any, _options: Any = None) -> Any:
            return done(tensors)

        allreduce_coalesced = broadcast = allreduce

        def barrier(self, _options: Any = None) -> Any:
            return done([])

        def allgather(self, outputs: Any, inputs: Any, _options: Any = None) -> Any:
            for each, value in zip(outputs, inputs, strict=True):
                each[0].copy_(value)
            return done(outputs)

        def _allgather_base(self, output: Any, value: Any, _options: Any = None) -> Any:
            return into(output, value)

        def _reduce_scatter_base(self, output: Any, value: Any, _options: Any = None) -> Any:
            return into(output, value)

    return Alone()
