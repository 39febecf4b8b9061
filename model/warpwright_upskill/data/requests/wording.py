"""A request in words: what an operator is called, with clauses for all else that the formula says, as people type."""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

from warpwright_upskill.data.requests.axis import axis_words
from warpwright_upskill.data.requests.compose import Parts
from warpwright_upskill.data.requests.given import names_of, sizes_called
from warpwright_upskill.data.requests.noise import roughened
from warpwright_upskill.data.requests.phrasebook import (
    DEMANDS,
    LAYOUTS,
    LEADS,
    NOUNS,
    SENTENCE_LEADS,
    USUAL,
    VERB_LEADS,
    VERBS,
)
from warpwright_upskill.data.requests.phrases import chosen, filled, tidy
from warpwright_upskill.data.requests.signatures import c_signature, torch_signature
from warpwright_upskill.data.requests.vocabulary import LETTERS, TYPE_WORDS

_SLOT = re.compile(r"\{(\w+)\}")
CODE = re.compile(r"[(\[*^.@]\{x0?\}|\{x0?\}[\[.*^@']|\{x0?\} [*/@-]|[*/@-] \{x0?\}|torch|F\.")
"""Where the input must have its name, as it stands in code."""


@dataclass(frozen=True, slots=True)
class Words:
    """A request: the comment, what is given beside it, the constraints that it names, and how it was made."""

    comment: str
    given: str
    constraints: tuple[str, ...]
    how: str


def worded(parts: Parts, chance: Random) -> Words:
    """The request of a composition in other words for each state of `chance`."""
    phrase = chosen(chance.choice(parts.operator.says), chance)
    slots = _slots(parts, bool(CODE.search(phrase)), chance)
    features = {name: chosen(said, chance) for name, said in parts.features.items()}
    told = filled(phrase, {name: f"{{{name}}} {said}" for name, said in features.items() if f"{{{name}}}" not in said})
    missing = [said for name, said in features.items() if said and not _says(told, name)]
    comment = filled(phrase, slots | features)
    clauses = [filled(chosen(chance.choice(each.says), chance), slots) for each in parts.after]
    for each in clauses:
        comment += each if each.startswith(",") else chance.choice((", ", ", ", " ", "; ", " - ")) + each
    clauses = [filled(each, slots | features) for each in missing]
    form = chance.choices(("none", "c", "torch"), (40, 40, 20))[0]
    sizes = sizes_called(parts.formula, chance, comment)
    signature = {"c": c_signature, "torch": torch_signature}.get(form)
    given = signature(parts.formula, chance, sizes, parts.operator.name, comment) if signature else ""
    if parts.type not in ("f32",) and not _says_type(parts, comment) and (not given or chance.random() < 0.4):
        clauses.append(chance.choice(TYPE_WORDS.get(parts.type, (parts.type,))))
    elif parts.type == "f32" and _reads(parts, "f32") and chance.random() < 0.06:
        clauses.append(chance.choice(TYPE_WORDS["f32"]))
    if parts.layout != "row":
        clauses.append(filled(chosen(LAYOUTS[parts.layout], chance), slots))
    if parts.in_place:
        clauses.append(
            chance.choice(("in place", "in-place", "overwrite the input", "write the result back", "inplace update"))
        )
    if _shape_needed(parts, comment) and (form != "torch") and not (form == "c" and chance.random() < 0.3):
        clauses.append(_shape(parts, chance))
    unsaid = [
        each
        for each in names_of(parts.formula)
        if not re.search(rf"\b{re.escape(each)}\b", f"{comment} {clauses} {given}")
    ]
    if unsaid and (parts.wild or any(each not in USUAL for each in unsaid)):
        clauses.append(_named(parts, unsaid, chance))
    constraints = tuple(chance.sample(DEMANDS, chance.choices((0, 1, 2), (72, 22, 6))[0]))
    clauses += constraints
    if chance.random() < 0.5:
        chance.shuffle(clauses)
    for each in clauses:
        comment += _joined(each, chance)
    verb = comment.split(" ", 1)[0].lower() in VERBS
    leads = SENTENCE_LEADS if comment.startswith("^") else VERB_LEADS if verb else LEADS
    comment = tidy(chosen(chance.choice(leads), chance) + comment.removeprefix("^"))
    protected = {*names_of(parts.formula)}
    comment, how = roughened(comment, protected, chance)
    return Words(comment, given, constraints, " ".join((form, *how)))


