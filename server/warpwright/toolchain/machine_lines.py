"""What each source line became, as plain data: made where the compiler runs, looked up where a user waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from warpwright.toolchain.machine_view import (
    KernelCode,
    MachineAccess,
    MachineView,
    Mark,
    Place,
    Step,
    accesses_of,
    called,
    own_places,
)

Json = dict[str, Any]
MOST_SHOWN = 6
"""Instructions of a line that are kept as text."""
MOST_VARIANTS = 4
"""Different machine codes of a line that are kept, of the instances of a template."""


@dataclass(frozen=True, slots=True)
class LineCode:
    """What a line is in one kernel, functions that were inlined at it included: `inlined` of its `sass`.

    `accesses` and `marks` count instructions. `doubles` are the opcodes in double precision, `calls` the functions that
    are called and not inlined. `shown` and `ptx_shown` are the first instructions as text, those with a mark first.
    """

    sass: int
    inlined: int
    ptx: int
    accesses: tuple[tuple[MachineAccess, int], ...] = ()
    marks: tuple[tuple[Mark, int], ...] = ()
    doubles: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    ptx_shown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Variant:
    """One machine code of a line, and the kernels whose code it is."""

    kernels: tuple[str, ...]
    code: LineCode


@dataclass(frozen=True, slots=True)
class MachineLines:
    """By place. `others` counts, for a place, the kernels whose code differs from that of all its variants."""

    arch: str
    compiler: str
    variants: Mapping[Place, tuple[Variant, ...]] = field(default_factory=lambda: {})
    others: Mapping[Place, int] = field(default_factory=lambda: {})

    def at(self, file: str, line: int) -> tuple[Variant, ...]:
        """What a line became; none where the compiler made nothing of it."""
        return self.variants.get((file, line), ())


def machine_lines(view: MachineView, files: Collection[str]) -> MachineLines:
    """Add up a view by the lines of some files, which are named as the compiler names them: absolute."""
    names: dict[Place, dict[LineCode, list[str]]] = {}
    for kernel in view.kernels:
        for place, code in _lines_of(kernel, files).items():
            names.setdefault(place, {}).setdefault(code, []).append(kernel.name)
    variants = {
        place: tuple(Variant(tuple(kernels), code) for code, kernels in list(found.items())[:MOST_VARIANTS])
        for place, found in names.items()
    }
    others = {
        place: sum(len(kernels) for kernels in list(found.values())[MOST_VARIANTS:])
        for place, found in names.items()
        if len(found) > MOST_VARIANTS
    }
    return MachineLines(view.arch, view.compiler, variants, others)


def _lines_of(kernel: KernelCode, files: Collection[str]) -> dict[Place, LineCode]:
    steps: dict[Place, list[Step]] = {}
    inlined: Counter[Place] = Counter()
    for step in kernel.sass:
        places = own_places(step.instruction.places, files)
        for place in dict.fromkeys(places):
            steps.setdefault(place, []).append(step)
            inlined[place] += place != places[0]
    ptx: dict[Place, list[str]] = {}
    for each in kernel.ptx:
        for place in dict.fromkeys(own_places(each.places, files)):
            ptx.setdefault(place, []).append(each.text)
    return {
        place: _line_code(steps.get(place, []), inlined[place], ptx.get(place, []))
        for place in dict.fromkeys((*steps, *ptx))
    }


def _line_code(steps: list[Step], inlined: int, ptx: list[str]) -> LineCode:
    marks = Counter(mark for step in steps for mark in step.marks)
    return LineCode(
        len(steps),
        inlined,
        len(ptx),
        tuple(sorted(accesses_of(steps).items())),
        tuple((mark, marks[mark]) for mark in Mark if marks[mark]),
        tuple(dict.fromkeys(step.instruction.opcode for step in steps if Mark.FP64 in step.marks)),
        tuple(dict.fromkeys(called(step) for step in steps if Mark.CALL in step.marks)),
        tuple(step.instruction.text for step in _worth_showing(steps)),
        tuple(ptx[:MOST_SHOWN]),
    )


def _worth_showing(steps: list[Step]) -> Iterable[Step]:
    """The first instructions of a line in their order; where they are too many, those that say the most."""

    def rank(step: Step) -> int:
        if not step.counts:
            return 3
        return 0 if set(step.marks) - {Mark.PREDICATED} else 1 if step.uses else 2

    chosen = sorted(range(len(steps)), key=lambda index: rank(steps[index]))[:MOST_SHOWN]
    return [steps[index] for index in sorted(chosen)]


# As JSON, between processes


def lines_json(lines: MachineLines) -> Json:
    """For `read_lines`."""
    return {
        "arch": lines.arch,
        "compiler": lines.compiler,
        "lines": [
            [file, line, lines.others.get((file, line), 0), [_variant_json(variant) for variant in variants]]
            for (file, line), variants in lines.variants.items()
        ],
    }


def read_lines(document: Json) -> MachineLines:
    """What `lines_json` wrote. Raises KeyError, TypeError or ValueError for anything else."""
    variants: dict[Place, tuple[Variant, ...]] = {}
    others: dict[Place, int] = {}
    for file, line, left, found in document["lines"]:
        variants[file, line] = tuple(_read_variant(*each) for each in found)
        if left:
            others[file, line] = left
    return MachineLines(document["arch"], document["compiler"], variants, others)


def _variant_json(variant: Variant) -> list[Any]:
    code = variant.code
    return [
        variant.kernels, code.sass, code.inlined, code.ptx,
        [[access.space, access.kind, access.width, count] for access, count in code.accesses],
        [[mark.value, count] for mark, count in code.marks],
        code.doubles, code.calls, code.shown, code.ptx_shown,
    ]  # fmt: skip


def _read_variant(
    kernels: list[str],
    sass: int,
    inlined: int,
    ptx: int,
    accesses: list[tuple[str, str, int, int]],
    marks: list[tuple[str, int]],
    *texts: list[str],
) -> Variant:
    doubles, calls, shown, ptx_shown = (tuple(each) for each in texts)
    counted = tuple((MachineAccess(space, kind, width), count) for space, kind, width, count in accesses)
    marked = tuple((Mark(mark), count) for mark, count in marks)
    code = LineCode(sass, inlined, ptx, counted, marked, doubles, calls, shown, ptx_shown)
    return Variant(tuple(kernels), code)
