"""Calls of an operator as a program makes them: again, without gradients, in other types, sizes, layouts, devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from warpwright_harness.torch_check.seen import watch
from warpwright_harness.torch_check.subject import TOLERANCE, Answer, Subject, first_line, quiet, result_of, run
from warpwright_harness.torch_check.variants import (
    copied,
    extents,
    first_in_type,
    in_type,
    mapped,
    non_contiguous,
    odd,
    resized,
    tensors_of,
    unaligned,
)

REPEATS = 5


def repeated(subject: Subject) -> Answer:
    """The same call several times: state that is kept may turn the kernel off."""
    answers = [run(subject, subject.args, expected=subject.expected) for _ in range(REPEATS)]
    return next((each for each in answers if each.status != "ran"), answers[0])


def inference(subject: Subject) -> Answer:
    def around(work: Callable[[], Any]) -> Any:
        with torch.inference_mode():
            return work()

    return run(subject, subject.args, around=around, expected=subject.expected)


def of_type(subject: Subject, dtype: torch.dtype) -> Answer:
    args = in_type(subject.args, dtype)
    return run(subject, args, expected=_expected(subject, in_type(args, torch.float32)), tolerance=TOLERANCE[dtype])


def autocast(subject: Subject, dtype: torch.dtype) -> Answer:
    """Under autocast: with arguments as they are, and with the first as the operator before leaves it."""

    def around(work: Callable[[], Any]) -> Any:
        with torch.autocast(subject.device, dtype=dtype):
            return work()

    answer = Answer("not-run")
    for args in (subject.args, first_in_type(subject.args, dtype)):
        expected = _expected(subject, in_type(args, torch.float32))
        answer = run(subject, args, around=around, expected=expected, tolerance=TOLERANCE[dtype])
        if answer.status != "ran":
            return answer
    return answer


def of_size(subject: Subject, change: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> Answer:
    """At other sizes, beside the reference where there is one."""
    args = change(subject.args)
    expected = None
    if subject.reference is not None:
        expected = _quietly(partial(result_of, subject.reference, copied(args)))
    return run(subject, args, expected=expected)


def odd_sizes(subject: Subject) -> Answer:
    return of_size(subject, odd)


def ones(subject: Subject) -> Answer:
    return of_size(subject, lambda args: resized(args, dict.fromkeys(extents(args), 1)))


def empty(subject: Subject) -> Answer:
    """With a first extent of 0. That nothing runs is right then; what must not be is a wrong shape or a crash.
    Arguments of a single extent do not tell which one of the result is meant."""
    first = next((each.shape[0] for each in tensors_of(subject.args) if each.dim()), None)
    if first is None:
        return Answer("not-run", "no argument has an extent")
    args = resized(subject.args, {first: 0})
    with quiet():
        try:
            result, seen = watch(partial(result_of, subject.call, copied(args)), subject.device)
        except Exception as error:
            return Answer("raises", first_line(error))
    wanted = [tuple(0 if size == first else size for size in each.shape) for each in tensors_of(subject.expected)]
    shapes = [tuple(each.shape) for each in tensors_of(result)]
    if subject.reference is not None:
        reference = _quietly(partial(result_of, subject.reference, copied(args)))
        wanted = [tuple(each.shape) for each in tensors_of(reference)] if reference is not None else shapes
    if shapes != wanted and len(set(extents(subject.args))) > 1:
        return Answer("wrong", f"shape {shapes[0]} in place of {wanted[0]}", seen.count(subject.kernels))
    return Answer("ran", "", seen.count(subject.kernels))


def strided(subject: Subject) -> Answer:
    args = non_contiguous(subject.args)
    return run(subject, args, expected=_expected(subject, mapped(args, lambda each: each.contiguous())))


def misaligned(subject: Subject) -> Answer:
    return run(subject, unaligned(subject.args), expected=subject.expected)


def channels_last(subject: Subject) -> Answer:
    if not any(each.dim() == 4 for each in tensors_of(subject.args)):
        return Answer("not-run", "no argument has four dimensions")
    args = mapped(subject.args, lambda e: e.to(memory_format=torch.channels_last) if e.dim() == 4 else e)
    return run(subject, args, expected=subject.expected)


def other_device(subject: Subject) -> Answer:
    """On a GPU that is not the current one."""
    if subject.device != "cuda" or torch.cuda.device_count() < 2:
        return Answer("not-run", "there is no second GPU here")
    torch.cuda.set_device(0)
    args = mapped(subject.args, lambda each: each.to("cuda:1"))
    answer = run(subject, args, expected=subject.expected, gpu=1)
    if torch.cuda.current_device():
        return Answer("wrong", "the call changes the current device")
    return answer


def on_cpu(subject: Subject) -> Answer:
    if subject.device != "cuda":
        return Answer("not-run", "there is no GPU here: every call is on the CPU")
    dispatched = replace(subject, kernels=(*subject.kernels, *subject.operators))
    return run(dispatched, mapped(subject.args, lambda each: each.cpu()), expected=subject.expected)


def other_stream(subject: Subject) -> Answer:
    """On a stream that is busy with what writes the arguments: a kernel on another stream reads them too soon."""
    if subject.device != "cuda":
        return Answer("not-run", "there is no GPU here")
    late = mapped(copied(subject.args), lambda each: each.clone())
    blank = mapped(late, torch.zeros_like)
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()

    def around(work: Callable[[], Any]) -> Any:
        with torch.cuda.stream(stream):
            torch.cuda._sleep(50_000_000)
            for place, value in zip(tensors_of(blank), tensors_of(late), strict=True):
                place.copy_(value)
            result = work()
        torch.cuda.synchronize()
        return result

    return run(subject, subject.args, around=around, expected=subject.expected, call=lambda *_: subject.call(*blank))


def cuda_graph(subject: Subject) -> Answer:
    """Captured in a CUDA graph, which takes no call that synchronizes and none on another stream."""
    if subject.device != "cuda":
        return Answer("not-run", "there is no GPU here")
    args = copied(subject.args)
    graph = torch.cuda.CUDAGraph()
    try:
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            result_of(subject.call, args)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            result = subject.call(*args)
    except Exception as error:
        return Answer("breaks", f"the call cannot be captured: {first_line(error)}")

    def replayed(*_: Any) -> Any:
        graph.replay()
        return result

    return run(subject, args, call=replayed, expected=subject.expected, inspected=False)


def _expected(subject: Subject, args: tuple[Any, ...]) -> Any:
    """What the reference gives, else the operator itself where it is known to be right."""
    return _quietly(partial(result_of, subject.reference or subject.call, copied(args)))


def _quietly(work: Callable[[], Any]) -> Any:
    with quiet():
        try:
            return work()
        except Exception:
            return None
