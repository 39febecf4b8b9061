"""Asking systems for formulas and judging what they answer; each answer is kept as soon as it is judged, so that an
evaluation that was interrupted goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from warpwright.assist.formula_task import read_formula
from warpwright.assist.formula_votes import voted
from warpwright.formulas.model import Formula
from warpwright.progress import Progress

from warpwright_upskill.evaluation.judge import judge
from warpwright_upskill.evaluation.systems import System
from warpwright_upskill.evaluation.worker import Worker
from warpwright_upskill.prompts import Prompt

UNTRAINED = "untrained"
"""The family of prompts for which the language has no ordinary formula: they are counted apart."""
_MOST_KEPT = 600


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of one prompt: `right_at` is the number of the first right answer, 0 where none of the `tries` was.
    Of the first answer: its text, its verdict, and what it took. `by_votes`: what most answers mean is right; None
    where the system has no votes."""

    id: str
    family: str
    right_at: int
    tries: int
    kind: str
    reason: str
    text: str
    seconds: float
    tokens: int
    by_votes: bool | None = None


class Kept:
    """The file of answers that were judged: JSON lines with a key of all that an answer depends on."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._found: dict[str, Asked] = {}
        lines = path.read_text(encoding="utf-8").splitlines() if path is not None and path.exists() else []
        for line in lines:
            try:
                said = json.loads(line)
                key = said.pop("key")
                self._found[key] = Asked(**said)
            except (ValueError, TypeError, KeyError):
                continue  # a line that an interruption cut off is asked again

    def find(self, key: str) -> Asked | None:
        return self._found.get(key)

    def add(self, key: str, asked: Asked) -> None:
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, **asdict(asked)}) + "\n")


def ask_all(
    system: System, prompts: Sequence[Prompt], tries: int, worker: Worker, kept: Kept, progress: Progress
) -> list[Asked]:
    """What comes of each prompt. An answer that cannot be had costs that answer alone."""
    found: list[Asked] = []
    for at, prompt in enumerate(prompts):
        right = sum(each.right_at == 1 for each in found)
        progress(f"{right} of {at} right at first", at / len(prompts))
        key = _key(system.settings, prompt, tries)
        asked = kept.find(key)
        if asked is None:
            asked = ask(system, prompt, tries, worker)
            kept.add(key, asked)
        found.append(asked)
    progress("done", 1.0)
    return found


def ask(system: System, prompt: Prompt, tries: int, worker: Worker) -> Asked:
    """Ask until an answer is right, `tries` times at most; as often as there are votes where there are some."""
    first: tuple[str, str, str, float, int] = ("no answer", "There is none.", "", 0.0, 0)
    number, right_at = 0, 0
    written: list[Formula] = []
    for number, answer in enumerate(islice(system.answers(prompt), max(tries, system.votes)), 1):
        if not right_at and number <= tries:
            verdict = judge(worker, prompt, answer.text)
            right_at = number if verdict.right else 0
            if number == 1:
                kind, reason = ("no answer", answer.failed) if answer.failed else (verdict.kind, verdict.reason)
                first = kind, reason, answer.text[:_MOST_KEPT], round(answer.seconds, 3), answer.tokens
        if number <= system.votes and isinstance(formula := read_formula(answer.text), Formula):
            written.append(formula)
        if right_at and number >= system.votes:
            break
    ranked = voted(written)
    by_votes = bool(ranked) and judge(worker, prompt, ranked[0].formula.text).right if system.votes else None
    return Asked(prompt.id, prompt.family, right_at, min(number, tries), *first, by_votes)


def _key(settings: Mapping[str, Any], prompt: Prompt, tries: int) -> str:
    said = prompt.comment, prompt.given, prompt.reference, [each.name for each in prompt.inputs]
    return hashlib.sha256(json.dumps([settings, said, tries], sort_keys=True).encode()).hexdigest()


def summary(asked: Sequence[Asked]) -> dict[str, Any]:
    """Counts over the trained families and over the others, each apart."""
    trained = [each for each in asked if each.family != UNTRAINED]
    untrained = [each for each in asked if each.family == UNTRAINED]
    families = sorted({each.family for each in asked})
    return {
        **_counts(trained),
        "untrained": _counts(untrained),
        "by_family": {name: _counts([each for each in asked if each.family == name]) for name in families},
        "first_answers": dict(Counter(each.kind for each in trained).most_common()),
        "median_s": round(statistics.median(each.seconds for each in asked), 3) if asked else None,
    }


def _counts(asked: Iterable[Asked]) -> dict[str, Any]:
    asked = list(asked)
    first, within = sum(each.right_at == 1 for each in asked), sum(each.right_at > 0 for each in asked)
    counts = {"prompts": len(asked), "right_at_first": first, "right_within": within}
    if any(each.by_votes is not None for each in asked):
        counts["right_by_votes"] = sum(each.by_votes is True for each in asked)
    return counts
