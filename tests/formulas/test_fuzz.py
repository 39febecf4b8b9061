"""Whatever is read as a formula is resolved or refused, soon."""

from __future__ import annotations

import random
import time

import pytest
from formula_catalogue import catalogue
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.formula_trees import FORMULAS
from warpwright.formulas.functions import FUNCTIONS, KEYWORDS, REDUCTIONS
from warpwright.formulas.lexer import FormulaError, tokens_of
from warpwright.formulas.printer import printed
from warpwright.formulas.resolve import formula_of
from warpwright.formulas.tree import Written
from warpwright.formulas.types import TYPES

# hypothesis would show how a formula was drawn, at great length.
pytestmark = pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning")

SIGNS = ["[", "]", "(", ")", "{", "}", ",", ";", ":", "=", "+=", "'", "+", "-", "*", "/", "//", "%", "**", "<", "<=",
         ">=", "==", "&", "<<", "~", "\n", "#"]  # fmt: skip
WORDS = [*KEYWORDS, *REDUCTIONS, *FUNCTIONS, *TYPES, "x", "y", "z", "i", "j", "N", "p.x", "zero", "clamp", "2", "0.5"]
CATALOGUE = [each.text for each in catalogue()]


def ends(text: str) -> None:
    """Nothing but a FormulaError, and that within seconds."""
    begun = time.process_time()
    try:
        formula_of(text)
    except FormulaError as error:
        assert error.reason.endswith(".")
        assert str(error)
    assert time.process_time() - begun < 20


@examples(300)
@given(st.one_of(st.text(max_size=200), st.binary(max_size=200).map(lambda data: data.decode("latin-1"))))
def test_any_text(text: str) -> None:
    ends(text)


@examples(300)
@given(st.lists(st.sampled_from([*SIGNS, *WORDS]), max_size=60))
def test_any_tokens(tokens: list[str]) -> None:
    ends("y[i] = " + " ".join(tokens))


@examples(200)
@given(FORMULAS)
def test_any_formula_that_parses(formula: Written) -> None:
    ends(printed(formula))


@pytest.mark.parametrize("seed", range(8))
def test_formulas_with_tokens_changed(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(150):
        words = [token.text for token in tokens_of(draw.choice(CATALOGUE))]
        for _ in range(draw.randint(1, 3)):
            at = draw.randrange(len(words))
            match draw.randrange(4):
                case 0:
                    del words[at]
                case 1:
                    words.insert(at, draw.choice([*SIGNS, *WORDS]))
                case 2:
                    words[at] = draw.choice(words)
                case _:
                    other = draw.randrange(len(words))
                    words[at], words[other] = words[other], words[at]
            words = words or [""]
        ends(" ".join(words))


@pytest.mark.parametrize(
    "text",
    [
        "(" * 20_000,
        "y = " + "-" * 19_000 + "1",
        "y = " + "not " * 4_000 + "true",
        "y = " + "x[" * 9_000,
        "y = " + "sum[k] " * 2_500,
        "y = " + "x if x else " * 1_500 + "x",
        "y = x" + " + x" * 4_900,
        "y = x" + "**x" * 6_000,
        "y[i] = x[" + " * ".join(["(a + b + c + d + e + f + g + h)"] * 90) + "; zero]",
        "y[i] = x[" + " * ".join(["i"] * 90) + "]",
        "y[i] = x[" + " // ".join(["i"] * 90) + " % 7 % 5]",
        "x: f32[" + ", ".join(["N"] * 4_000) + "]\ny[i] = x[i]",
        "y[i] = x[" + ", ".join(["i"] * 4_000) + "]",
        " ".join(f"a{i}=a{i + 1}" for i in range(190)) + " a190=1",
        " ".join(f"a{i}[i]=b[i]+b[i+{i}]" for i in range(190)),
        "y[i] = " + " + ".join(f"x[i + {i}] * w[{i}]" for i in range(99)),
        "y[i] = " + "0 + (0 if i < 1 else " * 45 + "x[i - 1]" + ")" * 45,
        "y = " + "9" * 19_000,
        "y = " + "a" * 19_000 + "(1)",
        "x\x00y = 1",
        "\ud800 = 1",
    ],
    ids=lambda text: text[:24],
)  # fmt: skip
def test_what_is_large_or_odd(text: str) -> None:
    ends(text)
