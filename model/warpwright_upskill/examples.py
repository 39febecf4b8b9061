"""What a training example is, and its JSON lines.

An example keeps the kernels and the checked facts, not a rendered prompt: the prompt is made from it at training time
by the functions that make the server's prompts, so that what the model is trained on is what it is asked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from warpwright_upskill.console import StageError

VERSION = 1
GENERATION, ANALYSIS, DEBUGGING = "generation", "analysis", "debugging"
TASKS = (GENERATION, ANALYSIS, DEBUGGING)
TRAIN, HELD_OUT = "train", "held-out"
LEVELS = ("parsed", "compiled", "re-analysed", "correct", "faster")
"""How far an example came on the product's ladder, weakest first."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where an example's kernel comes from: `origin` is "sample", "rule" or "rewrite", `name` its name there.

    `variant` says what was varied in the text ("" for the text as it stands); examples of one `name` never stand on
    both sides of the split, however varied.
    """

    origin: str
    name: str
    variant: str = ""

    @property
    def group(self) -> str:
        return f"{self.origin}:{self.name}"


@dataclass(frozen=True, slots=True)
class Verification:
    """The highest of LEVELS that the example's kernel passed, by which tools, and what stopped it from going higher."""

    level: str
    by: str
    compiler: str = ""
    resources: dict[str, int] | None = None
    not_higher: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """What the server asks the model about a kernel, as `warpwright.assist.prompts.PlanQuestion` has it."""

    goal: str
    kernel: str
    findings: tuple[str, ...]
    rewrites: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Example:
    """One verified training example.

    `problem`, `constraints`, `reasoning_steps` and `cuda_kernel` are what a teacher writes; `cuda_kernel` is the text
    that came out (written, optimised or corrected). Analysis and debugging have a `question` about `source`, the whole
    file that went in, and the `rewrites` that lead to `cuda_kernel`, best first. `speedup_basis` is "measured",
    "bound" (from the transactions counted, see `estimate`) or "none", and then `estimated_speedup` is 1.
    """

    task: str
    problem: str
    constraints: tuple[str, ...]
    reasoning_steps: tuple[str, ...]
    cuda_kernel: str
    kernel: str
    provenance: Provenance
    verification: Verification
    question: Question | None = None
    source: str = ""
    rewrites: tuple[str, ...] = ()
    estimated_speedup: float = 1.0
    speedup_basis: str = "none"
    split: str = TRAIN
    version: int = VERSION

    @property
    def id(self) -> str:
        """Names the example by what it says; equal examples have equal ids."""
        goal = self.question.goal if self.question else ""
        said = (self.task, self.problem, goal, self.source, self.cuda_kernel, self.rewrites)
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]

    def to_json(self) -> dict[str, Any]:
        return {"id": self.id, **asdict(self)}


@dataclass(frozen=True, slots=True)
class Rejected:
    """A candidate that was not kept, and why, in one sentence."""

    task: str
    provenance: Provenance
    reason: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def write_json_lines(path: Path, items: Iterable[Example | Rejected]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for item in items:
            file.write(json.dumps(item.to_json(), ensure_ascii=False) + "\n")


def read_examples(path: Path) -> list[Example]:
    """The examples of one file. Raises StageError with the line for what cannot be read."""
    try:
        with path.open(encoding="utf-8") as file:
            return list(_examples(path, file))
    except OSError as error:
        raise StageError(f"{path}: cannot be read ({error.strerror}); `collect` writes it.") from None
    except UnicodeDecodeError:
        raise StageError(f"{path}: is not UTF-8 text; `collect` writes it.") from None


def _examples(path: Path, lines: Iterable[str]) -> Iterator[Example]:
    names = {field.name for field in fields(Example)}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            given = json.loads(line)
            if given["version"] != VERSION:
                raise StageError(
                    f"{path}:{number}: is of version {given['version']}, not {VERSION}; run `collect` again."
                )
            values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in given.items() if k in names}
            values["provenance"] = Provenance(**given["provenance"])
            values["verification"] = Verification(**given["verification"])
            values["question"] = given["question"] and _question(given["question"])
            example = Example(**values)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise StageError(f"{path}:{number}: is no training example; run `collect` again.") from None
        if example.task not in TASKS or example.split not in (TRAIN, HELD_OUT):
            raise StageError(f"{path}:{number}: has an unknown task or split; run `collect` again.")
        yield example


def _question(given: dict[str, Any]) -> Question:
    rewrites = tuple((str(name), str(title)) for name, title in given["rewrites"])
    return Question(given["goal"], given["kernel"], tuple(given["findings"]), rewrites)


def held_out_groups(subjects: Mapping[str, str], share: float) -> frozenset[str]:
    """The groups to keep for evaluation. `subjects` maps each group to what it is about.

    Of the groups about one subject `share` are kept, at least one where there are two or more, chosen by hash of their
    names: the choice does not depend on the order, and a new group moves few of the old ones.

    >>> sorted(held_out_groups({"sample:a": "pad", "sample:b": "pad", "sample:c": "swap", "rule:d": "swap"}, 0.2))
    ['rule:d', 'sample:a']
    >>> held_out_groups({"sample:a": "pad"}, 0.5)
    frozenset()
    """
    held: set[str] = set()
    for subject in set(subjects.values()) if share > 0 else ():
        about = [group for group, its in subjects.items() if its == subject]
        about.sort(key=lambda group: hashlib.sha256(group.encode()).hexdigest())
        held.update(about[: min(max(1, round(len(about) * share)), len(about) - 1)])
    return frozenset(held)
