"""Requests that a teacher wrote, each in several words, and the formula that they ask for.

They lie in model/requests, a table for each formula. Those of one batch are named after it, or after the file:

    [[request]]
    formula = "y[r, c] = x[r, c] / sqrt((sum[k] x[r, k] ** 2) + eps)"
    given = "const float* x, float* y, int rows, int cols, float eps"     # "" or absent: the words stand alone
    words = ["L2-normalise each row, eps inside the root", "y = x / sqrt(sum(x*x over the row) + eps), row by row"]

    python -m warpwright_upskill.data.written FILE ...      says what is wrong with them

Each is parsed, resolved and evaluated by NumPy, and fits its signature. Copies have other names, so that names are read
and not remembered.
"""

from __future__ import annotations

import hashlib
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from random import Random

from warpwright.assist.formula_task import formula_answer, read_formula
from warpwright.assist.signature import parameters, plain_name
from warpwright.formulas.lexer import FormulaError
from warpwright.formulas.model import Formula

from warpwright_upskill.admission import refusal
from warpwright_upskill.console import StageError
from warpwright_upskill.data.corpus import stage_sentences
from warpwright_upskill.data.extended import extended
from warpwright_upskill.data.poison import poison
from warpwright_upskill.data.requests.names import pool
from warpwright_upskill.data.splits import DEV_PERCENT, percent
from warpwright_upskill.examples import (
    DEV,
    EVALUATED,
    FORMULA,
    TRAIN,
    WRITTEN,
    Example,
    Jobs,
    Metrics,
    Provenance,
    Rejected,
)

KEYS = {"formula", "given", "words"}
_METRICS = Metrics(EVALUATED, "parsed, resolved and evaluated by NumPy", not_higher="No kernel is written for it.")
_ARRAYS = tuple(name for slot in ("x", "other", "third", "A", "Bm", "img", "table") for name in pool(slot))
_RESULTS = (*pool("y"), *pool("z"))
_NUMBERS = (*pool("alpha"), *pool("beta"), *pool("thr"))
_PROSE = frozenset(
    (
        "a",
        "i",
        "in",
        "out",
        "as",
        "at",
        "is",
        "to",
        "of",
        "by",
        "on",
        "or",
        "and",
        "the",
        "mask",
        "row",
        "col",
        "loss",
        "rank",
        "label",
        "first",
        "last",
        "best",
        "norm",
        "score",
    )
)
"""Names that may stand in a sentence as words; they keep their names."""


@dataclass(frozen=True, slots=True)
class Request:
    """One formula and the words that ask for it; `where` names its batch and its place there."""

    formula: str
    given: str
    words: tuple[str, ...]
    where: str

    @property
    def batch(self) -> str:
        return self.where.partition("/")[0]


def read_requests(path: Path) -> list[Request]:
    """The requests of one file. Raises StageError for a file or a table that is none."""
    try:
        batches = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StageError(f"{path}: cannot be read ({error.strerror}).") from None
    except ValueError as error:
        raise StageError(f"{path}: is no TOML ({error}).") from None
    found = []
    for key, tables in batches.items():
        batch = path.stem if key == "request" else key
        for number, table in enumerate(tables if isinstance(tables, list) else [{}], 1):
            words = table.get("words", [])
            texts = [table.get("formula"), table.get("given", ""), *words]
            if set(table) - KEYS or not words or not all(isinstance(each, str) for each in texts):
                raise StageError(
                    f"{path}: request {number} of {batch} needs `formula` and `words`, and may have `given`, as texts."
                )
            found.append(Request(texts[0], texts[1], tuple(words), f"{batch}/{number}"))
    return found


def written_jobs(folder: Path, copies: int, steps: int, seed: str) -> Jobs:
    """A part for each batch of a folder's files as it is now."""
    requests = [request for path in sorted(folder.glob("*.toml")) for request in read_requests(path)]
    batches = {batch: list(some) for batch, some in groupby(requests, attrgetter("batch"))}
    return {
        f"written-{batch}-{hashlib.sha256(repr(some).encode()).hexdigest()[:8]}-{copies}-{steps}": partial(
            part, some, copies=copies, steps=steps, seed=seed
        )
        for batch, some in batches.items()
    }


def part(requests: Sequence[Request], *, copies: int, steps: int, seed: str) -> list[Example | Rejected]:
    """The examples of requests as they are written, `copies` with other names, as many with other names and a
    step more as `steps`, and what was rejected."""
    found: list[Example | Rejected] = []
    for request in requests:
        if reason := wrong(request):
            found.append(Rejected(FORMULA, Provenance(WRITTEN, request.batch, request.where), reason))
            continue
        for copy in range(copies + 1):
            name = f"{seed}/written/{request.where}/{copy}"
            for words in request.words:
                one = replace(request, words=(words,))
                found += examples(renamed(one, Random(f"{name}/{words}")) if copy else one, request.batch, name)
        for number in range(steps):
            name = f"{seed}/extended/{request.where}/{number}"
            for words in request.words:
                chance = Random(f"{name}/{words}")
                one = renamed(replace(request, words=(words,)), chance)
                if longer := extended(one.formula, one.given, one.words[0], chance):
                    formula, given, said = longer
                    one = Request(formula, given, (said,), request.where)
                    if not wrong(one):  # a step that does not fit this request is no fault of it
                        found += examples(one, request.batch, name)
    return found


