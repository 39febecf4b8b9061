"""What came of comparing the outputs: a grid of shapes and kinds of values, the worst difference, what was allowed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from warpwright.verify.presentation.blocks import (
    JUDGES,
    Cell,
    Json,
    Section,
    Table,
    count,
    figure,
    shape_names,
    shape_text,
)
from warpwright.verify.report import USUAL

_MOST_FAILURES = 5
_FEW_ULPS = 1000
"""Beyond, the count tells of results near zero, and the difference itself tells more."""
ULPS = 4
"""What `compare` lets every float differ by, as the harness and the emulator have it."""

_MEASURED = (
    "What is allowed beside them is measured: eight times as far as the outputs of {judge} move when its inputs move "
    "by one unit in the last place, less where a lower precision would pass. Whole numbers, and sums that nothing "
    "rounds, must be equal."
)


def compared_section(report: Json) -> Section | None:
    cases = report["cases"]
    if not cases:
        return None
    if "launches" in cases[0]:
        return Section("Compared", (*_failures(cases), *_recorded(cases)))
    judge = JUDGES.get(report["environment"].get("judge", ""), "the original")
    said = (*_failures(cases), *_worst(cases, judge), *_followed(cases), *_against_reference(cases))
    grid = [case for case in cases if not is_change(case)]
    return Section("Compared", (*([_grid(grid)] if grid else []), *said))


def _recorded(cases: Sequence[Json]) -> Iterator[Cell]:
    """Of host code that was run with made-up values: what was compared, and at which of them."""
    most = max(case["launches"] for case in cases)
    yield Cell(
        "The host code in which the two differ was run with made-up addresses, on a CUDA runtime that writes down what "
        "it is asked for: each launch with its kernel, grid, block, shared memory, stream and arguments, in order; "
        f"up to {most:,} in a run."
    )
    for name in cases[0]["shape"]:
        tried = ", ".join(str(n) for n in sorted({case["shape"][name] for case in cases}))
        yield Cell(f"{name}: {tried}.")
    failed = list(dict.fromkeys(case["distribution"] for case in cases if case["distribution"] != USUAL))
    if failed:
        yield Cell(f"The same where a graph cannot be made, each by itself: {', '.join(failed)}.")


def is_change(case: Json) -> bool:
    """Whether the comparison changed an input of another, to see that the outputs follow it."""
    return str(case["distribution"]).endswith(" changed")


def _followed(cases: Sequence[Json]) -> Iterator[Cell]:
    if changes := [case for case in cases if is_change(case)]:
        right = sum(case["ok"] for case in changes)
        said = "Input sensitivity (one input, or one element of each, changed)"
        yield Cell(f"{said}: {right} of {count(len(changes), 'change')}, at {shape_text(changes[0]['shape'])}.")


def _grid(cases: Sequence[Json]) -> Table:
    kinds = list(dict.fromkeys(case["distribution"] for case in cases))
    shapes: dict[str, dict[str, Json]] = {}
    for case in cases:
        launch = f", {case['launch']}" if "launch" in case else ""
        shapes.setdefault(shape_text(case["shape"]) + launch, {})[case["distribution"]] = case
    rows = tuple((Cell(shape), *(_cell(at.get(kind)) for kind in kinds)) for shape, at in shapes.items())
    return Table((shape_names([case["shape"] for case in cases]), *kinds), rows)


def _cell(case: Json | None) -> Cell:
    if case is None:
        return Cell(".", "dim")
    if not case["ok"]:
        return Cell("UNSAFE" if case.get("unsafe") else "WRONG", "bad")
    if not case["max_abs"]:
        return Cell("=", "good")
    if 0 < case.get("max_ulp", 0) < _FEW_ULPS:
        return Cell(f"{case['max_ulp']:.0f} ulp")
    return Cell(figure(case["max_abs"]))


def _failures(cases: Sequence[Json]) -> Iterator[Cell]:
    """All but the first, which the report's reason tells of."""
    failed = [case for case in cases if not case["ok"]][1:]
    for case in failed[:_MOST_FAILURES]:
        why = case["reason"] or f"off by {figure(case['max_abs'])}"
        yield Cell(f"{_at(case)}: {why}", "bad")
    if len(failed) > _MOST_FAILURES:
        yield Cell(f"and {len(failed) - _MOST_FAILURES} more", "bad")


def _worst(cases: Sequence[Json], judge: str) -> Iterator[Cell]:
    measured = [case for case in cases if case["ok"] and case["max_abs"] is not None]
    if not measured:
        return
    signs = '"=" no difference, "." not run.'
    if not any(case["max_abs"] for case in measured):
        everywhere = f" Every output is that of {judge}." if len(measured) == len(cases) else ""
        yield Cell(f"{signs}{everywhere}")
        return
    worst = max(measured, key=_share_of_allowed)
    said = [f"{worst['max_ulp']:.3g} units in the last place"] if worst.get("max_ulp") else []
    said += [f"relative L2 {figure(worst['rel_l2'])}"] if worst.get("rel_l2") is not None else []
    apart = f" ({', '.join(said)})" if said else ""
    allowed = (
        f"; {figure(worst['tolerance'])} and {ULPS} units in the last place are allowed there"
        if worst.get("tolerance")
        else ""
    )
    furthest = f"Largest accepted error against {judge}: {figure(worst['max_abs'])}{apart}"
    yield Cell(f"{signs} {furthest} at {_at(worst)}{allowed}.")
    if any("tolerance" in case for case in measured):
        measured_on = "the kernel" if judge == JUDGES["reference"] else judge
        yield Cell(_MEASURED.format(judge=measured_on), "dim")


def _share_of_allowed(case: Json) -> tuple[float, float]:
    tolerance = case.get("tolerance") or 0.0
    return (case["max_abs"] / tolerance if tolerance else 0.0), case["max_abs"]


def _against_reference(cases: Sequence[Json]) -> Iterator[Cell]:
    """How far both are from float64: the relative L2 norm, which small results beside large ones do not blow up."""
    errors = [case["reference"] for case in cases if case.get("reference")]
    for key, name in (("rel_l2", "relative L2 error"), ("max_abs", "error")):
        sides = {"candidate": _error(errors, f"candidate_{key}"), "original": _error(errors, f"baseline_{key}")}
        known = [f"the {side}'s {figure(error)}" for side, error in sides.items() if error is not None]
        if known:
            yield Cell(f"The largest {name} against the reference in float64: {', '.join(known)}.")
            return


def _error(errors: Sequence[Mapping[str, float | None]], key: str) -> float | None:
    return max((size for error in errors if (size := error.get(key)) is not None), default=None)


def _at(case: Json) -> str:
    return f"{shape_text(case['shape'])}, {case['distribution']}"
