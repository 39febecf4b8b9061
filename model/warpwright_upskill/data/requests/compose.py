"""Formulas composed of an operator, what is applied before and after it, a type and a layout."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from warpwright.formulas.lexer import FormulaError
from warpwright.formulas.model import Formula
from warpwright.formulas.parser import parse
from warpwright.formulas.printer import printed_in_one_line
from warpwright.formulas.resolve import formula_of, resolve

from warpwright_upskill.data.requests.catalogue import OPERATORS
from warpwright_upskill.data.requests.clauses import AFTER, BEFORE, Clause
from warpwright_upskill.data.requests.kinds import flags_as_numbers, mixed, stored_otherwise
from warpwright_upskill.data.requests.names import pool, wild
from warpwright_upskill.data.requests.operators import Operator
from warpwright_upskill.data.requests.phrases import filled
from warpwright_upskill.data.requests.vocabulary import DIM_STYLES, DIMS

FAMILIES = tuple(sorted({each.family for each in OPERATORS}))
_SLOT = re.compile(r"\{(\w+)\}")
_NAMED_DIM = re.compile(r"\[[A-Za-z](?:\w*\]|, )")
"""A dimension that words name."""
_CAST = re.compile(r"\b(b?f\d\w*|[iu]\d+)\(")
_FLOAT_SAID = re.compile(r"\bfloats?\b(?!\(')")
_TYPE_SAID = re.compile(r"\b(floats?|int\d*|uint8|bytes?|half|bf16|counts|counters|doubles?|bool\w*)\b(?!\(')")
"""Types in the words of an operator, which others would contradict."""


@dataclass(frozen=True, slots=True)
class Parts:
    """A formula and what it was composed of: enough to say it in words. `along` is the place of the dimension that is
    worked along among `rank` ones. `names` fills the slots of words; `wild` where its names are no usual ones. `adds`:
    the result is added to what its array holds. `dims` are those of the input where they are not the usual ones.
    `typed` are arrays whose types do not follow from `type`."""

    operator: Operator
    text: str
    formula: Formula
    names: dict[str, str]
    features: dict[str, str]
    before: tuple[Clause, ...]
    after: tuple[Clause, ...]
    rank: int
    along: int
    type: str
    layout: str
    wild: bool
    in_place: bool = False
    adds: bool = False
    dims: tuple[str, ...] = ()
    typed: dict[str, str] = field(default_factory=dict)

    @property
    def structure(self) -> str:
        """What the formula is composed of, as one text."""
        clauses = [*(f"<{each.name}" for each in self.before), *(f">{each.name}" for each in self.after)]
        place = "last" if self.along == self.rank - 1 else "first" if self.along == 0 else "middle"
        return " ".join(
            [
                self.operator.name,
                *clauses,
                f"rank={self.rank}",
                f"along={place}",
                f"type={self.type}",
                f"layout={self.layout}",
                *(["in-place"] if self.in_place else []),
                *(["adds"] if self.adds else []),
                *([f"stored={','.join(sorted({*self.typed.values()}))}"] if self.typed else []),
            ]
        )


@dataclass
class _Names:
    """Names for slots, each once in a formula."""

    chance: Random
    wild: bool
    found: dict[str, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=lambda: {"i", "r", "c", "j", "k", "I", "R", "C", "J", "K"})

    def of(self, slot: str) -> str:
        if slot not in self.found:
            usual = pool(slot)
            first = wild(slot, self.chance) if self.wild else usual[0]
            free = (
                each
                for each in (first, *usual, *(f"{usual[0]}{number}" for number in range(2, 9)))
                if each not in self.taken
            )
            self.found[slot] = next(free)
            self.taken.add(self.found[slot])
        return self.found[slot]


def composed(seed: str) -> Parts:
    """The composition of a seed."""
    for trial in range(100):
        chance = Random(f"{seed}/{trial}")
        # Half by operator, half by family, so that small families come up and large ones are known in full.
        family = chance.choice(FAMILIES) if chance.random() < 0.5 else ""
        operator = chance.choice([each for each in OPERATORS if family in ("", each.family)])
        try:
            return composed_of(operator, chance)
        except FormulaError:
            continue
    raise AssertionError(f"{seed}: no composition of {operator.name} is a formula")


def composed_of(operator: Operator, chance: Random) -> Parts:
    """A composition with this operator. Raises FormulaError for one that makes no sense."""
    rank = chance.choice(operator.ranks) if operator.shape != "own" else 0
    along = chance.choices(range(rank - 1, -1, -1), (75, 20, 5, 0)[:rank])[0] if operator.shape == "rows" else rank - 1
    dims = _dims(operator, rank, chance)
    number = "" if not dims else dims[0] if rank == 1 else f"{dims[0]} * {dims[1].upper()} + {dims[1]}"
    slots = {"F": ", ".join(dims), "j": "j", "n": number} | _places(dims)
    if operator.shape == "rows":
        kept = [each for each in dims if each != dims[along]]
        there = ["j" if each == dims[along] else each for each in dims]
        slots |= {"c": dims[along], "C": dims[along].upper(), "B": ", ".join(kept), "Bj": ", ".join(there)}
        slots["lead"] = "".join(f"{each}, " for each in dims[:along])
        slots["tail"] = "".join(f", {each}" for each in dims[along + 1 :])
    features: dict[str, str] = {}
    said: dict[str, str] = {}
    derived: dict[str, str] = {}
    for name, among in operator.features.items():
        features[name], said[name] = chance.choice(among)
    if (width := features.get("ks", "")).isdigit():
        derived |= {"half": str(int(width) // 2), "minus": str(int(width) - 1)}
    if "hd" in features:
        derived["hh"] = str(int(features["hd"]) // 2)
    features |= derived
    before = (
        (chance.choice(BEFORE),) if operator.shape == "rows" and not operator.plain and chance.random() < 0.3 else ()
    )
    reduced = operator.into != "{F}" or operator.shape == "own"
    after = _after(operator, chance)
    names = _Names(chance, wild=chance.random() < 0.5)
    own_text = re.sub(
        r"\{\w+\}", "", " ".join((operator.into, operator.value, operator.where, operator.more, *features.values()))
    )
    own_dims = {*dims, *re.findall(r"\b[a-z]\b", own_text)}
    names.taken |= {*own_dims, *(each.upper() for each in own_dims), *re.findall(r"\b[A-Za-z_]\w*", own_text)}
    into = _Bound(names, slots | features).text(operator.into)
    own = _Bound(names, slots | features)
    bare = f"{names.of('x')}[{slots['F']}]" if rank else ""
    value = bare
    for each in before:
        value = own.text(each.text.replace("{v}", value))
    slots |= {"X0": bare, "X": f"({value})", "Xj": f"({_moved(value, slots)})" if rank else ""}
    own = _Bound(names, slots | features)
    result = own.text(operator.value)
    behind = {"F": into, "last": into.split(", ")[-1] if into else ""}
    for each in after:
        if ("[{F}]" in each.text or "{last}" in each.text) and not into.strip():
            raise FormulaError(operator.name, 0, "A number has no elements to combine with.")
        if "{last}" in each.text and ((not reduced and rank < 2) or not re.fullmatch(r"\w+", behind["last"])):
            raise FormulaError(operator.name, 0, "There is no last dimension of its own.")
        if "{v0}" in each.text and len(result) > 24:
            raise FormulaError(operator.name, 0, "The value would be written twice.")
        result = _Bound(names, slots | behind).text(each.text.replace("{v}", result).replace("{v0}", f"({result})"))
    alone = operator.combine == "=" and not operator.primed
    whole = operator.shape == "map" or (operator.shape == "rows" and operator.into == "{F}")
    overwrites = whole and f"{names.of('x')}[" in f"{result} {own.text(operator.where)}"
    overwrites = overwrites and not _CAST.search(result)
    in_place = alone and overwrites and chance.random() < (0.12 if operator.shape == "map" else 0.06)
    adds = alone and not in_place and not operator.plain and _plain_index(into) and chance.random() < 0.04
    target = names.of("x") + "'" if in_place else (operator.primed and own.text(operator.primed)) or names.of("y")
    equation = f"{target}[{into}] {'+=' if adds else operator.combine} {result}".replace("[]", "")
    where = own.text(operator.where)
    more = own.text(operator.more)
    phrases = " ".join([*operator.says, *(words for among in operator.features.values() for _, words in among)])
    types = operator.types if not _FLOAT_SAID.search(phrases) else ()
    kind = chance.choice(types) if types and chance.random() < 0.4 else "f32"
    more = more.replace(": f32", f": {kind}")
    text = f"{more} {equation} {f'where {where}' if where else ''}"
    text = text.replace("[]", "").replace("[, ", "[").replace(", ]", "]")
    text, flags = flags_as_numbers(text, chance) if not _TYPE_SAID.search(phrases) else (text, {})
    layout, lines, typed = _declared(operator, text, names, kind, chance, dims)
    typed |= flags
    lines += "".join(f" {name}: {type_}" for name, type_ in flags.items())
    if adds and kind != "f32":
        lines += f" {target}: {kind}"
    written = parse(f"{lines} {text}")
    declared = {each.name for each in written.declarations}
    otherwise: dict[str, str] = {}
    if not _TYPE_SAID.search(phrases):
        first = resolve(text, written)
        low = kind if kind in ("f16", "bf16") else ""
        otherwise = stored_otherwise(first, declared, low, chance)
        wide = [each.name for each in first.outputs if low and each.type == "f32" and each.name not in declared]
        typed |= {name: type_ for name, type_ in otherwise.items() if type_ != low or "f32" in typed.values()}
        typed |= {name: "f32" for name in wide if name not in otherwise}
    written = parse(" ".join([lines, *(f"{name}: {type_}" for name, type_ in otherwise.items()), text]))
    line = printed_in_one_line(written)
    formula = formula_of(line)
    if kind == "f32" and operator.shape != "own" and names.found.get("x") in formula.tensors:
        kind = formula.tensors[names.found["x"]].type
    return Parts(
        operator,
        line,
        formula,
        names.found | derived,
        said,
        before,
        after,
        rank,
        along,
        kind,
        layout,
        names.wild,
        in_place,
        adds,
        dims if dims != DIMS[rank] else (),
        typed,
    )


@dataclass(frozen=True, slots=True)
class _Bound:
    names: _Names
    slots: dict[str, str]

    def text(self, template: str) -> str:
        """The template with every slot filled: by what is known, else by a name."""
        for _ in range(6):
            template = filled(template, self.slots)
            missing = {each for each in _SLOT.findall(template) if each not in self.slots}
            template = filled(template, {each: self.names.of(each) for each in sorted(missing)})
            if not _SLOT.search(template):
                break
        return template


def _places(dims: Sequence[str]) -> dict[str, str]:
    return {"first": dims[0], "second": dims[min(1, len(dims) - 1)], "last": dims[-1]} if dims else {}


def _after(operator: Operator, chance: Random) -> tuple[Clause, ...]:
    if operator.plain or operator.combine != "=":
        return ()
    count = chance.choices((0, 1, 2), (62, 30, 8))[0]
    return tuple(chance.sample(AFTER, count))


def _moved(value: str, slots: dict[str, str]) -> str:
    """An element with {j} in place of the dimension that is worked along."""
    if "c" not in slots:
        return value
    return re.sub(rf"(?<=[\[ ]){slots['c']}(?=[,\]])", "j", value)


def _dims(operator: Operator, rank: int, chance: Random) -> tuple[str, ...]:
    """The dimensions of the input: the usual ones, or others that nothing of the operator means otherwise."""
    other = DIM_STYLES.get(rank, ())
    if operator.shape == "own" or not other or chance.random() < 0.5 or _NAMED_DIM.search(" ".join(operator.says)):
        return DIMS[rank]
    text = " ".join((operator.into, operator.value, operator.where, operator.more, str(operator.features)))
    own = {"j", *re.findall(r"\b[a-z]\b", re.sub(r"\{\w+\}", "", text))}
    free = [each for each in other if not own & {*each}]
    return chance.choice(free) if free and not own & {*DIMS[rank]} else DIMS[rank]


def _plain_index(into: str) -> bool:
    return re.fullmatch(r"\w+(, \w+)*", into.strip()) is not None


def _declared(
    operator: Operator, text: str, names: _Names, kind: str, chance: Random, dims: Sequence[str]
) -> tuple[str, str, dict[str, str]]:
    """A layout, the declarations of it and of the type of what is read, and what of that is not of `kind`. Results
    have the type of their values."""
    formula = formula_of(text)
    lines, layout, rank = [], "row", len(dims)
    x = names.found.get("x", "")
    declared = {each.name for each in parse(text).declarations}
    read = [each.name for each in formula.inputs if each.type == "f32" and each.name not in declared]
    ranks = {each: len(formula.tensors[each].extents) for each in read}
    most = max(ranks.values(), default=0)
    beside = [each for each in read if each != x and (ranks[each] < most or each == names.found.get("res"))]
    typed = mixed(beside, kind, chance) if len(beside) < len(read) else {}
    if rank >= 2 and not operator.plain and x in read and x not in typed and chance.random() < 0.08:
        layout = chance.choice(("column", "strided") if rank == 2 else ("channels_last",) if rank == 4 else ("column",))
        extents = ", ".join(each.upper() for each in dims)
        lines.append(f"{x}: {kind}[{extents}]" + ("(ld, 1)" if layout == "strided" else f" {layout}"))
        read.remove(x)
    lines += [f"{each}: {typed.get(each, kind)}" for each in read if typed.get(each, kind) != "f32"]
    if kind == "f64":
        lines += [f"{name}: f64" for name, type_ in formula.scalars.items() if type_ == "f32" and name not in declared]
    return layout, " ".join(lines), typed
