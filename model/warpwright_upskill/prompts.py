"""Held-out prompts, written by hand: model/prompts/*.toml.

    python -m warpwright_upskill.prompts check model/prompts/

A prompt is what a user would write above a kernel, with a torch reference of what it means:

    [[prompt]]
    id = "row-softmax-01"
    family = "normalisation"
    comment = "softmax of each row, please"
    given = "const float* x, float* y, int rows, int cols"    # what exists already, or ""
    inputs = { x = "f32[R, C]" }                              # of the reference, in its order
    reference = \"\"\"
    def reference(x):
        return torch.softmax(x, -1)
    \"\"\"

A reference gets floating point in double precision (a number as a Python number) and gives one output or a tuple of
them; what it writes in place it gives back, too. `sizes = { K = [3, 5, 3] }` says which values a size takes, where not
every small one makes sense; `outputs = { y = "f16" }` names outputs in the reference's order with their types, where
they follow neither from `given` nor from the comment.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table
from warpwright.formulas.numpy_types import Array
from warpwright.formulas.types import TYPES

from warpwright_upskill.console import StageError, fail, progress_bar, stage
from warpwright_upskill.evaluation.prompt_inputs import Input, InputError, input_of, sizes_to_try, values_of
from warpwright_upskill.evaluation.references import Result, prepare, run_reference
from warpwright_upskill.evaluation.worker import Worker, WorkerError

SECONDS = 10.0
"""For one prompt's reference at all its sizes."""
NEAR = 0.85
"""Of the words of two comments, from which share that both have one is a near-duplicate of the other."""
_REQUIRED = ("id", "family", "comment", "given", "inputs", "reference")
_KEYS = {*_REQUIRED, "sizes", "outputs"}
_FEWEST_WORDS = 4
_REDRAWN, _OTHER = 4, 100  # how often an input is drawn anew, and from which seed


