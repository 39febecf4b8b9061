"""torch.compile, export, jit.trace, vmap and opcheck."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from warpwright_harness.torch_check.gradient_checks import cause_with_gradients, gradients
from warpwright_harness.torch_check.seen import watch
from warpwright_harness.torch_check.subject import Answer, Subject, first_line, judged, quiet, result_of, run
from warpwright_harness.torch_check.variants import copied, mapped, odd, tensors_of, with_gradients

SAMPLES = 3
"""Of a batch under vmap."""
TRACED = (13, 9, 7, 5, 3, 2)
_NO_FAKE = ("fake impl", "Meta' backend", "meta kernel")


class _Around(torch.nn.Module):  # type: ignore[misc] # torch is not typed here
    """The operator as a module; what is no tensor among its arguments is fixed."""

    def __init__(self, subject: Subject) -> None:
        super().__init__()
        self.call = subject.call
        self.fixed = [None if isinstance(each, torch.Tensor) else (each,) for each in subject.args]

    def forward(self, *tensors: torch.Tensor) -> Any:
        left = iter(tensors)
        return self.call(*(next(left) if each is None else each[0] for each in self.fixed))


def compiled(subject: Subject) -> Answer:
    """As torch.compile makes it: by Inductor on a GPU, elsewhere by the same steps without Inductor's code."""
    return _compiled(subject, with_backward=False)


def compiled_backward(subject: Subject) -> Answer:
    if not subject.is_differentiable:
        return Answer("not-run", "nothing to differentiate")
    return _compiled(subject, with_backward=True)


def _compiled(subject: Subject, with_backward: bool) -> Answer:
    logging.getLogger("torch").setLevel(logging.ERROR)
    torch._dynamo.reset()
    backend = "inductor" if subject.device == "cuda" else "aot_eager"
    call = torch.compile(_program(subject), backend=backend)
    args = with_gradients(subject.args) if with_backward else copied(subject.args)
    with quiet():
        try:
            if with_backward:
                gradients(call, args)
                args = with_gradients(subject.args)
                (result, grads), seen = watch(lambda: gradients(call, args), subject.device, functions=True)
                if not any(each.requires_grad for each in tensors_of(result)) or any(e is None for e in grads):
                    return Answer("wrong", "a gradient is lost when compiled")
            else:
                result_of(call, args)
                fresh = copied(subject.args)
                result, seen = watch(lambda: result_of(call, fresh), subject.device, functions=True)
        except Exception as error:
            return Answer("raises", first_line(error))
        answer = judged(subject, result, seen, subject.expected, 1e-3)
        if answer.status == "fallback":
            why = _compiling(subject) or (cause_with_gradients(subject) if with_backward else "")
            return Answer("fallback", answer.said, cause=why)
        broken = () if with_backward else _breaks(subject)
    if answer.status == "ran" and broken:
        return Answer("breaks", f"{_count(len(broken), 'graph break')}: {broken[0]}", answer.launches, answer.share)
    return answer


def _breaks(subject: Subject) -> tuple[str, ...]:
    torch._dynamo.reset()
    try:
        found = torch._dynamo.explain(_program(subject))(*copied(subject.args))
    except Exception as error:
        return (first_line(error),)
    if not found.graph_count:
        return ("nothing of it comes into a graph",)
    return tuple(_break(each) for each in found.break_reasons)


def _program(subject: Subject) -> Callable[..., Any]:
    """A function around the operator, as a program that is compiled is one."""

    def program(*args: Any) -> Any:
        return subject.call(*args)

    return program


def _break(reason: Any) -> str:
    said = str(reason.reason).strip().splitlines()[0][:120]
    stack = [each for each in reason.user_stack if "torch_check" not in each.filename]
    return f"{Path(stack[-1].filename).name}:{stack[-1].lineno}: {said}" if stack else said


def _compiling(subject: Subject) -> str:
    import inspect

    code = inspect.unwrap(subject.call)
    try:
        lines, first = inspect.getsourcelines(code)
        file = Path(inspect.getsourcefile(code) or "").name
    except (OSError, TypeError):
        return ""
    for number, line in enumerate(lines, first):
        if "is_compiling" in line or "is_dynamo_compiling" in line or "dynamo.disable" in line:
            return f"after {file}:{number} (`{line.strip()[:90]}`) it goes another way"
    return ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def exported(subject: Subject) -> Answer:
    """Through torch.export, called again as a program."""
    module = _Around(subject)
    tensors = tuple(each for each in subject.args if isinstance(each, torch.Tensor))
    with quiet():
        try:
            program = torch.export.export(module, copied(tensors), strict=False).module()
        except Exception as error:
            return Answer("raises", first_line(error))
    return _called(subject, program, subject.args)


