"""A request in words: what an operator is called, with clauses for all else that the formula says, as people type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from warpwright_upskill.data.requests.axis import axis_words
from warpwright_upskill.data.requests.compose import Parts
from warpwright_upskill.data.requests.context import surrounded
from warpwright_upskill.data.requests.given import arrays, names_of, sizes_called
from warpwright_upskill.data.requests.noise import greek, roughened
from warpwright_upskill.data.requests.phrasebook import (
    ADDED,
    BOTH,
    DEMANDS,
    IN_PLACE,
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
from warpwright_upskill.data.requests.told import names_told, roles_told, shapes_told, types_told

_SLOT = re.compile(r"\{(\w+)\}")
CODE = re.compile(r"[(\[*^.@]\{x0?\}|\{x0?\}[\[.*^@']|\{x0?\} [*/@-]|[*/@-] \{x0?\}|torch|F\.")
"""Where the input must have its name, as it stands in code."""
_OPERAND = re.compile(r"\{x\}(\.|\[|\^|\*| [*/@+-])|[*/@+-] ?\{x\}")


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
    slots = _slots(parts, phrase, chance)
    features = {name: chosen(said, chance) for name, said in parts.features.items()}
    told = filled(phrase, {name: f"{{{name}}} {said}" for name, said in features.items() if f"{{{name}}}" not in said})
    missing = [said for name, said in features.items() if said and not _says(told, name)]
    comment = filled(phrase, slots | features)
    clauses = [filled(chosen(chance.choice(each.says), chance), slots) for each in parts.after]
    for each in clauses:
        comment += each if each.startswith(",") else chance.choice((", ", ", ", " ", "; ", " - ")) + each
    clauses = [filled(each, slots | features) for each in missing]
    sizes = sizes_called(parts.formula, chance, comment, own=bool(parts.dims))
    form = chance.choices(("none", "c", "torch"), (36, 46, 18))[0]
    if form == "c":
        clauses += _unused(parts, sizes, chance)
    signature = {"c": c_signature, "torch": torch_signature}.get(form)
    given = signature(parts.formula, chance, sizes, parts.operator.name, comment) if signature else ""
    clauses += types_told(parts, given, comment, chance)
    typed = len(clauses)
    if parts.layout != "row":
        clauses.append(filled(chosen(LAYOUTS[parts.layout], chance), slots))
    if parts.in_place and (form != "c" or len(arrays(parts.formula)) > 1 or chance.random() < 0.6):
        clauses.append(filled(chosen(chance.choice(IN_PLACE), chance), slots))
    result = next(iter(parts.formula.outputs)).name
    if parts.adds:
        clauses.append(filled(chosen(chance.choice(ADDED), chance), {"y": result}))
    if len(results := results_of(parts)) == 2 and not any(re.search(rf"\b{each}\b", comment) for each in results):
        clauses.append(chance.choice(BOTH).format(*results))
    if not given and chance.random() < 0.12:
        clauses.append(roles_told(parts.formula, chance))
    roles = " ".join(clauses[typed:])
    before = ""
    if _shape_wanted(parts, comment, given, sizes, chance):
        shapes = shapes_told(parts, sizes, chance, results=bool(given) or not parts.wild or chance.random() < 0.4)
        if chance.random() < 0.35:
            before = chance.choice(("{}. ", "{}: ", "given {}, ", "{}; ", "{} - ", "{}. ", "with {}: ")).format(shapes)
        else:
            clauses.append(shapes)
    said = {False: f"{before} {comment} {clauses} {given}", True: f"{comment} {roles} {given}"}
    unsaid = [
        each
        for each in names_of(parts.formula)
        if not re.search(rf"\b{re.escape(each)}\b", said[each in results_of(parts)])
    ]
    if unsaid and (parts.wild or any(each not in USUAL for each in unsaid)):
        clauses.append(names_told(parts.formula, unsaid, chance))
    constraints = tuple(chance.sample(DEMANDS, chance.choices((0, 1, 2), (72, 22, 6))[0]))
    clauses += constraints
    if chance.random() < 0.5:
        chance.shuffle(clauses)
    listed = len(clauses) > 1 and chance.random() < 0.08
    mark = chance.choice(("\n- ", "\n* ", " - ", " | ", "\n  ", " // "))
    for each in clauses:
        comment += f"{mark}{each}" if listed else _joined(each, chance)
    verb = comment.split(" ", 1)[0].lower() in VERBS
    leads = SENTENCE_LEADS if comment.startswith("^") else VERB_LEADS if verb else LEADS
    comment = tidy(before + chosen(chance.choice(leads), chance) + comment.removeprefix("^"))
    protected = {*names_of(parts.formula), *sizes.values()}
    comment, roughly = roughened(comment, protected, chance)
    if chance.random() < 0.08:
        comment = greek(comment, {each for each in names_of(parts.formula) if each in USUAL or each in given})
    comment, around = surrounded(comment, chance)
    return Words(comment, given, constraints, " ".join((form, *roughly, *around)))


def phrase_alone(parts: Parts, chance: Random) -> str:
    """What the operator of a composition is called, and nothing else."""
    phrase = chosen(chance.choice(parts.operator.says), chance)
    features = {name: chosen(said, chance) for name, said in parts.features.items()}
    return tidy(filled(phrase, _slots(parts, phrase, chance) | features).removeprefix("^"))


def results_of(parts: Parts) -> list[str]:
    """The arrays that are written, the one that the operator's words are of first."""
    written = [each.array for each in parts.formula.tensors.values() if each.role != "in"]
    return sorted(dict.fromkeys(written), key=lambda each: each != parts.names.get("y"))


