"""Element types that are not the rest's: results, indices and weights that are stored otherwise."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from random import Random

from warpwright.formulas.model import Formula
from warpwright.formulas.parser import parse
from warpwright.formulas.resolve import formula_of

_INTO: dict[str, tuple[tuple[str, float], ...]] = {
    "i64": (("i32", 0.5), ("u32", 0.04), ("f32", 0.03)),
    "bool": (("u8", 0.25), ("i32", 0.15), ("f32", 0.1)),
    "f16": (("f32", 0.16),),
    "bf16": (("f32", 0.16),),
    "f32": (("f16", 0.04), ("bf16", 0.04), ("f64", 0.02)),
    "f64": (("f32", 0.06),),
    "i32": (("i64", 0.08), ("f32", 0.05)),
    "u8": (("i32", 0.06),),
}
"""What a result is stored as in place of the type of its value, and how often."""


def stored_otherwise(formula: Formula, declared: Collection[str], low: str, chance: Random) -> dict[str, str]:
    """Types for results and indices of which nothing is declared. `low` is the type that a result is mostly brought
    back to where its value is wider; "" where there is none."""
    found: dict[str, str] = {}
    of: dict[str, str] = {}
    for each in formula.outputs:
        if each.name in declared or each.primed or each.combine or formula.tensors[each.name].base:
            continue
        if each.type not in of:
            among = (*((low, 0.88),) * bool(low and each.type == "f32"), *_INTO.get(each.type, ()))
            draw = chance.random()
            of[each.type] = each.type
            for name, share in among:
                draw -= share
                if draw < 0:
                    of[each.type] = name
                    break
        if of[each.type] != each.type:
            found[each.name] = of[each.type]
    indices = [each.name for each in formula.inputs if each.type == "i32" and each.name not in declared]
    if indices and chance.random() < 0.3:
        found |= dict.fromkeys(indices, "i64")
    return found


def mixed(others: Sequence[str], kind: str, chance: Random) -> dict[str, str]:
    """Of floating-point arrays beside the first those that are not of its `kind`: weights in f32 beside what is stored
    in 16 bits, or the other way round."""
    share = {"f16": 0.3, "bf16": 0.3, "f32": 0.06}.get(kind, 0)
    if not others or chance.random() > share:
        return {}
    some = chance.sample(others, chance.randint(1, len(others)))
    return dict.fromkeys(some, chance.choice(("f16", "bf16")) if kind == "f32" else "f32")


def flags_as_numbers(text: str, chance: Random) -> tuple[str, dict[str, str]]:
    """The text with its truth values, of which nothing is declared, sometimes stored as whole numbers: not zero is
    true."""
    declared = {each.name for each in parse(text).declarations}
    flags = [each.name for each in formula_of(text).inputs if each.type == "bool" and each.name not in declared]
    if not flags or chance.random() > 0.4:
        return text, {}
    for each in flags:
        text = re.sub(rf"\b{re.escape(each)}(\[[^\]]*\])", rf"{each}\1 != 0", text)
    return text, dict.fromkeys(flags, chance.choice(("u8", "u8", "i32")))
