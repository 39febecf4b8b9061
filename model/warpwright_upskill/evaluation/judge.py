"""Whether a formula is what a prompt asks for: at three sets of sizes its outputs must be those of the reference.

Arrays are memory in row-major order, so a formula over [rows, columns] may answer where the reference has [batch, time,
columns]. Each element must lie within the formula's own tolerance.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise, permutations
from typing import Any

import numpy as np
from warpwright.assist.formula_task import read_formula
from warpwright.assist.signature import Parameter, parameters, plain_name
from warpwright.formulas.extents import at_sizes
from warpwright.formulas.model import Formula, Stage
from warpwright.formulas.numpy_agreement import agreement, reference_of
from warpwright.formulas.numpy_reference import EvaluationError, Reference, sizes_of
from warpwright.formulas.numpy_types import Array, cast, kept
from warpwright.formulas.tolerance import error_name
from warpwright.formulas.tree import Name
from warpwright.formulas.types import TYPES, ElementType

from warpwright_upskill.evaluation.assignments import Assignment, Verdict, assignments
from warpwright_upskill.evaluation.prompt_inputs import Input, values_of
from warpwright_upskill.evaluation.references import Result, run_reference
from warpwright_upskill.evaluation.worker import Worker, WorkerError
from warpwright_upskill.prompts import Prompt

SECONDS = 20.0
"""For one answer."""
MOST_CHARACTERS = 4000
MOST_ELEMENTS = 1 << 22
"""Of one array that a formula computes."""
MOST_ASSIGNMENTS = 64
"""Ways to assign the inputs that are evaluated."""
MOST_TRIED = 4096
"""Ways to assign the inputs whose shapes are looked at."""
_CLOSE = 1e-3
_NARROW = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "int8": "i8", "uint8": "u8", "int16": "i16"}
"""Types that a reference does not give by itself, since it is handed floating point of 64 bits."""

_HOW_FAR = ("no formula", "inputs", "types", "shapes", "limits", "values", "right")


def judge(worker: Worker, prompt: Prompt, answer: str) -> Verdict:
    """The verdict on an answer, found in the worker's process (`references.prepare` prepares it)."""
    if len(answer) > MOST_CHARACTERS:
        return Verdict("no formula", f"The answer has more than {MOST_CHARACTERS} characters.")
    try:
        return worker.call(judged, prompt, answer, seconds=SECONDS)  # type: ignore[no-any-return]
    except WorkerError as error:
        return Verdict("limits", f"The formula {error}.")


@dataclass(frozen=True, slots=True)
class Answer:
    """A formula that is what a prompt asks for, and which of its inputs stand for which."""

    formula: Formula
    assignment: Assignment


def judged(prompt: Prompt, answer: str) -> Verdict:
    """As `judge`, in this process and without limits."""
    found = right_answer(prompt, answer)
    return Verdict("right") if isinstance(found, Answer) else found


def right_answer(prompt: Prompt, answer: str) -> Answer | Verdict:
    """The answer as it is right, or what is wrong with it; in this process and without limits."""
    formula = read_formula(answer)
    if isinstance(formula, str):
        return Verdict("no formula", formula)
    try:
        cases = _cases(prompt)
    except Exception as error:
        return Verdict("reference", f"The reference of {prompt.id} raises {type(error).__name__}: {error}")
    signature = parameters(prompt.given)
    orders = _orders(prompt, formula, signature, cases[0])
    if isinstance(orders, Verdict):
        return orders
    verdicts: list[Verdict] = []
    reference = reference_of(formula)
    tried = islice(assignments(prompt, formula, signature, verdicts), MOST_TRIED)
    fitting = (each for each in tried if _fits(formula, orders, each, cases[0], verdicts))
    for assignment in islice(fitting, MOST_ASSIGNMENTS):
        verdict = _evaluated(formula, orders, reference, assignment, cases)
        if verdict.right:
            return Answer(formula, assignment)
        verdicts.append(verdict)
    other = Verdict("inputs", "The formula's inputs are not those that are asked for.")
    return max(verdicts, key=lambda each: _HOW_FAR.index(each.kind), default=other)


# What the reference gives


@dataclass(frozen=True, slots=True)
class Case:
    """A set of sizes with the inputs that are drawn for it, and what the reference gives."""

    sizes: Mapping[str, int]
    values: Mapping[str, Array]
    results: tuple[Result, ...]


_CASES: dict[tuple[str, str], tuple[Case, ...]] = {}


def _cases(prompt: Prompt) -> tuple[Case, ...]:
    key = prompt.id, prompt.reference
    if key not in _CASES:
        made = []
        for number, sizes in enumerate(prompt.sets):
            values = values_of(prompt.inputs, sizes, number)
            made.append(Case(sizes, values, run_reference(prompt.reference, values)))
        _CASES[key] = tuple(made)
    return _CASES[key]


# Results: how many, of which types, in which of the signature's arrays


