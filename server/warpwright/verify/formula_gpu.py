"""Written formulas on the GPU: hundreds of launch functions in one library, each run by the harness at several sizes
beside its formula's evaluation by torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warpwright.formulas.document import document_of
from warpwright.formulas.extents import at_sizes, strides_at
from warpwright.formulas.inputs import NoInputsError, draws_of, makes_indices
from warpwright.formulas.model import Formula
from warpwright.formulas.shapes import Shape, to_time, to_try
from warpwright.formulas.tolerance import with_errors
from warpwright.formulas.types import TYPES, computed
from warpwright.missing import Missing
from warpwright.progress import IsCancelled
from warpwright.syntax.encoding import encoded
from warpwright.syntax.source import Source
from warpwright.toolchain.compile import compile_host
from warpwright.verify.child import ChildEndedError
from warpwright.verify.harness import Gpu, run_request
from warpwright.verify.plan import gpu_lock
from warpwright.writer.code import Code
from warpwright.writer.coverage import chosen, sizes_of
from warpwright.writer.launch import arrays
from warpwright.writer.write import file_text

LARGE_BYTES, LARGE_OPERATIONS = 1 << 24, 1 << 24
"""Of the largest shapes: the reference evaluates them in double precision, and the bounds of their errors."""
COMPILE_SECONDS = 300.0
STYLES = ("ties", "nan", "inf")


@dataclass(frozen=True, slots=True)
class Case:
    """Sizes, and the kind of values."""

    sizes: Mapping[str, int]
    style: str


@dataclass(frozen=True, slots=True)
class Item:
    """A formula, what was written, under a name of its own, and where it is tried."""

    formula: Formula
    code: Code
    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of one case of the item at `place`: what is wrong, "" where nothing is; `unjudged` elements cannot be
    told right from wrong."""

    place: int
    case: Case
    wrong: str = ""
    unjudged: int = 0


def cases_for(formula: Formula, code: Code, given: Mapping[str, int], count: int) -> tuple[Case, ...]:
    """`count` shapes, small and large, that take as many paths of the code as they can, with normal numbers, and odd
    ones with numbers of other kinds; before them those of the `given` sizes, if any."""
    large = to_time(formula, LARGE_BYTES, LARGE_OPERATIONS)
    shapes = [*to_try(formula), *(Shape(f"large, {each.name}", each.sizes) for each in large)]
    found, _ = chosen(code, formula, shapes, count)
    own = [{**found[-1].sizes, **given}] if given and found else []
    odd = next((each for each in found if each.name == "odd"), None)
    styles = STYLES[:1] if makes_indices(formula) else STYLES
    cases = [Case(sizes, "normal") for sizes in [*own, *(each.sizes for each in found)]]
    return (*cases, *(Case(odd.sizes, each) for each in styles if odd is not None))


def checked_on(gpu: Gpu, items: Sequence[Item], is_cancelled: IsCancelled) -> Iterator[Checked | Missing]:
    """Each case that is legal, up to the first of an item that is wrong; Missing where the rest cannot be run. Raises
    CancelledError."""
    text = file_text(*(each.code for each in items))
    made = compile_host(
        Source("formula.cu", encoded(text)), arch=gpu.arch, timeout=COMPILE_SECONDS, is_cancelled=is_cancelled
    )
    if made.library is None:
        yield Missing("library", f"The kernels do not compile: {made.reason}", "")
        return
    first = 0
    while first < len(items):  # behind a fault the rest is asked of another process
        ended: int | None = None
        for found in _asked(str(made.library), items, first, is_cancelled):
            yield found
            if isinstance(found, Missing):
                return
            if found.wrong.startswith(_FAULT):
                ended = found.place
        if ended is None:
            return
        first = ended + 1


_FAULT = "The launch failed: "


def _asked(library: str, items: Sequence[Item], first: int, is_cancelled: IsCancelled) -> Iterator[Checked | Missing]:
    cases = [_legal(each) for each in items[first:]]
    request = {
        "measure": "formula-checks",
        "reference": None,
        "lock": gpu_lock(),
        "library": library,
        "formulas": [_formula(item, own) for item, own in zip(items[first:], cases, strict=True)],
    }
    at: tuple[int, int] | None = None
    try:
        for event in run_request(request, is_cancelled):
            match event["event"]:
                case "begin" if "formula" in event:
                    at = event["formula"], event["case"]
                case "formula-case" if "skipped" not in event:
                    case, _ = cases[event["formula"]][event["case"]]
                    yield Checked(first + event["formula"], case, event["wrong"], event["unjudged"])
                case "fault" | "refused" if at is not None:
                    yield Checked(first + at[0], cases[at[0]][at[1]][0], f"{_FAULT}{event.get('text', '')}")
                case "error":
                    yield Missing("gpu", f"The GPU could not be used: {event.get('text', '')}.", "")
    except (ChildEndedError, OSError) as error:
        if at is None:
            yield Missing("gpu", f"The GPU could not be used: {error}.", "")
        else:
            yield Checked(first + at[0], cases[at[0]][at[1]][0], f"{_FAULT}{error}")


_Legal = list[tuple[Case, dict[str, Any]]]


def _legal(item: Item) -> _Legal:
    """The cases that have inputs, as the harness is told of them."""
    found: _Legal = []
    for number, case in enumerate(item.cases):
        try:
            found.append((case, _case(item, case, number)))
        except NoInputsError:
            continue
    return found


def _formula(item: Item, cases: _Legal) -> dict[str, Any]:
    formula = with_errors(item.formula)
    own = item.code.formula.scalars.values()
    scalars = [(name, computed(TYPES[kind]).name) for name, kind in zip(item.formula.scalars, own, strict=True)]
    return {
        "name": item.code.name,
        "document": document_of(formula),
        "scalars": scalars,
        "has_workspace": bool(item.code.temporaries),
        "cases": [each for _, each in cases],
    }


def _case(item: Item, case: Case, seed: int) -> dict[str, Any]:
    """Raises NoInputsError."""
    formula, code = item.formula, item.code.formula
    sizes = sizes_of(item.code, formula, case.sizes)
    handed = arrays(code)
    places = {name: number for number, (name, _, _) in enumerate(handed)}
    counts = [0] * len(handed)
    tensors = []
    for given, own in zip(formula.tensors, code.tensors.values(), strict=True):
        shape = [at_sizes(each, sizes) for each in own.extents]
        strides = strides_at(own, shape, sizes)
        length = own.offset + 1 + sum((extent - 1) * step for extent, step in zip(shape, strides, strict=True))
        place = places[own.array]
        counts[place] = max(counts[place], length if all(shape) else 0)
        place_of = {"array": place, "shape": shape, "strides": strides, "offset": own.offset}
        tensors.append({"name": given, "type": own.type, "role": own.role, **place_of})
    draws = draws_of(formula, case.sizes)
    return {
        "sizes": dict(case.sizes),
        "lengths": [sizes[name] for name in code.sizes],
        "style": case.style,
        "seed": seed,
        "draws": {name: [each.kind, each.low, each.high] for name, each in draws.items()},
        "arrays": [
            {"name": name, "type": kind, "role": role, "count": count}
            for (name, kind, role), count in zip(handed, counts, strict=True)
        ],
        "tensors": tensors,
    }