def examples(request: Request, family: str, seed: str) -> Iterator[Example]:
    """An example for each of the words of a request that can be read."""
    answer = formula_answer(request.formula).strip()
    formula = read_formula(answer)
    assert isinstance(formula, Formula)
    for words in request.words:
        yield Example(
            task=FORMULA,
            problem=words,
            given=request.given,
            reasoning_steps=stage_sentences(formula),
            formula=answer,
            provenance=Provenance(WRITTEN, family, request.where, "teacher", seed),
            metrics=_METRICS,
            split=DEV if percent(request.where) < DEV_PERCENT else TRAIN,
        )


def wrong(request: Request) -> str:
    """What is wrong with a request, in one sentence; "" where nothing is."""
    if reason := unreadable(request):
        return reason
    first, *others = examples(request, "", "")
    return refusal(first) or next(filter(None, map(poison, others)), "")


def unreadable(request: Request) -> str:
    """Why a request's formula is none, or none of its signature; "" where it is one."""
    try:
        formula = read_formula(formula_answer(request.formula))
    except FormulaError as error:
        formula = error.reason
    if not isinstance(formula, Formula):
        return f"Its formula cannot be read: {formula}"
    return misfit(formula, request.given) if request.given else ""


def misfit(formula: Formula, given: str) -> str:
    """What a formula reads or writes otherwise than its signature declares; "" where it fits.

    >>> from warpwright.formulas.resolve import formula_of
    >>> misfit(formula_of("y[i] = a * x[i]"), "const half* x, float* y, float a, int n")
    'x is f32 in the formula and f16 in the signature.'
    """
    declared = {plain_name(each.name): each for each in parameters(given)}
    types = {name: formula.tensors[name].type for name in formula.tensors} | dict(formula.scalars)
    for name, kind in types.items():
        array = formula.tensors[name].array if name in formula.tensors else name
        found = declared.get(plain_name(array))
        if found is None:
            return f"{array} is not in the signature."
        if found.type and found.type != kind and name in formula.tensors:
            return f"{array} is {kind} in the formula and {found.type} in the signature."
        if found.pointer != (name in formula.tensors):
            return f"{array} is {'an array' if name in formula.tensors else 'a number'} in the formula alone."
    return ""


def renamed(request: Request, chance: Random) -> Request:
    """The same request with other names of arrays and numbers, in words, signature and formula alike. What the words do
    not name stays where there is no signature.

    >>> one = Request("y[i] = a2 * xs[i]", "", ("scale xs by a2 into y",), "")
    >>> other = renamed(one, Random(1))
    >>> other.words[0].split()[1] in other.formula, "xs" in other.formula
    (True, False)
    """
    formula = read_formula(formula_answer(request.formula))
    assert isinstance(formula, Formula)
    said = " ".join((*request.words, request.given))
    taken = set(re.findall(r"\w+", f"{said} {request.formula}"))
    names: dict[str, str] = {}
    for name in (*(each.array for each in formula.tensors.values()), *formula.scalars):
        outputs = {each.name for each in formula.outputs}
        source = _NUMBERS if name in formula.scalars else _RESULTS if name in outputs else _ARRAYS
        is_sign = name == "x" and re.search(r"\w x \w", said)
        if name.lower() not in _PROSE and not is_sign and re.search(rf"\b{name}\b", said) and name not in names:
            names[name] = chance.choice([each for each in source if each not in taken] or [name])
            taken.add(names[name])

    def again(text: str) -> str:
        return re.sub(r"\b[A-Za-z_]\w*\b", lambda found: names.get(found[0], found[0]), text)

    copy = Request(again(request.formula), again(request.given), tuple(map(again, request.words)), request.where)
    return request if unreadable(copy) else copy


def main(paths: list[Path]) -> int:
    """Print what is wrong with the requests of some files."""
    faults, count = 0, 0
    for path in paths:
        for request in read_requests(path):
            count += len(request.words)
            if reason := wrong(request):
                faults += 1
                print(f"{request.where}: {reason}\n    {request.formula}")
    print(f"{count} requests, {faults} formulas with faults")
    return 1 if faults else 0


if __name__ == "__main__":
    try:
        sys.exit(main([Path(each) for each in sys.argv[1:]]))
    except StageError as error:
        sys.exit(str(error))
