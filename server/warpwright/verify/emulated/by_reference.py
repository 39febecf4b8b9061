"""A kernel in the emulator against its reference in torch, which runs in a process of its own, on the CPU in float64.

The events are those of comparing two kernels. What may differ is measured on the kernel itself: eight times as far as
its outputs move when its inputs move by one unit in the last place. NumPy comes with what is imported here.
"""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from warpwright.emulator.agreement import compare, is_spread
from warpwright.emulator.drawn import as_type
from warpwright.emulator.launch import LaunchError
from warpwright.emulator.report import said
from warpwright.emulator.values import POISONS, SCALAR_FACTOR, Change, arguments_of, numbers
from warpwright.problems.model import Case
from warpwright.problems.types import element_type
from warpwright.progress import IsCancelled
from warpwright.syntax.encoding import decoded
from warpwright.verify.child import Event
from warpwright.verify.emulated.comparison import Comparison
from warpwright.verify.emulated.events import case_event, unsafe, unsupported
from warpwright.verify.emulated.outputs import Moved, Ran, arrays_of, outputs_of, tolerance_for, written_of
from warpwright.verify.tried import EVERY_DISTRIBUTION


class NoReferenceError(Exception):
    """The reference cannot be called; the message is the end of a sentence."""


class TorchReference:
    """A running process that calls one reference."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self._child = child
        self._answer()

    def __call__(self, inputs: Mapping[str, tuple[str, Any]], scalars: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs by name, flat, as float64 or int64; inputs with their scalar types. Raises NoReferenceError."""
        coded = {name: [scalar, decoded(base64.b64encode(data.tobytes()))] for name, (scalar, data) in inputs.items()}
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(json.dumps({"inputs": coded, "scalars": dict(scalars)}) + "\n")
            self._child.stdin.flush()
        except OSError:
            raise NoReferenceError("the reference's process ended") from None
        outputs = self._answer()["outputs"]
        return {name: numbers(base64.b64decode(data), is_float=kind) for name, (kind, data) in outputs.items()}

    def _answer(self) -> dict[str, Any]:
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"error": "the reference's process ended"}
        if "error" in answer:
            raise NoReferenceError(answer["error"])
        return answer


@contextmanager
def torch_reference(python: str, path: str) -> Iterator[TorchReference]:
    """Start the reference's process; it ends with the context. Raises NoReferenceError."""
    command = [python, "-m", "warpwright_harness.reference", path]
    try:
        child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
    except OSError as error:
        raise NoReferenceError(f"{python} cannot be started ({error.strerror})") from None
    try:
        yield TorchReference(child)
    finally:
        child.kill()
        child.wait()


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceComparison(Comparison):
    """Of one kernel, both as the original and as the candidate, with its reference."""

    reference: TorchReference | None = None

    @property
    def every(self) -> tuple[str, ...]:
        """Without thresholds: 0.1 is another number in float64."""
        return EVERY_DISTRIBUTION

    def compared(
        self,
        index: int,
        steps: int,
        distribution: str,
        salt: int,
        stop: IsCancelled,
        change: Change | None = None,
        after: tuple[Ran | None, Ran | None] = (None, None),
    ) -> Event:
        if after != (None, None):
            return unsupported("a reference has no launches before")
        run = partial(self.run, self.original, index, distribution, salt, stop, change=change)
        try:
            runs = [run(poison=poison, most=4 * self.budget.launch) for poison in POISONS]
        except LaunchError as error:
            return unsafe(f"it cannot be launched: {error}")
        if fault := runs[0].fault() or runs[1].fault():
            return unsafe(said(fault))
        if changed := runs[0].changed_inputs:
            return unsafe(f"it changes its input {changed[0]}")
        case = self.cases[index][0]
        given = arrays_of(
            arguments_of(self.original.problem, case, distribution, self.seed_of(index, salt), change=change)
        )
        try:
            truth = self._truth(given, case, change)
        except NoReferenceError as error:
            return unsupported(str(error))
        return self._against(truth, runs, distribution, Moved(partial(run, most=4 * self.budget.launch)))

    def _truth(self, given: Mapping[str, Any], case: Case, change: Change | None) -> Mapping[str, Any]:
        assert self.reference is not None
        inputs = {
            array.name: (element.scalar, given[array.name])
            for array in self.original.problem.arrays
            if array.role != "out" and array.name in given and (element := element_type(array.type)) is not None
        }
        factor = {change.name: SCALAR_FACTOR} if change is not None else {}
        return self.reference(inputs, {name: value * factor.get(name, 1) for name, value in case.scalars.items()})

    def _against(self, truth: Mapping[str, Any], runs: Sequence[Ran], distribution: str, moved: Moved) -> Event:
        differences, why, spread, sample = [], "", False, {}
        for output, role in outputs_of(self.original.problem):
            own = [ran.outputs[output.name] for ran in runs]
            if output.name not in truth or len(truth[output.name]) > len(own[0]):
                return unsupported(f"the reference's {output.name} does not have the kernel's size")
            wrote = written_of(own, role)
            expected, due = own[0].copy(), wrote.copy()
            expected[: len(truth[output.name])] = as_type(output.scalar, truth[output.name])
            due[: len(truth[output.name])] = True
            tolerance = tolerance_for(output, own, wrote, distribution, moved)
            found = compare(output, own[0], expected, (wrote, due), tolerance)
            again = compare(output, own[1], own[0], (wrote, wrote), tolerance)
            differences.append(found)
            if not why and found.why:
                why = found.why
            elif not why and again.why:
                why = f"it gives another result when the memory around its arrays holds other values: {again.why}"
            spread = spread or is_spread(output, expected[due])
            sample[output.name] = repr(expected[:1].tolist())
        return case_event(differences, why, spread=spread, sample=sample)