def _joined(clause: str, chance: Random) -> str:
    style = chance.random()
    if style < 0.55:
        return f", {clause}"
    if style < 0.7:
        return f"; {clause}"
    if style < 0.85:
        return f". {clause}"
    return f" ({clause})" if "(" not in clause else f", {clause}"


def _says(phrase: str, feature: str) -> bool:
    """Whether a phrase has the slot of a feature, or a number that follows from it."""
    slots = (feature, "half", "minus") if feature == "ks" else (feature,)
    return any(f"{{{each}}}" in phrase for each in slots)


def _reads(parts: Parts, kind: str) -> bool:
    return any(each.type == kind for each in parts.formula.inputs)


def _says_type(parts: Parts, comment: str) -> bool:
    return any(each in comment for each in TYPE_WORDS.get(parts.type, ()))


def _slots(parts: Parts, code: bool, chance: Random) -> dict[str, str]:
    """What the words of this composition are filled with."""
    names = dict(parts.names)
    bare = names.get("x", "")
    noun = bare if code or parts.wild or chance.random() < 0.6 else chance.choice(NOUNS[parts.rank])
    slots = names | {"bare": bare or "the input", "x0": noun if bare else "the input"}
    said = slots["x0"]
    for each in parts.before:
        said = filled(chosen(chance.choice(each.says), chance), slots | {"x": said})
    slots["x"] = said
    slots |= axis_words(parts, chance)
    return slots


def _shape_needed(parts: Parts, comment: str) -> bool:
    """Whether the words do not say the rank that the operator is not usually asked for with."""
    if not parts.rank:
        return False
    usual = 1 if parts.operator.shape == "map" and 1 in parts.operator.ranks else 2
    return parts.rank != usual and not re.search(r"\[.*,.*\]|NCHW|[1234]d", comment)


def _shape(parts: Parts, chance: Random) -> str:
    x = parts.names.get("x") or next(iter(parts.names.values()))
    letters = chance.choice(LETTERS[parts.rank])
    listed = ", ".join(letters)
    ways = [
        f"{x} is [{listed}]",
        f"{x}: ({listed})",
        f"shape [{listed}]",
        f"{x} has shape ({listed})",
        f"{x} of shape {listed.replace(', ', ' x ')}",
        f"{parts.rank}d",
        f"{x} is {parts.rank}-dimensional",
        f"tensors are {listed.replace(', ', ' x ')}",
        f"[{listed}] tensors",
    ]
    if parts.rank == 1:
        ways = [f"{x} is a vector", f"{x} has n elements", "1d", f"{x}[n]"]
    if parts.rank == 2:
        ways += [f"{x} is a {letters[0]} x {letters[1]} matrix", f"{x} is a matrix", "2d"]
    return chance.choice(ways)


def _named(parts: Parts, unsaid: list[str], chance: Random) -> str:
    """The names that the words have not told."""
    results = {each.name for each in parts.formula.tensors.values() if each.role != "in"}
    told = []
    for each in unsaid:
        if each in results:
            told.append(
                chance.choice(
                    (
                        f"output {each}",
                        f"result in {each}",
                        f"write to {each}",
                        f"store it in {each}",
                        f"into {each}",
                        f"{each} is the output",
                    )
                )
            )
        elif each in parts.formula.scalars:
            told.append(chance.choice((f"{each} is a scalar", f"scalar {each}", f"parameter {each}")))
        else:
            told.append(chance.choice((f"input {each}", f"{each} is the input", f"read from {each}", f"array {each}")))
    return ", ".join(told)