def _results(
    prompt: Prompt, formula: Formula, signature: Sequence[Parameter], case: Case
) -> tuple[Stage, ...] | Verdict:
    """The formula's results in the order of the reference's, where a signature tells it: references give them in the
    order of the signature's arrays. Else in the formula's own order."""
    outputs, asked = formula.outputs, case.results
    if len(outputs) != len(asked):
        return Verdict("inputs", f"The formula has {len(outputs)} results where {len(asked)} are asked for.")
    written = {plain_name(each.name): each for each in _written(prompt, signature)}
    if not written:
        return outputs
    targets: dict[str, Stage] = {}
    own = {plain_name(each.name) for each in outputs} | {plain_name(each.name) for each in prompt.inputs}
    free = [name for name in written if name not in own]
    for output in outputs:
        name = plain_name(output.name.partition(".")[0])
        if name not in written and (not free or any(name == plain_name(each.name) for each in signature)):
            return Verdict("inputs", f"The signature has no array that {output.name} may be written to.")
        target = name if name in written else free.pop(0)
        said, kind = written[target].type, formula.type_of(output.name)
        if said and said != kind.name:
            return Verdict("types", f"{output.name} is {kind.name}, and {target} of the signature is {said}.")
        targets[target] = output
    if len(targets) < len(outputs):
        return Verdict("inputs", "Two results are written to one array of the signature.")
    return tuple(targets[name] for name in written if name in targets)


def _written(prompt: Prompt, signature: Sequence[Parameter]) -> list[Parameter]:
    """The arrays of a signature that hold results: of tensors, of which nothing says what is written, those that are no
    input."""
    inputs = {plain_name(each.name) for each in prompt.inputs}
    arrays = [each for each in signature if each.pointer and not each.constant]
    return [each for each in arrays if not each.tensor or plain_name(each.name) not in inputs]


def _orders(
    prompt: Prompt, formula: Formula, signature: Sequence[Parameter], case: Case
) -> tuple[tuple[Stage, ...], ...] | Verdict:
    """The formula's results in the orders in which they may be the reference's."""
    found = _results(prompt, formula, signature, case)
    if isinstance(found, Verdict) or _written(prompt, signature):
        return found if isinstance(found, Verdict) else (found,)
    typed = tuple(
        order
        for order in islice(permutations(found), 24)
        if all(
            _type_answers(prompt, formula.type_of(each.name), result, place)
            for place, (each, result) in enumerate(zip(order, case.results, strict=True))
        )
    )
    if not typed:
        said = ", ".join(formula.type_of(each.name).name for each in found)
        return Verdict("types", f"The results have the types {said}, and others are asked for.")
    return typed


def _type_answers(prompt: Prompt, kind: ElementType, asked: Result, place: int) -> bool:
    """Whether a result of that type answers where no signature says a type."""
    if prompt.outputs:
        return prompt.outputs[place][1] == kind.name
    if asked.type in _NARROW:
        return _NARROW[asked.type] == kind.name
    match asked.values.dtype.kind:
        case "b":
            return kind.kind == "bool"
        case "i" | "u":
            return kind.kind == "integer"
        case "c":
            return kind.kind == "complex"
    own = {each.kind.name for each in prompt.inputs if each.kind.is_float and each.extents is not None}
    return kind.name in (own | {"f32"} if own else {"f32", "f64"})


# One assignment


@dataclass(frozen=True, slots=True)
class Bound:
    """What a formula is evaluated with."""

    arrays: Mapping[str, Array]
    numbers: Mapping[str, Any]
    sizes: Mapping[str, int]


def bound_to(formula: Formula, assignment: Assignment, case: Case) -> Bound | Verdict:
    """The formula's own arrays, numbers and sizes of a case, or why they do not fit."""
    arrays: dict[str, Array] = {}
    for array, (source, groups) in assignment.arrays.items():
        values = case.values[source.name]
        kind = TYPES[array.fields[0].type]
        stored = kept(values, kind)
        if kind.name != source.kind.name and not np.array_equal(stored.astype(np.float64), values.astype(np.float64)):
            return Verdict("types", f"{array.name} is {kind.name}, which does not hold its values.")
        if len(array.fields) > 1:
            if values.shape[-1] != len(array.fields):
                return Verdict("shapes", f"{array.name} has {len(array.fields)} fields, not {values.shape[-1]}.")
            arrays |= {each.name: stored[..., at] for at, each in enumerate(array.fields)}
        else:
            ends = np.cumsum((0, *groups))
            shape = [math.prod(values.shape[a:b]) for a, b in pairwise(ends)]
            arrays[array.fields[0].name] = stored.reshape(shape)
    numbers = {
        name: case.values[each.name].item() if isinstance(each, Input) else _extent(each, case)
        for name, each in assignment.numbers.items()
    }
    sizes = sizes_of(formula, arrays) | {}
    for name in formula.sizes:
        if name not in sizes:
            found = _free_size(formula, name, case)
            if found is None:
                return Verdict("shapes", f"The size {name} follows from no array.")
            sizes[name] = found
    for tensor in formula.inputs:
        shape = [at_sizes(each, sizes) for each in tensor.extents]
        if list(arrays[tensor.name].shape) != shape:
            return Verdict("shapes", f"{tensor.name} is of {shape} where {list(arrays[tensor.name].shape)} is given.")
    return Bound(arrays, numbers, sizes)