def _unused(parts: Parts, sizes: dict[str, str], chance: Random) -> list[str]:
    """Sometimes one more whole number for the signature, which the formula does not need, and what is said of it."""
    taken = {*names_of(parts.formula), *sizes.values()}
    x = parts.names.get("x", "")
    if chance.random() < 0.03:
        name = chance.choice(
            ("num_sms", "device_id", "max_len", "n_threads", "block_size", "grid", "n_iter", "nblocks")
        )
        if name not in taken:
            sizes[""] = name
    elif (
        x in parts.formula.tensors
        and parts.rank >= 2
        and parts.layout == "row"
        and parts.dims
        and chance.random() < 0.08
    ):
        name = chance.choice((f"ld{x}", f"{x}_stride", "stride", "pitch", "row_stride", "lda", "ldx"))
        row = sizes.get(parts.dims[-1].upper(), "")
        if row and name not in taken:
            sizes[""] = name
            told = (
                "{0} equals {1}",
                "{0} == {1}",
                "rows are contiguous, so {0} = {1}",
                "{0} is just {1} here",
                "dense, {0} = {1}",
            )
            return [chance.choice(told).format(name, row)]
    return []


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


def _slots(parts: Parts, phrase: str, chance: Random) -> dict[str, str]:
    """What the words of this composition are filled with. What is applied before stands in parentheses where the phrase
    goes on with it as code does: `(silu of x).sum(-1)`."""
    code = bool(CODE.search(phrase))
    names = dict(parts.names)
    bare = names.get("x", "")
    noun = bare if code or parts.wild or chance.random() < 0.6 else chance.choice(NOUNS[parts.rank])
    slots = names | {"bare": bare or "the input", "x0": noun if bare else "the input"}
    said = slots["x0"]
    for each in parts.before:
        said = filled(chosen(chance.choice(each.says), chance), slots | {"x": said})
    slots["x"] = f"({said})" if parts.before and not said.isidentifier() and _OPERAND.search(phrase) else said
    slots |= axis_words(parts, chance)
    return slots


def _shape_wanted(parts: Parts, comment: str, given: str, sizes: Mapping[str, str], chance: Random) -> bool:
    """Whether to tell shapes: always where neither the words nor what is given show the rank or its dimensions."""
    told = f"{comment} {given}"
    if not all(re.search(rf"\b{sizes[each.upper()]}\b", told) for each in parts.dims):
        return True
    if re.search(r"\[[^\]]*,.*\]|NCHW|NHWC|\b[1234]-?d\b|\(\w+(, \w+)+\)", comment):
        return False
    if not parts.rank:
        return chance.random() < 0.15
    usual = 1 if parts.operator.shape == "map" and 1 in parts.operator.ranks else 2
    shown = all(re.search(rf"\b{sizes[each]}\b", given) for each in parts.formula.sizes)
    if parts.rank != usual and (not shown or chance.random() < 0.3):
        return True
    return chance.random() < 0.12
