"""Every error of a formula: one sentence at a place. `fixtures/errors.txt` holds a formula for each, with a caret."""

from __future__ import annotations

import ast
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
from warpwright.formulas import lexer
from warpwright.formulas.lexer import MOST_CHARACTERS, FormulaError
from warpwright.formulas.parser import MOST_DEPTH, MOST_EQUATIONS
from warpwright.formulas.resolve import formula_of

BLOCKS = (Path(__file__).parent / "fixtures" / "errors.txt").read_text(encoding="utf-8").strip().split("\n\n")
LARGE = {
    "many characters": "y[i] = x[i]" + " " * MOST_CHARACTERS + "+ 1",
    "many equations": "\n".join(f"y{i} = {i}" for i in range(MOST_EQUATIONS + 1)),
    "a long sum": "y[i] = x[i]" + " + 1" * MOST_DEPTH,
    "deep parentheses": "y[i] = " + "(" * MOST_DEPTH + "x[i]" + ")" * MOST_DEPTH,
    "deep signs": "y[i] = " + "-~" * MOST_DEPTH + "x[i]",
}


def taken_apart(block: str) -> tuple[str, tuple[int, int], str]:
    """The formula, line and column of the caret, and the sentence."""
    *lines, said = block.split("\n")
    line = next(place for place, text in enumerate(lines) if text.strip() == "^")
    caret = lines.pop(line)
    return "\n".join(lines), (line, len(caret)), said.removeprefix("error: ")


def refused(text: str) -> FormulaError:
    with pytest.raises(FormulaError) as caught:
        formula_of(text)
    return caught.value


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.split("\n")[-1].removeprefix("error: ")[:60])
def test_an_error_is_one_sentence_at_its_place(block: str) -> None:
    text, place, said = taken_apart(block)
    error = refused(text)
    assert (error.position, error.reason) == (place, said)
    assert said[-1] == "."
    assert str(error).split("\n")[-1].index("^") == place[1] - 1


@pytest.mark.parametrize("name", LARGE)
def test_what_is_too_large_is_refused(name: str) -> None:
    assert refused(LARGE[name]).reason


def test_what_is_just_small_enough_is_read() -> None:
    assert formula_of("y[i] = x[i]" + " + 1" * (MOST_DEPTH - 2))
    assert formula_of("\n".join(f"y{i} = {i}" for i in range(MOST_EQUATIONS)))


def test_an_empty_formula_is_refused_at_its_end() -> None:
    error = refused("  # nothing\n")
    assert (error.reason, error.position) == ("An equation is missing, as in y[i] = 2 * x[i].", (1, 12))


def raising(path: Path) -> Iterator[tuple[int, int]]:
    """First and last line of each statement that ends in a FormulaError."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        call = node.exc if isinstance(node, ast.Raise) else node.value if isinstance(node, ast.Expr) else None
        if not isinstance(call, ast.Call):
            continue
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name in ("fail", "too_deep", "FormulaError", "TypeRuleError"):
            yield node.lineno, node.end_lineno or node.lineno


def test_every_error_has_a_fixture() -> None:
    """What can be raised is: no statement that refuses a formula is without an example."""
    seen: set[tuple[str, int]] = set()
    for text in [*(taken_apart(block)[0] for block in BLOCKS), *LARGE.values(), ""]:
        error: BaseException | None = refused(text)
        while error is not None:
            seen |= {
                (Path(frame.filename).name, frame.lineno or 0) for frame in traceback.extract_tb(error.__traceback__)
            }
            error = error.__context__
    folder = Path(lexer.__file__).parent
    modules = (
        "lexer.py",
        "parser.py",
        "plain.py",
        "extents.py",
        "order.py",
        "inside.py",
        "resolve.py",
        "typing_rules.py",
    )
    missing = [
        f"{name}:{first}"
        for name in modules
        for first, last in raising(folder / name)
        if not any((name, line) in seen for line in range(first, last + 1))
    ]
    assert not missing
