"""A grammar of expressions: what combines one, two and three values, as text of the language.

`{a}`, `{b}` and `{c}` are values, `{s}` and `{t}` numbers of the caller, `{n}` a literal. A production is taken as
often as its weight says. What is divided by, and what stands under a root or a logarithm, cannot be 0 or negative.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from warpwright_upskill.data.requests.spelled.names import Names

_ONE = """
6 {s} * {a}
4 {n} * {a}
3 {a} / {s}
3 {a} + {s}
3 {a} - {s}
3 1 - {a}
2 -{a}
5 {a} ** 2
1 {a} ** 3
4 abs({a})
4 tanh({a})
3 exp({a})
4 exp(-{a})
2 exp(-{a} ** 2)
1 exp(-{a} ** 2 / {s})
3 sigmoid({a})
1 1 / (1 + exp(-{a}))
2 max({a}, 0)
2 relu({a})
2 sqrt(abs({a}))
2 sqrt({a} ** 2 + {e})
2 log(1 + {a} ** 2)
1 log(1 + exp({a}))
1 log(abs({a}) + {e})
2 1 / (1 + {a} ** 2)
1 1 / (abs({a}) + {e})
2 sin({a})
2 cos({a})
1 cos({s} * {a})
3 clamp({a}, {l}, {n})
2 clamp({a}, {s}, {t})
2 min({a}, {s})
2 max({a}, {s})
1 floor({a})
1 round({a} / {s})
3 {a} if {a} > 0 else {s} * {a}
2 {a} if {a} > {s} else 0
2 {a} if abs({a}) > {s} else 0
1 1 if {a} > {s} else 0
1 1 if {a} >= 0 else -1
1 0.5 * {a} ** 2 if abs({a}) < {s} else {s} * (abs({a}) - 0.5 * {s})
1 {a} * sigmoid({s} * {a})
2 {a} / (1 + abs({a}))
2 {s} * tanh({a} / {s})
1 {s} * {a} + {t}
1 {a} * (1 - {a})
"""
_TWO = """
9 {a} + {b}
9 {a} - {b}
14 {a} * {b}
6 ({a} - {b}) ** 2
4 abs({a} - {b})
4 {a} / {b}
3 {a} / ({b} + {e})
3 {a} / (abs({b}) + {e})
2 {a} / ({b} ** 2 + {s})
2 {a} / (1 + exp({b}))
3 max({a}, {b})
3 min({a}, {b})
2 {a} * exp(-{b})
2 {a} * sigmoid({b})
2 {a} * tanh({b})
2 max({a}, 0) * {b}
3 sqrt({a} ** 2 + {b} ** 2)
3 {a} + {s} * {b}
3 {a} - {s} * {b}
3 {s} * {a} + {t} * {b}
3 {s} * {a} + (1 - {s}) * {b}
2 {a} + {n} * {b}
2 {a} * (1 + {b})
2 {a} * (1 - {b})
2 {a} ** 2 - {b} ** 2
2 {a} * {b} ** 2
2 ({a} - {b}) / {s}
1 ({a} - {b}) / ({a} + {b} + {e})
1 2 * {a} * {b} / ({a} ** 2 + {b} ** 2 + {e})
2 {a} if {a} > {b} else {s} * {b}
2 {a} if {b} > 0 else 0
2 {a} if {b} > {s} else {n} * {a}
1 1 if {a} > {b} else 0
1 {a} if abs({a} - {b}) < {s} else {b}
1 -{a} * log({b} + {e})
1 exp(-({a} - {b}) ** 2 / {s})
"""
_THREE = """
10 {a} * {b} + {c}
4 {a} * {b} - {c}
5 ({a} - {b}) * {c}
3 ({a} + {b}) * {c}
3 ({a} - {b}) / ({c} + {e})
3 ({a} - {b}) * rsqrt({c} ** 2 + {e})
2 {a} + {b} - {c}
3 {a} + {b} * ({c} - {a})
3 {a} * {c} + (1 - {c}) * {b}
3 {a} * ({b} + {c})
2 ({a} - {b}) ** 2 * {c}
3 {a} if {c} > {s} else {b}
2 {a} if {b} < {c} else 0
2 clamp({a}, min({b}, {c}), max({b}, {c}))
2 {a} * {b} * {c}
2 {a} + {s} * ({b} - {c})
1 {a} * {b} / ({c} ** 2 + {e})
"""


def _table(text: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    found = [line.split(" ", 1) for line in text.strip().splitlines()]
    return tuple(each for _, each in found), tuple(int(weight) for weight, _ in found)


_PRODUCTIONS = {1: _table(_ONE), 2: _table(_TWO), 3: _table(_THREE)}
LITERALS = ("2", "0.5", "3", "0.25", "4", "1.5", "0.1", "10", "0.01", "1.702", "6", "100")
SMALL = ("1e-5", "1e-6", "1e-8", "1e-12", "1", "0.001")


def value(names: Names, leaves: Sequence[str], more: int = 0) -> str:
    """An expression in which every leaf stands, with `more` functions of one value around parts of it."""
    chance = names.chance
    terms = [
        f"({each})" if re.search(r"[ -]", each) and not re.fullmatch(r"\w+\[[^\[\]]*\]", each) else each
        for each in leaves
    ]
    while len(terms) > 1 or more > 0:
        if more > 0 and chance.random() < more / (more + len(terms) - 1):
            more -= 1
            count = 1
        else:
            count = 3 if len(terms) > 2 and chance.random() < 0.45 else 2
        at = chance.randrange(len(terms) - count + 1)
        terms[at : at + count] = [f"({production(names, terms[at : at + count])})"]
    return terms[0]


def production(names: Names, parts: Sequence[str]) -> str:
    among, weights = _PRODUCTIONS[len(parts)]
    text = names.chance.choices(among, weights)[0]
    slots = dict(zip("abc", parts, strict=False))
    if "{e}" in text:
        slots["e"] = names.chance.choice(SMALL) if names.chance.random() < 0.7 else names.of("eps eps0 tiny epsilon")
    for slot in "st":
        if f"{{{slot}}}" in text:
            slots[slot] = number(names)
    if "{n}" in text:
        slots["n"] = names.chance.choice(LITERALS)
        slots["l"] = names.chance.choice(("0", f"-{slots['n']}", "-1"))
    return text.format(**slots)


def number(names: Names) -> str:
    """A number that the caller hands over."""
    return names.of(names.theme.numbers)
