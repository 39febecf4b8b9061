"""Many written formulas at once: hundreds of kernels in one compilation, each compared with its formula."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from warpwright.emulator.formula_check import TOO_LONG, shapes_for, tried
from warpwright.emulator.formulas import Compiled, compiled
from warpwright.formulas.model import Formula
from warpwright.missing import Missing
from warpwright.writer.code import Code
from warpwright.writer.write import file_text

MOST_TOGETHER = 50
"""Formulas in one compilation: the compiler starts in 0.3 s, a kernel takes it 5 to 20 ms, a product has dozens."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one formula: "correct", "wrong", "does-not-compile" or "not-run", with the reason; in how many
    runs."""

    name: str
    status: str
    reason: str = ""
    runs: int = 0


def check_many(written: Sequence[tuple[str, Formula, Code]], shapes: int = 3) -> Iterator[Outcome]:
    """Compares each code, of a name of its own, with its formula at `shapes` sizes, the smallest and the largest among
    those that are tried elsewhere, and with values of other kinds at one."""
    for start in range(0, len(written), MOST_TOGETHER):
        yield from _unit(written[start : start + MOST_TOGETHER], shapes)


def _unit(written: Sequence[tuple[str, Formula, Code]], shapes: int) -> Iterator[Outcome]:
    made = compiled(file_text(*(code for _, _, code in written)))
    if isinstance(made, Missing) and len(written) > 1:  # halves, until the one that does not compile is alone
        middle = len(written) // 2
        yield from _unit(written[:middle], shapes)
        yield from _unit(written[middle:], shapes)
        return
    for name, formula, code in written:
        yield (
            Outcome(name, "does-not-compile", made.reason)
            if isinstance(made, Missing)
            else _one(name, formula, code, made, shapes)
        )


def _one(name: str, formula: Formula, code: Code, made: Compiled, shapes: int) -> Outcome:
    found = shapes_for(formula, {})
    step = max(1, (len(found) - 1) // max(1, shapes - 1))
    runs = 0
    for each in tried(formula, code, made, found[::step]):
        if isinstance(each, Missing):
            if each.what == TOO_LONG:
                continue
            return Outcome(name, "not-run", each.reason, runs)
        runs += 1
        if not each.ok:
            sizes = ", ".join(f"{size} = {number}" for size, number in each.sizes.items())
            return Outcome(name, "wrong", f"At {sizes} ({each.style}): {each.reason}", runs)
    return Outcome(
        name, "correct" if runs else "not-run", "" if runs else "No size that is small enough is legal.", runs
    )
