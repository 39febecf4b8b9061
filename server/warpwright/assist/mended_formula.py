"""An answer of a model that is nearly a formula, mended where the request leaves one way to do so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from warpwright.assist.formula_task import read_formula
from warpwright.formulas.lexer import FormulaError
from warpwright.formulas.model import Formula
from warpwright.formulas.parser import parse
from warpwright.formulas.printer import printed_in_one_line
from warpwright.formulas.resolve import formula_of
from warpwright.formulas.tree import Expr, Load, Name, Num, Outside, Written, rebuilt, walk

_BEYOND: dict[str, Outside | Num] = {
    r"zeros?\b|\b0\b": Num(0),
    r"clamp|nearest|replicat|edges? (?:is|are) repeated": "clamp",
    r"wraps?\b|periodic|circular|modulo": "wrap",
    r"reflect|mirror": "reflect",
}
"""How elements beyond an array are read, by what words say of them."""
_OUTSIDE = re.compile(r"\b(?:outside|beyond|out[ -]of[ -](?:range|bounds)|past|border|boundar|edge|pad|halo|periodic)")


def read_or_mended(answer: str, words: str) -> Formula | str:
    """The formula that an answer is, or that a rule makes of it; else what is wrong with it, in one sentence.

    >>> read_or_mended("x: f16, w: f16, y[i] = 2 * x[i]", "twice x, in half").text
    'x: f16, y[i] = 2 * x[i]'
    """
    formula = read_formula(answer)
    mended = mended_formula(answer, words) if isinstance(formula, str) else None
    return formula if mended is None else mended[0]


def mended_formula(answer: str, words: str) -> tuple[Formula, str] | None:
    """The formula that an answer means which is none, and what was done: a read beyond an array gets the value that the
    words give it, extents that do not agree are left to the arrays, what is declared and not used is left out. None
    where no rule helps.

    >>> text = "y[i] = x[i - 1] + x[i] + x[i + 1]"
    >>> found = mended_formula(text, "sum of each three neighbours, outside counts as zero")
    >>> found[0].text, found[1]
    ('y[i] = x[i - 1; zero] + x[i] + x[i + 1; zero]', 'what is read beyond an array is 0, as the words say')
    >>> mended_formula(text, "sum of each three neighbours") is None
    True
    """
    try:
        written = parse(answer.strip().partition("\n")[0].strip())
    except FormulaError:
        return None
    for changed, said in _changes(written, words.lower()):
        try:
            return formula_of(printed_in_one_line(changed)), said
        except FormulaError:
            continue
    return None


def _changes(written: Written, words: str) -> Iterator[tuple[Written, str]]:
    used = set(_names(written))
    without = replace(written, declarations=tuple(each for each in written.declarations if each.name in used))
    if without != written:
        yield without, "what is declared and not used is left out"
        written = without
    loose = replace(written, declarations=tuple(replace(each, extents=None) for each in written.declarations))
    if loose != written and not any(each.strides or each.fields for each in written.declarations):
        yield loose, "extents that do not agree are those of the arrays"
    meant = [how for said, how in _BEYOND.items() if re.search(said, words)] if _OUTSIDE.search(words) else []
    if len(meant) == 1:
        said = f"what is read beyond an array is {_shown(meant[0])}, as the words say"
        yield _guarded(written, meant[0]), said


def _names(written: Written) -> Iterator[str]:
    """What the equations name; of a field, `p.x`, the array."""
    for equation in written.equations:
        yield equation.name.partition(".")[0]
        for node in (each for root in (equation.value, *equation.index) for each in walk(root)):
            if isinstance(node, Load):
                yield node.tensor.partition(".")[0]
            elif isinstance(node, Name):
                yield node.name


def _guarded(written: Written, outside: Outside | Num) -> Written:
    def change(node: Expr) -> Expr:
        if isinstance(node, Load) and node.outside is None and not all(isinstance(each, Name) for each in node.index):
            return replace(node, outside=outside)
        return node

    return replace(
        written, equations=tuple(replace(each, value=rebuilt(each.value, change)) for each in written.equations)
    )


def _shown(outside: Outside | Num) -> str:
    return (
        "0"
        if isinstance(outside, Num)
        else {"clamp": "the nearest element", "wrap": "read from the other end"}.get(outside, "mirrored")
    )
