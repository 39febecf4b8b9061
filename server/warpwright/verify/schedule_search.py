"""The schedule of a formula for some sizes: candidates in the order of the cost model, the best of them timed where a
GPU is, and the result kept."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from warpwright.directories import cache_dir, read_kept, write_kept
from warpwright.emulator.formula_memory import in_memory
from warpwright.emulator.formulas import compiled
from warpwright.formulas.inputs import NoInputsError
from warpwright.formulas.model import Formula
from warpwright.formulas.numpy_inputs import drawn
from warpwright.formulas.shapes import bytes_of
from warpwright.missing import Missing
from warpwright.progress import IsCancelled, Progress
from warpwright.schedules.model import Schedule
from warpwright.schedules.text import shown
from warpwright.syntax.encoding import encoded
from warpwright.syntax.source import Source
from warpwright.toolchain import cache
from warpwright.toolchain.compile import compile_cubin
from warpwright.verify.harness import Gpu
from warpwright.verify.schedule_cost import predicted_us
from warpwright.verify.schedule_timing import timed_on
from warpwright.writer.code import Code
from warpwright.writer.write import ScheduleError, alternatives, file_text, written

MOST_BYTES = 1 << 30
"""Of all arrays for which a schedule is sought."""
MOST_TIMED = 12
"""Candidates that are timed, the best by the cost model among them."""
RULES = "rules"
"""What the schedules that the rules give are called, one behind the other by what decides at run time."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One schedule: its text, what the cost model predicts and what a GPU measured, in microseconds; `reason` says why
    there is no figure."""

    schedule: str
    predicted_us: float | None = None
    measured_us: float | None = None
    reason: str = ""

    @property
    def rank(self) -> tuple[float, float]:
        """Measured ones first, by their time, then the others by the prediction."""
        return (
            math.inf if self.measured_us is None else self.measured_us,
            math.inf if self.predicted_us is None else self.predicted_us,
        )


@dataclass(frozen=True, slots=True)
class Found:
    """Candidates from the best to the worst for some sizes, and the GPU that timed them, "" where the order is the cost
    model's."""

    sizes: Mapping[str, int]
    candidates: tuple[Candidate, ...]
    gpu: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"sizes": dict(self.sizes), "gpu": self.gpu, "candidates": [asdict(each) for each in self.candidates]}


def searched(
    formula: Formula,
    sizes: Mapping[str, int],
    arch: str,
    gpu: Gpu | None,
    seconds: float,
    progress: Progress,
    is_cancelled: IsCancelled,
) -> Found | Missing:
    """The schedules that fit the formula at `sizes`, in the order of the cost model; on a `gpu`, the best of them by it
    are timed, for about so many `seconds`. What was found before for the same text, sizes, architecture and GPU is read
    from the cache. Raises CancelledError."""
    bytes_ = bytes_of(formula, sizes)
    if bytes_ > MOST_BYTES:
        return Missing("size", f"The arrays take {bytes_:,} bytes; a search takes at most {MOST_BYTES:,}.", "")
    options: list[Schedule | None] = [None, *alternatives(formula, sizes)]
    codes: dict[str, Code] = {}
    refused: list[Candidate] = []
    for number, each in enumerate(options):
        name = RULES if each is None else shown(each)
        try:
            codes[name] = written(formula, f"candidate_{number}", each, sizes=sizes)
        except ScheduleError as error:
            refused.append(Candidate(name, reason=str(error)))
    text = file_text(*codes.values())
    on = "" if gpu is None else gpu.name
    path = cache_dir() / "schedules" / f"{cache.key_of(text, sorted(sizes.items()), arch, on)}.json"
    kept = _kept(read_kept(path))
    if {each.schedule for each in kept} == {*codes, *(each.schedule for each in refused)}:
        return Found(dict(sizes), kept, on)
    try:
        inputs = drawn(formula, sizes)
    except NoInputsError as error:
        return Missing("inputs", str(error), "")
    ordered = _predicted(formula, codes, text, inputs, sizes, arch, progress, is_cancelled)
    if isinstance(ordered, Missing):
        return ordered
    if gpu is not None:
        progress(f"Timing schedules on {gpu.name}", None)
        best = [each.schedule for each in ordered if not each.reason][:MOST_TIMED]
        best = best if RULES in best else [*best, RULES]
        rules = codes[RULES]
        own = _inputs(formula, rules, *inputs, sizes)
        times = timed_on(gpu, [codes[each] for each in best], own, seconds, is_cancelled)
        if isinstance(times, Missing):
            return times
        ordered = [replace(each, measured_us=times.get(codes[each.schedule].name)) for each in ordered]
    found = sorted([*ordered, *refused], key=lambda each: each.rank)
    write_kept(path, [asdict(each) for each in found])
    return Found(dict(sizes), tuple(found), on)


def _kept(found: object) -> tuple[Candidate, ...]:
    """What a file of the cache says; nothing where it is of another form."""
    try:
        candidates = tuple(Candidate(**each) for each in found) if isinstance(found, list) else ()
    except TypeError:
        return ()
    times = (us for each in candidates for us in (each.predicted_us, each.measured_us))
    return candidates if all(us is None or isinstance(us, float) for us in times) else ()


def _predicted(
    formula: Formula,
    codes: Mapping[str, Code],
    text: str,
    inputs: tuple[Mapping[str, Any], Mapping[str, float]],
    sizes: Mapping[str, int],
    arch: str,
    progress: Progress,
    is_cancelled: IsCancelled,
) -> list[Candidate] | Missing:
    """The candidates with what the cost model says of them, the fastest first."""
    progress(f"Compiling {len(codes)} schedules", None)
    cubin = compile_cubin(Source("formula.cu", encoded(text)), arch=arch, is_cancelled=is_cancelled)
    if not cubin.ok:
        return Missing("cubin", f"The kernels do not compile: {cubin.reason}", "")
    made = compiled(text, arch)
    if isinstance(made, Missing):
        return made
    found: list[Candidate] = []
    for number, (name, code) in enumerate(codes.items()):
        progress(f"Predicting {name}", number / len(codes))
        own = _inputs(formula, code, *inputs, sizes)
        us = predicted_us(code, made, cubin.kernels, own, arch, is_cancelled)
        found.append(Candidate(name, reason=us.reason) if isinstance(us, Missing) else Candidate(name, us))
    return sorted(found, key=lambda each: each.rank)


def _inputs(
    formula: Formula,
    code: Code,
    arrays: Mapping[str, Any],
    scalars: Mapping[str, float],
    sizes: Mapping[str, int],
) -> tuple[Mapping[str, Any], Mapping[str, float], Mapping[str, int]]:
    """By the code's own names, as they lie in memory."""
    names = dict(zip(formula.tensors, code.formula.tensors, strict=True))
    numbers = dict(zip(formula.scalars, code.formula.scalars, strict=True))
    own = dict(zip(formula.sizes, code.formula.sizes, strict=True))
    own_sizes = {own[name]: number for name, number in sizes.items() if name in own}
    held = in_memory(code.formula, {names[name]: data for name, data in arrays.items()}, own_sizes)
    return held, {numbers[name]: number for name, number in scalars.items()}, own_sizes
