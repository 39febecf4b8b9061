"""What do the results depend on? On every input that the original's depend on, and on nothing else.

At one shape, after it was found right: each input and each floating-point number is changed alone; then a tenth of
every input's elements, at secret places; then what the candidate's own variables hold, as if earlier launches had left
it there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import torch

from warpwright_harness.buffers import Inputs, bits
from warpwright_harness.checks.compare import compare
from warpwright_harness.checks.correctness import (
    Checked,
    Reference,
    UnsupportedError,
    checked,
    emit_case,
    input_values,
    seed_of,
    unsafe,
)
from warpwright_harness.session import DEVICE, Case, MisbehaviourError, Outputs, Session
from warpwright_harness.variables import changed, variable_named

MOST_ELEMENTS = 1 << 20
SCALAR_FACTOR = 0.7316717
SHARE = 0.1
_SALT = 300


def dependence_case(cases: Sequence[Case]) -> Case | None:
    """The largest that is quick."""
    small = [case for case in cases if sum(s.scalars for s in case.arrays) <= MOST_ELEMENTS]
    return max(small, key=lambda case: sum(s.scalars for s in case.arrays), default=None)


def check_dependence(session: Session, case: Case, reference: Reference | None, judge: str) -> bool:
    """Events "case", one for each change, and notes on inputs that nothing depends on; False where one is wrong."""

    def compared(at: Case, values: Inputs, what: str) -> Checked | None:
        """None where the event says that the candidate is wrong. Raises UnsupportedError."""
        try:
            return checked(session, at, values, "normal", reference, judge)
        except MisbehaviourError as error:
            emit_case(session, case, what, unsafe(error))
            return None

    try:
        values = input_values(session, case, "normal", 0)
        base = compared(case, values, "normal")
        if base is None:
            return False
        for what, at, moved in _changes(session, case, values):
            found = compared(at, moved, what)
            if found is None:
                return False
            result = dict(found.result)
            depends = _differ(case, found.expected, base.expected, found.due)
            if not result["ok"] and depends and not _differ(case, found.candidate, base.candidate, found.due):
                result["reason"] = f"its outputs do not change with it; {result['reason']}"
            emit_case(session, case, what, result)
            if not result["ok"]:
                return False
            if not depends and what.startswith("only "):
                name = what.removeprefix("only ").removesuffix(" changed")
                session.emit({"event": "note", "text": f"no output was seen to depend on {name}"})
        return check_state(session, case, values, base, judge == "baseline")
    except UnsupportedError as error:
        session.emit({"event": "note", "text": f"what the outputs depend on was not looked at: {error}"})
        return True


def _changes(session: Session, case: Case, values: Inputs) -> Iterator[tuple[str, Case, Inputs]]:
    """In words what is changed, the case and the values to run on."""
    others = input_values(session, case, "normal", _SALT)
    for spec in case.inputs:
        yield f"only {spec.name} changed", case, Inputs({**values, spec.name: others[spec.name]})
    for name in session.floating_scalars:
        if case.scalars[name]:
            moved = {**case.scalars, name: case.scalars[name] * SCALAR_FACTOR}
            yield f"only {name} changed", replace(case, scalars=moved), values
    for turn in (1, 2):  # a candidate that keeps a result by some elements' values sees those unchanged in one of two
        some: dict[str, torch.Tensor] = {}
        for number, spec in enumerate(case.inputs):
            generator = torch.Generator(device=DEVICE).manual_seed(seed_of(session, case, _SALT + 10 * turn + number))
            picked = torch.rand(spec.scalars, generator=generator, device=DEVICE) < SHARE
            if spec.scalars:
                picked[seed_of(session, case, _SALT + turn) % spec.scalars] = True
            some[spec.name] = torch.where(picked, others[spec.name], values[spec.name])
        if some:
            yield "some elements of each input changed", case, Inputs(some)


def _differ(case: Case, one: Outputs, other: Outputs, due: Mapping[str, torch.Tensor]) -> bool:
    compared = [spec.name for spec in case.compared if spec.name in due]
    return any(bool((bits(one.values[name]) != bits(other.values[name]))[due[name]].any()) for name in compared)


def _other_variables(states: Sequence[Mapping[str, bytes]], compared: set[str]) -> list[str]:
    """Variables beyond those that are compared, that other files may read and in which the candidate, the last, leaves
    other bytes than two runs of the original."""
    known = {variable_named(name, states[0]) for name in compared}
    found: list[str] = []
    for name in sorted(states[0].keys() & states[2].keys() - known):
        one, again, other = (state[name] for state in states)
        is_own = name.startswith("_ZL") or "_GLOBAL__N_" in name
        if not is_own and one == again and len(one) == len(other) and one != other:
            found.append(name)
    return found


def _second_launches(session: Session, case: Case, values: Inputs, base: Checked) -> str:
    """How the candidate's second launch leaves something else than the original's, both begun as they were loaded; ""
    where it does not."""
    left: dict[str, Outputs] = {}
    states: list[dict[str, bytes]] = []
    for side in ("baseline", "baseline", "candidate"):
        if not session.begin_again(side):
            return ""
        buffers = session.buffers(case)
        session.run(side, case, buffers, values, session.poisons[0])
        states.append(session.state(side))
        left[side] = session.run(side, case, buffers, values, session.poisons[0], goes_on=True)
    for name in _other_variables(states, {spec.name for spec in case.results}):
        text = f"it leaves other values in {name}, which another file may read unless it is static"
        session.emit({"event": "uncovered", "what": "output", "text": text})
    tolerance = float(base.result["tolerance"])
    for spec in case.outputs:
        due = base.due[spec.name]
        own, expected = (left[side].values[spec.name] for side in ("candidate", "baseline"))
        if why := compare(spec, own, expected, (due, due), tolerance).why:
            return why
    return ""


def check_state(session: Session, case: Case, values: Inputs, base: Checked, judged_by_original: bool) -> bool:
    """Does what earlier launches left in the candidate's variables change its result, otherwise than the original's?

    Of the variables that a launch of the candidate changes, and one of the original does not, each byte is set to 1 and
    then to 255. Their old content is put back.
    """
    buffers = session.buffers(case)

    def after(side: str, run: Callable[[], object]) -> tuple[dict[str, bytes], frozenset[str]]:
        before = session.state(side)
        run()
        return before, changed(before, session.state(side))

    def launched(side: str) -> Outputs:
        return session.run(side, case, buffers, values, session.poisons[0])

    try:
        before, kept = after("candidate", lambda: launched("candidate"))
        _, known = after("baseline", lambda: launched("baseline"))
        if not kept and not known:
            return True
        suspects = kept - known
        why = ""
        for byte in (1, 255) if suspects else ():
            session.set_state("candidate", {name: bytes([byte]) * len(before[name]) for name in suspects})
            outputs = launched("candidate")
            for spec in case.outputs:
                due, tolerance = base.due[spec.name], float(base.result["tolerance"])
                own, expected = outputs.values[spec.name], base.candidate.values[spec.name]
                why = why or compare(spec, own, expected, (due, due), tolerance).why
        session.set_state("candidate", before)
        if not why and judged_by_original and (again := _second_launches(session, case, values, base)):
            reason = f"launched a second time, {again}"
            emit_case(
                session, case, "a second launch", {"ok": False, "reason": reason, "max_abs": None, "max_rel": None}
            )
            return False
    except MisbehaviourError as error:
        why, suspects = str(error), frozenset({"its variables"})
    if not why:
        return True
    names = " and ".join(sorted(suspects))
    reason = f"it depends on what earlier launches left in {names}: {why}"
    result = {"ok": False, "reason": reason, "max_abs": None, "max_rel": None}
    emit_case(session, case, "after other launches", result)
    return False