@dataclass(frozen=True, slots=True)
class Prompt:
    """One held-out prompt; `file` is where it stands. `outputs` are (name, type) where they are written."""

    id: str
    family: str
    comment: str
    given: str
    inputs: tuple[Input, ...]
    reference: str
    file: str = ""
    sizes: Mapping[str, tuple[int, ...]] | None = None
    outputs: tuple[tuple[str, str], ...] = ()

    @property
    def sets(self) -> tuple[dict[str, int], ...]:
        """The sizes at which answers are judged."""
        return sizes_to_try(self.inputs, self.sizes or {})


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a prompt."""

    file: str
    id: str
    what: str

    def __str__(self) -> str:
        return f"{self.file}: {self.id}: {self.what}"


def read_prompts(path: Path) -> list[Prompt]:
    """The prompts of a file, or of all files of a folder by name. Raises StageError with the first that is wrong."""
    prompts, problems = parsed(path)
    if problems:
        fail(f"{problems[0]}.")
    return prompts


def parsed(path: Path) -> tuple[list[Prompt], list[Problem]]:
    """The prompts that are written in the form, and what is wrong with the others."""
    files = sorted(path.glob("*.toml")) if path.is_dir() else [path]
    if not files or not all(each.is_file() for each in files):
        raise StageError(f"{path}: no prompts there; they are *.toml files as `--help` shows them.")
    prompts: list[Prompt] = []
    problems: list[Problem] = []
    for file in files:
        try:
            tables = tomllib.loads(file.read_text(encoding="utf-8")).get("prompt", [])
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            problems.append(Problem(file.name, "the file", f"is no TOML: {error}"))
            continue
        for number, table in enumerate(tables, 1):
            try:
                prompts.append(_prompt(table, file.name))
            except ValueError as error:
                problems.append(Problem(file.name, str(table.get("id", f"prompt {number}")), str(error)))
    return prompts, problems


def _prompt(table: Mapping[str, Any], file: str) -> Prompt:
    for key in _REQUIRED:
        if key not in table:
            raise ValueError(f"has no {key}")
    for key in table:
        if key not in _KEYS:
            raise ValueError(f"has the unknown key {key}")
    for key in ("id", "family", "comment", "reference"):
        if not isinstance(table[key], str) or not table[key].strip():
            raise ValueError(f"{key} is empty")
    inputs = tuple(_input(name, text) for name, text in table["inputs"].items())
    named = _parameters(table["reference"])
    if named != [each.name for each in inputs]:
        raise ValueError(f"the reference takes {', '.join(named)}, inputs are {', '.join(table['inputs'])}")
    sizes = {name: tuple(map(int, values)) for name, values in table.get("sizes", {}).items()}
    outputs = tuple(table.get("outputs", {}).items())
    for name, kind in outputs:
        if kind not in TYPES:
            raise ValueError(f"outputs: {name} has the unknown type {kind}")
    return Prompt(
        table["id"].strip(), table["family"].strip(), table["comment"].strip(), str(table["given"]).strip(), inputs,
        table["reference"], file, sizes, outputs,
    )  # fmt: skip


def _input(name: str, text: object) -> Input:
    try:
        return input_of(name, str(text))
    except InputError as error:
        raise ValueError(f"inputs: {name}: {error}") from None


def _parameters(reference: str) -> list[str]:
    try:
        functions = [node for node in ast.parse(reference).body if isinstance(node, ast.FunctionDef)]
    except SyntaxError as error:
        raise ValueError(f"the reference is no Python: {error}") from None
    for each in functions:
        if each.name == "reference":
            if not any(isinstance(node, ast.Return) and node.value for node in ast.walk(each)):
                raise ValueError("the reference returns nothing; what it writes in place it returns, too")
            return [argument.arg for argument in each.args.args]
    raise ValueError("the reference does not define reference(...)")


# What can only be said of a prompt beside others, and of a reference that runs


def repeated(prompts: Sequence[Prompt]) -> Iterator[Problem]:
    """Ids that come twice, and comments that are nearly those of another prompt."""
    seen: dict[str, Prompt] = {}
    for each in prompts:
        if each.id in seen:
            yield Problem(each.file, each.id, f"{seen[each.id].file} has this id already")
        seen.setdefault(each.id, each)
    words = [frozenset(re.findall(r"[a-z0-9_.]+", each.comment.lower())) for each in prompts]
    for at, one in enumerate(words):
        for other in range(at):
            both, either = len(one & words[other]), len(one | words[other])
            if (both >= NEAR * either and min(len(one), len(words[other])) >= _FEWEST_WORDS) or both == either:
                yield Problem(prompts[at].file, prompts[at].id, f"says nearly the same as {prompts[other].id}")


def faults(prompt: Prompt) -> list[str]:
    """What is wrong with a reference, found by running it at every set of sizes, and with one input after the other
    drawn anew: an output must depend on each."""
    found: list[str] = []
    idle = {each.name for each in prompt.inputs}
    values_seen: set[float] = set()
    for number, sizes in enumerate(prompt.sets):
        where = ", ".join(f"{name} = {value}" for name, value in sizes.items()) or "its sizes"
        idle -= sizes.keys()
        try:
            values = values_of(prompt.inputs, sizes, number)
            results = run_reference(prompt.reference, values)
        except Exception as error:
            return [f"raises at {where}: {type(error).__name__}: {' '.join(str(error).split())[:200]}"]
        for place, result in enumerate(results):
            which = f"output {place + 1} " if len(results) > 1 else ""
            if result.values.dtype.kind in "fc" and np.isnan(result.values).any():
                found.append(f"{which}is NaN in {int(np.isnan(result.values).sum())} places at {where}")
            if not result.values.size:
                found.append(f"{which}has no elements at {where}")
            values_seen.update(result.values.ravel()[:1000].tolist())
        if found:
            return found
        for name, seed in product(sorted(idle), range(_REDRAWN)):
            if name in idle and _changes(prompt, values, name, values_of(prompt.inputs, sizes, _OTHER + seed), results):
                idle.discard(name)
    found += [f"does not depend on {name} with the values that are drawn" for name in sorted(idle)]
    if len(values_seen) < 2:
        found.append("gives the same number everywhere with the values that are drawn")
    return found


def _changes(
    prompt: Prompt, values: Mapping[str, Array], name: str, others: Mapping[str, Array], before: Sequence[Result]
) -> bool:
    """Whether the reference gives something else for another value of one input."""
    try:
        return not _equal(before, run_reference(prompt.reference, {**values, name: others[name]}))
    except Exception:
        return False  # what was drawn together is legal together only


def _equal(one: Sequence[Result], other: Sequence[Result]) -> bool:
    return len(one) == len(other) and all(
        np.array_equal(a.values, b.values, equal_nan=a.values.dtype.kind in "fc")
        for a, b in zip(one, other, strict=True)
    )


@click.group()
def main() -> None:
    """Held-out prompts, written by hand."""


@main.command("check", help=f"Say what is wrong with the prompts of a file or of a folder.\n\n\b\n{__doc__}")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--only", default="", metavar="TEXT", help="Run the references of prompts alone whose id holds TEXT.")
def check(path: Path, only: str) -> None:
    prompts, problems = parsed(path)
    problems += repeated(prompts)
    chosen = [each for each in prompts if only in each.id]
    with Worker(prepare) as worker, progress_bar("references", len(chosen)) as progress:
        for at, prompt in enumerate(chosen):
            progress(prompt.id, at / len(chosen))
            try:
                said = worker.call(faults, prompt, seconds=SECONDS)
            except WorkerError as error:
                said = [f"the reference {error}"]
            problems += [Problem(prompt.file, prompt.id, each) for each in said]
    Console().print(_families(prompts))
    for problem in problems:
        click.echo(problem)
    if problems:
        fail(f"{path}: {len(problems)} problems.")
    click.echo(f"{len(prompts)} prompts, all of them right.")


def _families(prompts: Sequence[Prompt]) -> Table:
    made = Table(title=f"{len(prompts)} prompts")
    for name in ("family", "prompts", "with a signature"):
        made.add_column(name, justify="left" if name == "family" else "right")
    given = Counter(each.family for each in prompts if each.given)
    for family, count in Counter(each.family for each in prompts).most_common():
        made.add_row(family, str(count), str(given[family]))
    return made


if __name__ == "__main__":
    stage(main)
