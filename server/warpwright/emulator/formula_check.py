"""Whether written kernels compute their formula, without a GPU: in the emulator, beside the evaluation by NumPy, size
after size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from warpwright.emulator.formula_memory import as_read, in_memory, outputs_of
from warpwright.emulator.formulas import Compiled, run_code
from warpwright.emulator.launch import LaunchError
from warpwright.emulator.report import said
from warpwright.facts.profile import Fault, FaultKind
from warpwright.formulas.inputs import NoInputsError, makes_indices
from warpwright.formulas.model import Formula
from warpwright.formulas.numpy_agreement import agreements, reference_of
from warpwright.formulas.numpy_inputs import Style, drawn
from warpwright.formulas.numpy_reference import EvaluationError, Reference
from warpwright.formulas.shapes import Shape, elements, operations, to_try
from warpwright.missing import Missing
from warpwright.progress import IsCancelled, never_cancelled
from warpwright.writer.code import Code, Path
from warpwright.writer.coverage import sizes_of

MOST_ELEMENTS, MOST_OPERATIONS = 1 << 14, 1 << 18
"""Of a shape that is tried in the emulator."""
MOST_LANE_STEPS = 1_000_000_000
"""Of one run: some seconds."""
MOST_HELD = 1 << 24
"""Elements of all arrays together, a table of which little is read, too: no more are held in memory."""
LEAST_CUT = 64
"""To which a size is cut down before others are."""
ENDING_OPERATIONS = 10_000
"""Of a formula at some sizes: kernels of fewer that do not end within the steps of a run never end."""
TOO_LONG = "steps"
"""What is missing where kernels of many blocks are not run to their end."""
ALIGNMENT = 256
"""Of what cudaMalloc gives."""
STYLES: tuple[Style, ...] = ("normal", "ties", "nan", "inf")
_POISON = 0x7F
"""What outputs hold before: a NaN of most types, and no number that a formula gives."""


@dataclass(frozen=True, slots=True)
class Tried:
    """One run. `reason` says what is wrong there, "" where nothing is; `unjudged` elements cannot be told right from
    wrong, as roundings before them leave nothing to compare."""

    sizes: Mapping[str, int]
    style: str
    reason: str = ""
    unjudged: int = 0
    paths: tuple[Path, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.reason


def shapes_for(
    formula: Formula,
    given: Mapping[str, int],
    most_elements: int = MOST_ELEMENTS,
    most_operations: int = MOST_OPERATIONS,
) -> list[Shape]:
    """The shapes that are tried, and before them the one that is given, if any, with its largest sizes cut down to what
    the emulator gets through; the sizes that it leaves open are small."""
    shapes = to_try(formula, most_elements, most_operations)
    found = [each for each in shapes if _fits(formula, each.sizes, 4 * most_operations)]
    if given:
        others = shapes[-1].sizes if shapes else {}
        own = Shape("given", cut_down(formula, {**others, **given}))
        found = [own, *found] if _fits(formula, own.sizes, most_operations=4 * MOST_OPERATIONS) else found
    return found


def cut_down(formula: Formula, sizes: Mapping[str, int]) -> dict[str, int]:
    """The sizes, as few of them as can be halved until the emulator gets through: the largest first, and where none is
    large the smallest first, so that some stay longer than a tile.

    >>> from warpwright.formulas.resolve import formula_of
    >>> cut_down(formula_of("y[r] = sum[c] x[r, c]"), {"R": 1 << 20, "C": 4096})
    {'R': 128, 'C': 4096}
    """
    found = dict(sizes)
    for least, sign in ((LEAST_CUT, -1), (1, 1)):
        for name in sorted(sizes, key=lambda each: sign * sizes[each]):
            while found[name] > least and not _fits(formula, found, 4 * MOST_OPERATIONS):
                found[name] //= 2
    return found


def _fits(formula: Formula, sizes: Mapping[str, int], most_operations: int) -> bool:
    return operations(formula, sizes) <= most_operations and elements(formula, sizes) <= MOST_HELD


def tried(
    formula: Formula,
    code: Code,
    made: Compiled,
    shapes: Iterable[Shape],
    is_cancelled: IsCancelled = never_cancelled,
    most_lane_steps: int = MOST_LANE_STEPS,
) -> Iterator[Tried | Missing]:
    """Each shape with normal numbers, and the odd one with numbers of other kinds. Ends behind the first that is
    wrong."""
    shapes = list(shapes)
    expected = reference_of(formula)
    special = next((each for each in shapes if each.name == "odd"), shapes[-1] if shapes else None)
    runs: list[tuple[Shape, Style]] = [(shape, "normal") for shape in shapes]
    styles = [each for each in STYLES[1:] if each == "ties" or not makes_indices(formula)]
    runs += [(special, style) for style in styles if special is not None]
    for number, (shape, style) in enumerate(runs):
        if is_cancelled():
            return
        try:
            found = compared(formula, code, made, expected, shape.sizes, number, style, most_lane_steps=most_lane_steps)
        except (NoInputsError, EvaluationError):
            continue  # such as an array without elements of which one is read
        yield found
        if isinstance(found, Missing) and found.what == TOO_LONG:
            continue
        if isinstance(found, Missing) or not found.ok:
            return


def _is_cut(faults: Sequence[Fault]) -> bool:
    return bool(faults) and all(each.kind is FaultKind.STEP_LIMIT for each in faults)


def compared(
    formula: Formula,
    code: Code,
    made: Compiled,
    reference: Reference,
    sizes: Mapping[str, int],
    seed: int = 0,
    style: Style = "normal",
    alignment: int = ALIGNMENT,
    most_lane_steps: int = MOST_LANE_STEPS,
) -> Tried | Missing:
    """One run, compared with `reference` (`reference_of` the formula); all arrays begin at multiples of `alignment`
    bytes. Raises NoInputsError and EvaluationError."""
    arrays, scalars = drawn(formula, sizes, seed, style)
    own = dict(zip(formula.scalars, code.formula.scalars, strict=True))
    names = dict(zip(formula.tensors, code.formula.tensors, strict=True))
    own_sizes = sizes_of(code, formula, sizes)
    values = {names[name]: data for name, data in arrays.items()}
    held = in_memory(code.formula, values, own_sizes, _POISON)
    held.update({name: np.zeros_like(held[name]) for name in code.zeroed})
    values = as_read(code.formula, values, held, own_sizes)
    expected = reference({name: values[names[name]] for name in arrays}, scalars, sizes)
    numbers = {own[name]: number for name, number in scalars.items()}
    try:
        ran = run_code(
            code,
            made,
            held,
            numbers,
            own_sizes,
            alignment=dict.fromkeys(held, alignment),
            most_lane_steps=most_lane_steps,
        )
    except LaunchError as error:
        return Tried(sizes, style, f"A launch cannot be made: {error}")
    if isinstance(ran, Missing):
        return ran
    if _is_cut(ran.faults) and operations(formula, sizes) > ENDING_OPERATIONS:
        shown = ", ".join(f"{name} = {number}" for name, number in sizes.items())
        return Missing(TOO_LONG, f"{shown} takes more steps than the emulator takes on", "")
    if ran.faults:
        return Tried(sizes, style, said(ran.faults[0]), paths=ran.paths)
    changing = {each.array for each in code.formula.tensors.values() if each.role != "in"}
    for name, data in held.items():
        left = np.asarray(ran.arrays[name]).view(np.uint8)
        if name not in changing and not np.array_equal(left, data.view(np.uint8)):
            return Tried(sizes, style, f"The input {name} was changed.", paths=ran.paths)
    outputs = outputs_of(code.formula, ran.arrays, own_sizes)
    got = {name: outputs[names[name]] for name in (each.name for each in formula.outputs)}
    found = agreements(formula, got, expected)
    wrong = next((each for each in found if not each.agrees), None)
    return Tried(sizes, style, str(wrong) if wrong else "", sum(each.unjudged for each in found), ran.paths)
