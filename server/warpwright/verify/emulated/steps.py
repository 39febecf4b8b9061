"""What a side launches one after the other, and the arrays that each launch is handed a part of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from warpwright.emulator.launch import Argument, ArrayArgument
from warpwright.problems.model import Case, Problem

Started = tuple[int, tuple[str, ...], tuple[int, ...]]


def launches_of(problem: Problem, case: Case, arguments: tuple[str, ...]) -> Iterator[Started]:
    """Each launch in order: the number of its step, the names of its arguments, and the byte of each at which what it
    is handed starts. `arguments` are all of the problem's, which a problem without steps hands to its one kernel."""
    if not problem.steps:
        yield 0, arguments, (0,) * len(arguments)
    for number, (step, repeat) in enumerate(zip(problem.steps, case.repeats, strict=True)):
        moves = repeat.moves or (0,) * len(step.arguments)
        for done in range(repeat.times):
            yield number, step.arguments, tuple(done * by for by in moves)


def behind(argument: Argument, start: int) -> Argument:
    """An array from one of its bytes on; what is no array, and an array from its start on, as it is."""
    if not start or not isinstance(argument, ArrayArgument):
        return argument
    data = argument.data
    return replace(argument, data=data.reshape(-1).view("uint8")[start:].view(data.dtype))


def put_behind(argument: Argument | None, start: int, data: Any) -> Any:
    """The whole array of which `data` is what a launch left from one byte on."""
    if not start or not isinstance(argument, ArrayArgument):
        return data
    whole = argument.data.copy()
    whole.reshape(-1).view("uint8")[start:] = data.reshape(-1).view("uint8")
    return whole