def _extent(node: ast.expr, case: Case) -> int:
    return int(eval(compile(ast.Expression(node), "extent", "eval"), {"__builtins__": {}}, dict(case.sizes)))


def _free_size(formula: Formula, size: str, case: Case) -> int | None:
    """A size that no input tells: that of a result, else the reference's of that name."""
    for stage, result in zip(formula.outputs, case.results, strict=True):
        extents = formula.extents_of(stage.name)
        if len(extents) == result.values.ndim and Name(size) in extents:
            return int(result.values.shape[extents.index(Name(size))])
    known = {name.lower(): value for name, value in case.sizes.items()}
    known |= {each: int(value) for each, value in case.values.items() if value.ndim == 0 and value.dtype.kind in "iu"}
    return known.get(size.lower())


def _fits(
    formula: Formula,
    orders: Sequence[Sequence[Stage]],
    assignment: Assignment,
    case: Case,
    verdicts: list[Verdict],
) -> bool:
    """Whether shapes agree; said for the reason where they do not."""
    bound = bound_to(formula, assignment, case)
    if isinstance(bound, Verdict):
        verdicts.append(bound)
        return False
    for stage in formula.stages:
        own = math.prod(at_sizes(formula.dims[each], bound.sizes) for each in stage.dims)
        held = math.prod(at_sizes(each, bound.sizes) for each in formula.extents_of(stage.name))
        if max(own, held) > MOST_ELEMENTS:
            verdicts.append(Verdict("limits", f"{stage.name} has {max(own, held):,} elements at small sizes."))
            return False
    if not any(_sized(formula, order, bound, case) for order in orders):
        shapes = ", ".join(f"{each.name} {_shape(formula, each, bound)}" for each in formula.outputs)
        asked = ", ".join(str(list(each.values.shape)) for each in case.results)
        verdicts.append(Verdict("shapes", f"The results have the shapes {shapes}, not {asked}."))
        return False
    return True


def _shape(formula: Formula, stage: Stage, bound: Bound) -> list[int]:
    return [at_sizes(each, bound.sizes) for each in formula.extents_of(stage.name)]


def _sized(formula: Formula, order: Sequence[Stage], bound: Bound, case: Case) -> bool:
    """Whether each result has as many elements as the reference's."""
    return all(
        math.prod(_shape(formula, stage, bound)) == result.values.size
        for stage, result in zip(order, case.results, strict=True)
    )


def _evaluated(
    formula: Formula,
    orders: Sequence[Sequence[Stage]],
    reference: Reference,
    assignment: Assignment,
    cases: Sequence[Case],
) -> Verdict:
    for case in cases:
        where = ", ".join(f"{name} = {value}" for name, value in case.sizes.items()) or "its sizes"
        bound = bound_to(formula, assignment, case)
        if isinstance(bound, Verdict):
            return bound
        try:
            found = reference(bound.arrays, bound.numbers, bound.sizes)
        except EvaluationError as error:
            return Verdict("values", f"At {where}: {error}")
        wrong = ["The results have other shapes."]
        for order in orders:
            if _sized(formula, order, bound, case):
                pairs = zip(order, case.results, strict=True)
                wrong = [said for stage, result in pairs if (said := _differs(formula, stage, result, found))]
                if not wrong:
                    break
        else:
            return Verdict("values", f"At {where}: {wrong[0]}")
    return Verdict("right")


def _differs(formula: Formula, stage: Stage, asked: Result, found: Mapping[str, Array]) -> str:
    """How a result differs from the reference's, "" where it does not. What the tolerance leaves open is compared
    as numbers are."""
    kind = formula.type_of(stage.name)
    expected, error = found[stage.name], np.asarray(found[error_name(stage.name)], np.float64)
    wanted = asked.values.reshape(np.shape(expected))
    if kind.kind != "complex" and wanted.dtype.kind == "c":
        return f"{stage.name} is no complex number."
    # What the reference gives is "got": it is judged as a kernel would be.
    result = agreement(stage.name, cast(wanted, kind), expected, error, kind)
    if not result.agrees:
        where = f"{stage.name}[{', '.join(map(str, result.place))}]" if result.place else stage.name
        more = f", and {result.wrong - 1} more of {result.elements} differ" if result.wrong > 1 else ""
        return f"{where} is {result.expected:.6g} where {result.got:.6g} is asked for{more}."
    open_ = ~np.isfinite(error) & np.isfinite(expected)
    if kind.is_float and not np.allclose(wanted[open_], expected[open_], rtol=_CLOSE, atol=_CLOSE):
        return f"{stage.name} differs where its errors have no bound."
    return ""
