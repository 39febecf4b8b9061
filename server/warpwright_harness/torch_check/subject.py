"""What is checked: an operator with arguments, the names of its kernels, and one call of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import torch

from warpwright_harness.torch_check.cause import PythonPath, cause, path_of
from warpwright_harness.torch_check.seen import Seen, watch
from warpwright_harness.torch_check.variants import copied, same, tensors_of

Status = Literal["ran", "fallback", "wrong", "breaks", "raises", "not-run"]
"""`ran`: the kernel did, and the result is right. `fallback`: a result without the kernel. `breaks`: it ran, but graphs
are broken. `raises`: an exception, which nobody can overlook."""

FAULTS = ("fallback", "wrong", "breaks")

TOLERANCE = {torch.float16: 2e-2, torch.bfloat16: 8e-2}
EXACT = 1e-3


@dataclass(frozen=True, slots=True)
class Answer:
    """What a check found. `launches`: how often the kernel ran; `share`: its part of the call's time. `cure` is empty
    where it is the check's own."""

    status: Status
    said: str = ""
    launches: int = 0
    share: float | None = None
    cause: str = ""
    cure: str = ""


@dataclass
class Subject:
    """`device` is "cuda" or "cpu"; `kernels` are the names of which one must run, as found in the plain call where the
    user gave none, `operators` those that torch dispatched there, `registered` those that the module registers.
    `usual` is the path of the plain call through the user's Python, `expected` what it gave, `inside` torch's own
    operators that compute inside of it."""

    call: Callable[..., Any]
    args: tuple[Any, ...]
    device: str
    kernels: tuple[str, ...] = ()
    backward_kernels: tuple[str, ...] = ()
    reference: Callable[..., Any] | None = None
    registered: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    expected: Any = None
    inside: frozenset[str] = frozenset()
    is_repeatable: bool = True
    usual: PythonPath = field(default_factory=PythonPath)

    @property
    def is_differentiable(self) -> bool:
        """Whether floating point goes in and comes out."""
        both = (self.args, self.expected)
        return all(any(each.is_floating_point() for each in tensors_of(one)) for one in both)


def result_of(call: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """What a call gives, and the arguments where that is nothing: it wrote to them."""
    torch.manual_seed(0)
    result = call(*args)
    return result if tensors_of(result) else args


def run(
    subject: Subject,
    args: tuple[Any, ...],
    *,
    call: Callable[..., Any] | None = None,
    around: Callable[[Callable[[], Any]], Any] = lambda work: work(),
    expected: Any = None,
    tolerance: float = EXACT,
    inspected: bool = True,
    gpu: int | None = None,
) -> Answer:
    """Call the operator under the eyes of the profiler. `around` runs the call, as under autocast. `expected` is what
    must come out, None where nothing says so. `inspected`: look for the cause of a fallback by a second call. `gpu` is
    the one on which kernels must run, None where nothing says so."""
    made = call or subject.call
    fresh = copied(args)
    with quiet():
        try:
            result, seen = watch(lambda: around(partial(result_of, made, fresh)), subject.device, functions=True)
        except Exception as error:
            return Answer("raises", first_line(error))
    elsewhere = seen.ran_on(subject.kernels) - {gpu}
    if gpu is not None and elsewhere:
        said = f"the kernel ran on cuda:{min(elsewhere)}, over arguments on cuda:{gpu} that it reached across GPUs"
        return Answer("wrong", said, seen.count(subject.kernels))
    return judged(subject, result, seen, expected, tolerance, lambda: inspected and _cause(subject, made, args, around))


def judged(
    subject: Subject,
    result: Any,
    seen: Seen,
    expected: Any,
    tolerance: float,
    why: Callable[[], str | bool] = lambda: "",
) -> Answer:
    """A result with what was seen on its way."""
    launches, share = seen.count(subject.kernels), seen.share(subject.kernels)
    if not launches:
        instead = f"{seen.most} ran instead" if seen.most else "nothing was seen to run"
        return Answer("fallback", instead, 0, None, str(why() or ""))
    inside = frozenset().union(*(names for op, names in seen.inside.items() if op in subject.kernels))
    if not seen.kernels and inside and not subject.inside:
        return Answer("fallback", f"inside of the operator {', '.join(sorted(inside)[:3])} computed", launches, share)
    if expected is not None and subject.is_repeatable and (differs := same(result, expected, tolerance)):
        return Answer("wrong", differs, launches, share)
    return Answer("ran", "", launches, share)


def _cause(
    subject: Subject,
    call: Callable[..., Any],
    args: tuple[Any, ...],
    around: Callable[[Callable[[], Any]], Any],
) -> str:
    fresh = copied(args)
    with quiet():
        return cause(subject.usual, path_of(lambda: around(partial(result_of, call, fresh))))


def quiet() -> AbstractContextManager[object]:
    return warnings.catch_warnings(action="ignore")


def first_line(error: BaseException) -> str:
    line = next((each.strip() for each in str(error).splitlines() if each.strip()), "")
    return f"{type(error).__name__}: {line[:200]}" if line else type(error).__name__


def settled(subject: Subject, given: tuple[str, ...]) -> Iterator[Answer]:
    """Make the plain call: fills in what is expected, the path and the names of kernels. Yields its answer."""
    fresh = copied(subject.args)
    try:
        with quiet():
            if subject.device == "cuda":
                watch(lambda: None, subject.device)  # the first profile of a process may miss launches
            subject.expected, seen = watch(lambda: result_of(subject.call, fresh), subject.device, functions=True)
            again = result_of(subject.call, copied(subject.args))
            subject.usual = path_of(lambda: result_of(subject.call, copied(subject.args)))
    except Exception as error:
        yield Answer("raises", first_line(error))
        return
    subject.is_repeatable = not same(again, subject.expected, EXACT)
    subject.operators = tuple(seen.operators)
    subject.kernels = given or seen.foreign or subject.registered
    subject.inside = frozenset().union(*(names for op, names in seen.inside.items() if op in subject.kernels))
    expected = None
    if subject.reference is not None:
        try:
            expected = result_of(subject.reference, copied(subject.args))
        except Exception as error:
            yield Answer("raises", f"the reference: {first_line(error)}")
            return
    why = "; ".join(f"{line} raised {said}" for _, line, said in subject.usual.raised[:1])
    found = judged(subject, subject.expected, seen, expected, EXACT)
    yield Answer(found.status, found.said, found.launches, found.share, why and f"line {why}, which is caught")
