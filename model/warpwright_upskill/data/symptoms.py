"""What the product's tools say of a broken kernel: nvcc, or the emulator beside the formula that it computes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from warpwright.assist.repair_task import compiler_said
from warpwright.emulator.formula_check import Tried, shapes_for, tried
from warpwright.emulator.formulas import FILE, Compiled, read_kernels
from warpwright.formulas.model import Formula
from warpwright.formulas.resolve import formula_of
from warpwright.formulas.shapes import Shape
from warpwright.missing import Missing
from warpwright.syntax.source import Source
from warpwright.toolchain.compile import compile_rough_ptx
from warpwright.toolchain.messages import CompilerMessage
from warpwright.writer.code import Code, Launch
from warpwright.writer.coverage import chosen
from warpwright.writer.write import in_lines, instances_text, plain, written

FORMS = {"plain": plain, "written": written}
"""How a formula is written: a thread for each element, or as the product does."""
SHAPES = 3
MOST_ELEMENTS, MOST_OPERATIONS = 1 << 13, 1 << 16
MOST_LANE_STEPS = 20_000_000
"""Of one run: a broken kernel may never end."""
_LINE = re.compile(r"\bline (\d+)( of formula\.cu)?(: )?")


@dataclass(frozen=True, slots=True)
class Written:
    """A formula in CUDA, of which one kernel is looked at, "" for none. `name` is the code's."""

    formula: str
    form: str
    name: str
    kernel: str

    def text(self) -> str:
        """The kernel's text as a file has it."""
        return in_lines(self.code().kernel(self.kernel).text).strip() + "\n"

    def code(self, text: str = "") -> Code:
        """The code, with another text of the kernel where one is looked at."""
        code = FORMS[self.form](formula_of(self.formula), self.name)
        kernels = (replace(each, text=text or each.text) if each.name == self.kernel else each for each in code.kernels)
        return replace(code, kernels=tuple(kernels))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a kernel: "correct", "wrong", "does-not-compile" or "not-run", with what is said of it. Numbers of
    lines are those of the kernel, from 1 on."""

    status: str
    said: tuple[str, ...] = ()
    runs: int = 0


def verdicts(broken: Sequence[tuple[Written, str]]) -> list[Verdict]:
    """What the tools say of codes, of names of their own, each with a text of its kernel: nvcc of all at once, by whose
    lines a message is about, and of those that compile the emulator, beside their formulas."""
    planned = [_planned(each, text) for each, text in broken]
    found: dict[int, Verdict] = {}
    left = list(range(len(planned)))
    while left:
        unit = _unit_text([planned[at] for at in left])
        made = compile_rough_ptx(Source(FILE, unit.encode()))
        if made.ok:
            kernels = read_kernels(made)
            found |= {at: _run(planned[at], kernels, unit) for at in left}
            break
        errors = [each for each in made.messages if each.severity == "error"]
        rejected = {at: said for at in left if (said := compiler_said(_own_errors(errors, unit, planned[at].text)))}
        found |= {at: Verdict("does-not-compile", said) for at, said in rejected.items()}
        if not rejected:  # such as an error in a helper that only a broken call brings about
            found |= dict.fromkeys(left, Verdict("not-run", (made.reason,)))
            break
        left = [at for at in left if at not in rejected]
    return [found[at] for at in range(len(planned))]


@dataclass(frozen=True, slots=True)
class _Planned:
    """A broken kernel's text in its code, and the sizes at which that is tried."""

    formula: Formula
    code: Code
    text: str
    shapes: tuple[Shape, ...]
    launches: tuple[Launch, ...]


def _planned(each: Written, text: str) -> _Planned:
    formula, code = formula_of(each.formula), each.code(text)
    shapes, paths = chosen(code, formula, shapes_for(formula, {}, MOST_ELEMENTS, MOST_OPERATIONS), SHAPES)
    launches = tuple(launch for path in paths.values() for launch in path.launches)
    return _Planned(formula, code, text, tuple(shapes), launches)


def _unit_text(planned: Sequence[_Planned]) -> str:
    return instances_text([each.code for each in planned], [launch for each in planned for launch in each.launches])


def _own_errors(errors: Sequence[CompilerMessage], unit: str, kernel: str) -> list[CompilerMessage]:
    first, last = _lines_of(unit, kernel)
    return [each for each in errors if first <= each.line <= last]


def _lines_of(file: str, kernel: str) -> tuple[int, int]:
    """The first and the last line of a kernel in a file; none where its text is not there."""
    if not kernel.strip():
        return 1, 0
    before, found, _ = file.partition(kernel.strip())
    first = before.count("\n") + 1
    return (first, first + kernel.strip().count("\n")) if found else (1, 0)


def _run(planned: _Planned, made: Compiled, unit: str) -> Verdict:
    shapes = planned.shapes
    runs = list(tried(planned.formula, planned.code, made, shapes, most_lane_steps=MOST_LANE_STEPS))
    right = sum(isinstance(each, Tried) and each.ok for each in runs)
    last = runs[-1] if runs else None
    if isinstance(last, Tried) and not last.ok:
        sizes = ", ".join(f"{size} = {number}" for size, number in last.sizes.items())
        said = in_kernel(last.reason, unit, planned.text)
        return Verdict("wrong", (f"At {sizes} ({last.style}): {said}",), len(runs))
    if isinstance(last, Missing) or not right:
        return Verdict("not-run", (last.reason,) if isinstance(last, Missing) else (), right)
    return Verdict("correct", (), right)


def in_kernel(said: str, file: str, kernel: str) -> str:
    """A sentence about a file with the numbers of a kernel's own lines, and without those of others.

    >>> in_kernel("line 3 of formula.cu: it reads what line 4 wrote (called from line 1)", "a\\nb\\nc\\nd", "c\\nd")
    "line 1: it reads what line 2 wrote (called from a helper's line)"
    >>> in_kernel("line 3 of formula.cu: it reads", "a\\nb\\nc", "")
    'it reads'
    """
    first, last = _lines_of(file, kernel)

    def own(place: re.Match[str]) -> str:
        if first <= int(place[1]) <= last:
            return f"line {int(place[1]) - first + 1}{place[3] or ''}"
        return "" if place[3] else "a helper's line"

    return _LINE.sub(own, said)
