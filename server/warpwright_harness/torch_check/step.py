"""A training step: whether the operator's kernel runs in it, and what it gains: the step with it and with the
reference, and what Amdahl's law allows."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median, quantiles
from typing import Any

import torch

from warpwright_harness.torch_check.gradient_checks import explained
from warpwright_harness.torch_check.seen import watch
from warpwright_harness.torch_check.subject import Answer, Subject, quiet
from warpwright_harness.torch_check.variants import tensors_of

ROUNDS = 15
WARM_UP = 3


def called(subject: Subject, step: Callable[..., Any]) -> Answer:
    """Whether the kernel runs in a step with the operator. What the operator gives there is not compared."""
    with quiet():
        _, seen = watch(lambda: step(subject.call), subject.device, functions=True)
        if launches := seen.count(subject.kernels):
            return Answer("ran", "", launches, seen.share(subject.kernels))
        return explained(subject, step, Answer("fallback", "nothing was seen to run"))


def measured(
    step: Callable[..., Any], operator: Callable[..., Any], plain: Callable[..., Any], gpu: bool
) -> dict[str, Any]:
    """Milliseconds of `step(operator)` and `step(plain)`, in turns; each one's part of its step, forward and backward.

    `gain` is that of the step, between whose two quartiles half of the rounds are, `bound` what it would be were the
    operator free: 1 / (1 - share) of the plain step.
    """
    clocks = {"with": _Clock(operator, gpu), "without": _Clock(plain, gpu)}
    for clock in clocks.values():
        for _ in range(WARM_UP):
            step(clock)
    steps: dict[str, list[float]] = {name: [] for name in clocks}
    parts: dict[str, list[float]] = {name: [] for name in clocks}
    for _ in range(ROUNDS):
        for name, clock in clocks.items():
            steps[name].append(_timed(lambda own=clock: step(own.call), gpu))  # type: ignore[misc]
            clock.clear()
            total = _timed(lambda own=clock: step(own), gpu)  # type: ignore[misc]
            parts[name].append(min(1.0, clock.milliseconds() / total))
    times = {name: median(each) for name, each in steps.items()}
    share = median(parts["without"])
    gains = [plain / own for plain, own in zip(steps["without"], steps["with"], strict=True)]
    low, _, high = quantiles(gains, n=4)
    return {
        "with_ms": times["with"],
        "without_ms": times["without"],
        "gain": times["without"] / times["with"],
        "gain_quartiles": (low, high),
        "share_with": median(parts["with"]),
        "share": share,
        "bound": 1 / (1 - share) if share < 1 else float("inf"),
        "rounds": ROUNDS,
    }


def _timed(work: Callable[[], Any], gpu: bool) -> float:
    if gpu:
        torch.cuda.synchronize()
    started = time.perf_counter()
    work()
    if gpu:
        torch.cuda.synchronize()
    return (time.perf_counter() - started) * 1e3


class _Clock:
    """Calls `call`, and times its forward and its backward: from the gradients of its results to its arguments'."""

    def __init__(self, call: Callable[..., Any], gpu: bool) -> None:
        self.call, self.gpu = call, gpu
        self.spans: list[tuple[Any, Any]] = []

    def clear(self) -> None:
        self.spans.clear()

    def milliseconds(self) -> float:
        if not self.gpu:
            return float(sum(end - start for start, end in self.spans)) * 1e3
        torch.cuda.synchronize()
        return float(sum(start.elapsed_time(end) for start, end in self.spans))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        inputs = [each for each in tensors_of((args, kwargs)) if each.requires_grad and each.grad_fn is not None]
        start = self._now()
        result = self.call(*args, **kwargs)
        self.spans.append((start, self._now()))
        outs = [each for each in tensors_of(result) if each.requires_grad]
        if outs and inputs:
            begun: list[Any] = []
            left = [len(inputs)]

            def begin(_grad: Any) -> None:
                if not begun:
                    begun.append(self._now())

            def end(_grad: Any) -> None:
                left[0] -= 1
                if not left[0] and begun:
                    self.spans.append((begun[0], self._now()))

            for each in outs:
                each.register_hook(begin)
            for each in inputs:
                each.register_hook(end)
        return result

    def _now(self) -> Any:
        if not self.gpu:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event
