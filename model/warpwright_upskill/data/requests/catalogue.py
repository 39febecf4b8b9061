"""All operators, read from the tables beside this module: a file for each topic, with its families.

A table has `shape`, `value`, `says` (a phrase a line; or `called`, the names of a function of one value) and what else
an `Operator` has; `features` are lists of what may stand in a slot of the formula, each with the words for it.

    [activation.leaky_relu]
    shape = 'map'
    value = '{X} if {X} > 0 else {slope} * {X}'
    says = '''
    leaky relu of {x}, {slope}
    '''
    features.slope = [['0.01', '<slope 0.01|negative_slope=0.01>'], ['{alpha}', 'slope {alpha}']]

A feature that is a name, `features.mode = 'borders'`, is the list of that name in features.toml.
"""

from __future__ import annotations

import tomllib
from operator import itemgetter
from pathlib import Path
from typing import Any

from warpwright_upskill.data.requests.operators import Operator
from warpwright_upskill.data.requests.phrases import lines

FOLDER = Path(__file__).parent / "families"
CALLED = """
<compute|apply|evaluate|> {called} of <each|every> element of {x}
<elementwise|pointwise|element-wise> {called} of {x}
{called} of {x}
apply {called} to {x} <elementwise|>
{called} on {x}
{x} -> {called}
for each i: {called} of {x}[i]
run {called} over the whole array {x}
out = {called}({x})
take {x} and apply {called} to every entry
"""
"""How a function of one value is asked for."""


SHARED: dict[str, list[list[str]]] = tomllib.loads((FOLDER.parent / "features.toml").read_text(encoding="utf-8"))
"""Features that many operators have."""


def _operator(name: str, family: str, table: dict[str, Any]) -> Operator:
    called = table.pop("called", "")
    says = lines(CALLED.replace("{called}", f"<{called}>") if called else table.pop("says"))
    features = {
        key: tuple((text, words) for text, words in (SHARED[among] if isinstance(among, str) else among))
        for key, among in table.pop("features", {}).items()
    }
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    return Operator(name=name, family=family, says=says, features=features, **values)


def _operators() -> tuple[Operator, ...]:
    topics = (tomllib.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.toml"))
    families = sorted((family for topic in topics for family in topic.items()), key=itemgetter(0))
    return tuple(_operator(name, family, table) for family, those in families for name, table in those.items())


OPERATORS = _operators()
