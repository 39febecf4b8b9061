"""What a training example is, and its JSON lines.

An example keeps the kernels and the checked facts, not a rendered prompt: the prompt is made from it at training time
by the functions that make the server's prompts, so that what the model is trained on is what it is asked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from warpwright_upskill.console import StageError

_T = TypeVar("_T")

VERSION = 2
FORMULA, PLAN, REPAIR, KERNEL = "formula", "plan", "repair", "kernel"
TASKS = (FORMULA, PLAN, REPAIR, KERNEL)
TRAIN, DEV, HELD_OUT = "train", "dev", "held-out"
SPLITS = (TRAIN, DEV, HELD_OUT)
EVALUATED = "evaluated"
LEVELS = ("parsed", EVALUATED, "compiled", "re-analysed", "correct", "faster")
"""How far an example came on the product's ladder, weakest first. What is evaluated has finite values by NumPy and no
kernel."""
SPELLED, WRITTEN = "spelled", "written"
"""The origins of formulas that are drawn from a grammar, and of requests that a teacher wrote."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where an example comes from.

    `origin` is "requests", "spelled", "written" or "sampler" (formulas), "sample" or "rewrite" (texts of kernels).
    `family` is that of a formula, or the name of a text. `structure` says what a formula is composed of, or what was
    varied in a text, `wording` how the words were made; `seed` draws the same again.
    """

    origin: str
    family: str
    structure: str = ""
    wording: str = ""
    seed: str = ""


@dataclass(frozen=True, slots=True)
class Metrics:
    """The highest of LEVELS that the kernel passed, by which tools, in how many runs, and what stopped it from going
    higher; what it takes, and how much faster it is.

    `speedup_basis` is "measured", "predicted" or "none", and then `speedup` is 1. `scores` are other
    numbers by name.
    """

    level: str
    by: str
    compiler: str = ""
    resources: dict[str, int] | None = None
    not_higher: str = ""
    runs: int = 0
    speedup: float = 1.0
    speedup_basis: str = "none"
    scores: dict[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """What the server asks the model about a kernel, as `warpwright.assist.prompts.PlanQuestion` has it."""

    goal: str
    kernel: str
    findings: tuple[str, ...]
    rewrites: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Example:
    """One verified training example of any task.

    - formula: `problem` and `given` go in, `formula` comes out, `cuda_kernel` is what the writer makes of it, ""
      of one that is only evaluated. A retrieved neighbour is added at training time.
    - kernel: `problem` and `constraints` go in, `reasoning_steps` and `cuda_kernel` come out.
    - plan: `question` about `kernel` in `source` goes in, `reasoning_steps`, `rewrites` (best first) and
      `metrics.speedup` come out; `cuda_kernel` is the rewritten text.
    - repair: `source`, which is broken, and `message`, what the tool said of it, go in, `edits` (pairs of original and
      updated text) come out; `cuda_kernel` is the repaired text.
    """

    task: str
    problem: str
    provenance: Provenance
    metrics: Metrics
    given: str = ""
    constraints: tuple[str, ...] = ()
    reasoning_steps: tuple[str, ...] = ()
    formula: str = ""
    cuda_kernel: str = ""
    kernel: str = ""
    source: str = ""
    message: str = ""
    question: Question | None = None
    rewrites: tuple[str, ...] = ()
    edits: tuple[tuple[str, str], ...] = ()
    split: str = TRAIN
    version: int = VERSION

    @property
    def id(self) -> str:
        """Names the example by what it says; equal examples have equal ids."""
        goal = self.question.goal if self.question else ""
        asked = (self.task, self.problem, self.given, goal, self.source, self.message)
        said = (*asked, self.formula, self.cuda_kernel, self.rewrites, self.edits)
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


Make = Callable[[], list[Example | Rejected]]
Jobs = dict[str, Make]
"""What makes each part of the examples, by the part's name; sent to other processes."""


def in_parts(name: str, total: int, most: int, make: Callable[[int, int], list[Example | Rejected]]) -> Jobs:
    """`make(first, count)` for parts of `total` items, `most` in each.

    >>> list(in_parts("formulas", 5, 2, lambda first, count: []))
    ['formulas-0-2', 'formulas-2-2', 'formulas-4-1']
    """
    sizes = ((first, min(most, total - first)) for first in range(0, total, most))
    return {f"{name}-{first}-{count}": partial(make, first, count) for first, count in sizes}


def evenly_spaced(items: Sequence[_T], most: int) -> list[_T]:
    """So many of the items at most; 0 is all.

    >>> evenly_spaced([0, 1, 2, 3, 4, 5], 3)
    [0, 2, 4]
    """
    return [items[at * len(items) // most] for at in range(most)] if 0 < most < len(items) else list(items)


def write_json_lines(path: Path, items: Iterable[Example | Rejected]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for item in items:
            file.write(json.dumps(item.to_json(), ensure_ascii=False) + "\n")


def read_examples(path: Path, skip_rejected: bool = False) -> list[Example]:
    """The examples of one file. Raises StageError with the line for what cannot be read."""
    try:
        with path.open(encoding="utf-8") as file:
            return list(_examples(path, (line for line in file if not skip_rejected or '"version"' in line)))
    except OSError as error:
        raise StageError(f"{path}: cannot be read ({error.strerror}); `collect` writes it.") from None
    except UnicodeDecodeError:
        raise StageError(f"{path}: is not UTF-8 text; `collect` writes it.") from None


def _examples(path: Path, lines: Iterable[str]) -> Iterator[Example]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield read_example(line, f"{path}:{number}")


def read_example(line: str, where: str) -> Example:
    """The example of a line. Raises StageError, which says `where`, for one that is none."""
    names = {field.name for field in fields(Example)}
    try:
        given = json.loads(line)
        if given["version"] != VERSION:
            raise StageError(f"{where}: is of version {given['version']}, not {VERSION}; run `collect` again.")
        values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in given.items() if k in names}
        values["provenance"] = Provenance(**given["provenance"])
        values["metrics"] = Metrics(**given["metrics"])
        values["question"] = given["question"] and _question(given["question"])
        values["edits"] = tuple((str(original), str(updated)) for original, updated in given["edits"])
        example = Example(**values)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise StageError(f"{where}: is no training example; run `collect` again.") from None
    if example.task not in TASKS or example.split not in SPLITS:
        raise StageError(f"{where}: has an unknown task or split; run `collect` again.")
    return example


def _question(given: dict[str, Any]) -> Question:
    rewrites = tuple((str(name), str(title)) for name, title in given["rewrites"])
    return Question(given["goal"], given["kernel"], tuple(given["findings"]), rewrites)