def traced(subject: Subject) -> Answer:
    """Through torch.jit.trace, at other sizes than it was traced with: what was decided in Python is fixed by then."""
    tensors = tuple(each for each in subject.args if isinstance(each, torch.Tensor))
    with quiet():
        try:
            made = torch.jit.trace(_Around(subject), copied(tensors), check_trace=False)
        except Exception as error:
            return Answer("raises", first_line(error))
    other = odd(subject.args, TRACED)
    answer = _called(subject, made, subject.args)
    if answer.status != "ran" or run(subject, other).status == "raises":
        return answer
    with quiet():
        try:
            wanted = result_of(subject.call, copied(other))
        except Exception:
            return answer
    found = _called(subject, made, other, wanted)
    if found.status in ("wrong", "raises"):
        return Answer("wrong", f"at other sizes than traced: {found.said}", found.launches)
    return found


def _called(subject: Subject, made: Any, args: tuple[Any, ...], expected: Any = None) -> Answer:
    tensors = tuple(each for each in copied(args) if isinstance(each, torch.Tensor))
    with quiet():
        try:
            result, seen = watch(partial(result_of, made, tensors), subject.device, functions=True)
        except Exception as error:
            return Answer("raises", first_line(error))
    return judged(subject, result, seen, subject.expected if expected is None else expected, 1e-3)


def vmapped(subject: Subject) -> Answer:
    """Over a batch. Without a batching rule torch calls the operator for each sample."""
    places = [0 if isinstance(each, torch.Tensor) else None for each in subject.args]
    batch = tuple(torch.stack([each] * SAMPLES) if isinstance(each, torch.Tensor) else each for each in subject.args)
    with quiet():
        try:
            call = torch.vmap(subject.call, tuple(places), randomness="same")
            result, seen = watch(lambda: call(*copied(batch)), subject.device, functions=True)
        except Exception as error:
            return Answer("raises", first_line(error))
    wanted = mapped(subject.expected, lambda each: torch.stack([each] * SAMPLES))
    # A batching rule in Python computes inside of the operator, too.
    answer = judged(replace(subject, inside=frozenset({"vmap"})), result, seen, wanted, 1e-3)
    if answer.status == "ran" and answer.launches >= SAMPLES:
        said = f"ran {answer.launches} times for {SAMPLES} samples: no batching rule"
        return Answer("ran", said, answer.launches, answer.share)
    return answer


class _Caught(TorchDispatchMode):  # type: ignore[misc]
    """The first call of an operator among `names`."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self.names = names
        self.found: tuple[Any, tuple[Any, ...], dict[str, Any]] | None = None

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self.found is None and function._schema.name in self.names:
            self.found = (function, copied(args), copied(kwargs or {}))
        return function(*args, **(kwargs or {}))


def opcheck(subject: Subject) -> Answer:
    """torch.library.opcheck on the registered operator: schema, fake kernel, Autograd, AOTDispatcher."""
    caught = _Caught((*subject.registered, *subject.kernels))
    with quiet(), torch.no_grad():
        try:
            with caught:
                result_of(subject.call, copied(subject.args))
        except Exception as error:
            return Answer("raises", first_line(error))
        if caught.found is None:
            return Answer(
                "not-run", "no registered operator is called, so that neither torch.compile nor opcheck sees it"
            )
        function, args, kwargs = caught.found
        args = with_gradients(args) if subject.is_differentiable and not function._schema.is_mutable else args
        failed = torch.library.opcheck(function, args, kwargs, raise_exception=False)
    said = {name: str(why) for name, why in failed.items() if why != "SUCCESS"}
    if not said:
        return Answer("ran", "", 1)
    name, why = next(iter(said.items()))
    is_loud = all(any(each in text for each in _NO_FAKE) for text in said.values())
    return Answer("raises" if is_loud else "wrong", f"{name}: {' '.join(why.split())[:160]}", 1)
