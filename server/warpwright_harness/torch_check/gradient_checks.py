"""Forward and backward by autograd, and gradients beside differences of the results."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import torch

from warpwright_harness.torch_check.cause import PythonPath, cause, path_of
from warpwright_harness.torch_check.seen import Seen, unseen, watch
from warpwright_harness.torch_check.subject import Answer, Subject, first_line, judged, quiet, run
from warpwright_harness.torch_check.variants import in_type, same, tensors_of, with_gradients

STEP = 1e-2
APART = 0.05
"""A derivative in a direction, in f32, by differences of that step."""
CURE = "Register the backward with torch.library.register_autograd, and run the kernel where gradients are wanted."
"""Of a kernel that does not run where gradients are wanted."""


def backward(subject: Subject) -> Answer:
    """The kernel runs though gradients are wanted, and each argument of floating point gets one."""
    if not subject.is_differentiable:
        return Answer("not-run", "nothing to differentiate")
    args = with_gradients(subject.args)
    with quiet():
        try:
            (result, grads), seen = watch(lambda: gradients(subject.call, args), subject.device, functions=True)
        except Exception as error:
            return Answer("raises", first_line(error))
        answer = judged(subject, result, seen, None if subject.expected is None else subject.expected, 1e-3)
        if answer.status == "fallback":
            return Answer("fallback", answer.said, cause=cause_with_gradients(subject))
    if answer.status == "ran":
        return _graded(subject, answer, result, grads, seen)
    return answer


def cause_with_gradients(subject: Subject) -> str:
    """Why a call whose arguments want gradients takes another path than the plain one."""
    return cause(subject.usual, path_of(lambda: gradients(subject.call, with_gradients(subject.args))))


def explained(subject: Subject, through: Callable[[Callable[..., Any]], object], answer: Answer) -> Answer:
    """A fallback with what ran in the operator itself and where it left the usual path. `through` runs a module or a
    step with the operator that it is handed. Where the kernel runs as soon as no gradients are wanted, these are why.
    """
    sights: list[Seen] = []
    paths: list[PythonPath] = []

    def watched(*args: Any, **kwargs: Any) -> Any:
        result, seen = watch(lambda: subject.call(*args, **kwargs), subject.device, functions=True)
        sights.append(seen)
        return result

    def followed(*args: Any, **kwargs: Any) -> Any:
        results: list[Any] = []
        paths.append(path_of(lambda: results.append(subject.call(*args, **kwargs))))
        return results[0]

    through(watched)
    through(followed)
    if not sights:
        return replace(answer, said="the operator was not called", cure="Call the operator that is handed over.")
    said = f"{sights[0].most} ran instead" if sights[0].most else answer.said
    sights.clear()
    with suppress(Exception), torch.no_grad():  # a backward that is asked for there raises
        through(watched)
    is_of_gradients = any(each.count(subject.kernels) for each in sights)
    return replace(answer, said=said, cause=cause(subject.usual, paths[0]), cure=CURE if is_of_gradients else "")


def _graded(subject: Subject, answer: Answer, result: Any, grads: list[torch.Tensor | None], seen: Seen) -> Answer:
    if not any(each.requires_grad for each in tensors_of(result)):
        return Answer("wrong", "the result has no gradient, so that training learns nothing", answer.launches)
    if any(each is None for each in grads):
        lost = [str(number) for number, each in enumerate(grads) if each is None]
        return Answer("wrong", f"no gradient comes to argument {', '.join(lost)}", answer.launches)
    if subject.backward_kernels and not seen.count(subject.backward_kernels):
        return Answer("fallback", f"{' or '.join(subject.backward_kernels)} did not run in the backward", 0)
    if subject.reference is not None:
        _, wanted = gradients(subject.reference, with_gradients(subject.args))
        if all(each is not None for each in wanted) and (differs := same(grads, wanted, 1e-3)):
            return Answer("wrong", f"gradients: {differs}", answer.launches)
    return answer


def gradients(call: Any, args: tuple[Any, ...]) -> tuple[Any, list[torch.Tensor | None]]:
    """The result of a call, and the gradients of the arguments for a fixed gradient of the result."""
    torch.manual_seed(0)
    result = call(*args)
    outs = [each for each in tensors_of(result) if each.requires_grad]
    generator = torch.Generator().manual_seed(3)
    with unseen():
        given = [torch.randn(each.shape, generator=generator).to(each) for each in outs]
    if outs:
        torch.autograd.backward(outs, given)
    wanted = [each for each in tensors_of(args) if each.requires_grad]
    return result, [each.grad for each in wanted]


def gradcheck(subject: Subject) -> Answer:
    """torch's own check in f64 where the kernel runs in f64, else derivatives in some directions in f32."""
    if not subject.is_differentiable:
        return Answer("not-run", "nothing to differentiate")
    if not subject.is_repeatable:
        return Answer("not-run", "two calls with the same arguments differ")
    doubles = in_type(subject.args, torch.float64)
    answer = run(subject, doubles)
    try:
        with quiet():
            if answer.status == "ran":
                torch.autograd.gradcheck(subject.call, with_gradients(doubles), fast_mode=True, nondet_tol=1e-6)
                return Answer("ran", "in f64", answer.launches)
            said = _in_directions(subject)
    except Exception as error:
        name = type(error).__name__
        lines = " ".join(str(error).split())
        return Answer("wrong" if name == "GradcheckError" else "raises", f"{name}: {lines[:160]}")
    if said:
        return Answer("wrong", said)
    if answer.status == "fallback":
        return Answer("fallback", f"in f64, which gradcheck takes, {answer.said}", cause=answer.cause)
    return Answer("ran", "in f32, as the operator takes no f64", 1)


def _in_directions(subject: Subject) -> str:
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        args = with_gradients(subject.args)
        result, grads = gradients(subject.call, args)
        taken = torch.Generator().manual_seed(3)
        cotangents = [torch.randn(each.shape, generator=taken).double() for each in tensors_of(result)]
        directions = [torch.randn(each.shape, generator=generator) for each in tensors_of(args) if each.requires_grad]
        slope = sum(
            float((grad.cpu().double() * way.double()).sum())
            for grad, way in zip(grads, directions, strict=True)
            if grad is not None
        )
        ends = []
        for sign in (1, -1):
            moved = iter([sign * STEP * each for each in directions])
            shifted = tuple(
                (each.detach() + next(moved).to(each.device))
                if isinstance(each, torch.Tensor) and each.is_floating_point()
                else each
                for each in subject.args
            )
            torch.manual_seed(0)
            out = tensors_of(subject.call(*shifted))
            ends.append(sum(float((a.detach().cpu().double() * b).sum()) for a, b in zip(out, cotangents, strict=True)))
        found = (ends[0] - ends[1]) / (2 * STEP)
        size = max(abs(found), abs(slope), 1e-2 * sum(float(each.norm()) for each in cotangents))
        if abs(found - slope) > APART * size:
            return f"the gradient in a direction is {slope:.4g}, by differences {found:.4g}"
    return ""
