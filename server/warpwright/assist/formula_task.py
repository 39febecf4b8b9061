"""The task *formula*: what the model is shown of a request, the form of its answer, and what an answer says.

Training and serving render by these functions alone. A training example is `formula_prompt(request) +
formula_answer(text)`, ended by the model's end-of-sequence token; the loss belongs on the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from warpwright.assist.prompts import one_line
from warpwright.formulas.lexer import FormulaError
from warpwright.formulas.model import Formula
from warpwright.formulas.parser import parse
from warpwright.formulas.printer import printed_in_one_line
from warpwright.formulas.resolve import resolve

COMMENT_CHARACTERS = 1000
GIVEN_CHARACTERS = 600
STOP = "\n"
"""What follows an answer where the model does not end by itself."""
_KEPT = 256
"""Readings that are kept: an answer is read by whoever votes, filters and writes."""


@dataclass(frozen=True, slots=True)
class FormulaRequest:
    """What a formula is asked for with: the user's words; the signature or the declarations that exist already,
    `const float* x, float* out, int n`, "" where there are none; and the (comment, formula) of an example that is
    likely to have the same structure."""

    comment: str
    given: str = ""
    example: tuple[str, str] | None = None


def formula_prompt(request: FormulaRequest) -> str:
    """The text after which the model writes a formula. Raises FormulaError for an example that is none.

    >>> print(formula_prompt(FormulaRequest("sum of\\neach row", "float *x, float *s", ("row means",
    ...                                     "y[i] = mean[j] x[i,j]"))))
    // Like: row means
    // Formula: y[i] = mean[j] x[i, j]
    // Given: float *x, float *s
    // Task: sum of each row
    // Formula:
    """
    lines: list[str] = []
    if request.example:
        comment, formula = request.example
        lines += [f"// Like: {_words(comment)}", f"// Formula:{formula_answer(formula)}"]
    given = one_line(request.given)[:GIVEN_CHARACTERS]
    if given:
        lines.append(f"// Given: {given}")
    return "\n".join([*lines, f"// Task: {_words(request.comment)}", "// Formula:"])


def again_prompt(answer: str, reason: str) -> str:
    """What follows the prompt where an answer was not taken: it, the reason, and the question once more.

    >>> print("// Formula:" + again_prompt(" y[i] = 2 *", "A value is expected, not the end."))
    // Formula: y[i] = 2 *
    // Not taken: A value is expected, not the end.
    // Formula:
    """
    return f" {one_line(answer)}\n// Not taken: {one_line(reason)}\n// Formula:"


def _words(comment: str) -> str:
    return one_line(comment)[:COMMENT_CHARACTERS]


def formula_answer(formula: str) -> str:
    """The answer that a formula is: a blank and the formula in one line. Raises FormulaError for a text that is none.

    >>> formula_answer("y[r]=s[r]*2 # doubled\\n where s[r] = sum[c] x[r,c]")
    ' y[r] = s[r] * 2 where s[r] = sum[c] x[r, c]'
    """
    return f" {printed_in_one_line(parse(formula))}"


@lru_cache(_KEPT)
def read_formula(answer: str) -> Formula | str:
    """The formula that the first line of an answer says, or one sentence that says why there is none.

    >>> read_formula(" y[i] = 2 * x[i]\\n// Task: another").text
    'y[i] = 2 * x[i]'
    >>> read_formula(" y[i] = 2 *")
    'A value is expected, not the end.'
    """
    text = answer.strip().partition("\n")[0].strip()
    try:
        return resolve(text, parse(text))
    except FormulaError as error:
        return error.reason
