"""What a model is worth on what it was not trained on, beside baselines, through the server's own engine.

    python -m warpwright_upskill.evaluate --adapter adapter.gguf --corpus examples.jsonl --out evaluation.json

Asked are `taught` (the base with an adapter), `base` (untuned, with worked examples in its prompt), `words` (keywords
and nearest wording in a corpus, no model), `endpoint` (a larger model) and `kept` (answers that `answers` wrote).
Prompts that were asked with the same settings are not asked again: their answers lie beside --out until it is written.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from warpwright.assist.child_engine import ChildEngine
from warpwright.assist.engine import Engine
from warpwright.assist.formula_shots import SHOTS, worked_examples
from warpwright.assist.formula_votes import MAX_TOKENS, SAMPLES, TEMPERATURE
from warpwright.assist.weights import ModelFile, find_adapter, find_model
from warpwright.missing import Missing

from warpwright_upskill.answers import read_answers
from warpwright_upskill.console import fail, progress_bar, stage
from warpwright_upskill.evaluation.formulas import Kept, ask_all, summary
from warpwright_upskill.evaluation.nearest import Nearest
from warpwright_upskill.evaluation.plans import (
    ask_plans,
    asked_plans,
    fixed_order,
    kept_plans,
    plan_summary,
    right_by_chance,
)
from warpwright_upskill.evaluation.references import prepare
from warpwright_upskill.evaluation.repairs import (
    Answers,
    ask_repairs,
    asked_repairs,
    from_engine,
    from_kept,
    from_known,
    repair_summary,
)
from warpwright_upskill.evaluation.speed import measured
from warpwright_upskill.evaluation.systems import (
    SECONDS,
    EndpointSystem,
    KeptSystem,
    ModelSystem,
    System,
    WordsSystem,
)
from warpwright_upskill.evaluation.worker import Worker
from warpwright_upskill.examples import FORMULA, HELD_OUT, Example, evenly_spaced, read_examples
from warpwright_upskill.install import check_is_adapter
from warpwright_upskill.options import existing_file, find_base, model_option
from warpwright_upskill.prompts import Prompt, read_prompts

TAUGHT, BASE, WORDS, ENDPOINT, KEPT = "taught", "base", "words", "endpoint", "kept"
_PROMPTS = Path("model/prompts")


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def taught_model(spec: str | None, adapter: Path | None) -> tuple[ModelFile, Path | None] | None:
    """The taught model and its adapter: the base with an adapter that is named or installed, else the one that comes
    with warpwright; None where there is none."""
    base = find_base(spec)
    if (own := adapter or find_adapter(base)) is not None:
        return base, own
    found = find_model(spec)
    if isinstance(found, Missing):
        fail(str(found))
    return (found, None) if found.is_taught else None


@contextmanager
def asked_model(model: ModelFile, adapter: Path | None, name: str) -> Iterator[ModelSystem]:
    """A model, with an adapter or without, in an engine of its own."""
    settings = {
        "model": model.name,
        "model_sha256": sha256(model.path),
        "adapter_sha256": sha256(adapter) if adapter else None,
        "temperature": [0, TEMPERATURE],
        "max_tokens": MAX_TOKENS,
        "seconds": SECONDS,
        "grammar": True,
        "votes": SAMPLES,
        "worked_examples": [] if name == TAUGHT else [list(each) for each in SHOTS],
    }
    with ChildEngine(model, adapter) as engine:
        yield ModelSystem(engine, name, settings)


def words_system(corpus: Path) -> WordsSystem:
    """The nearest wording, of all formulas in a corpus that are not held out."""
    problems = [
        (each.problem, each.formula)
        for each in read_examples(corpus)
        if each.task == FORMULA and each.split != HELD_OUT
    ]
    if not problems:
        fail(f"{corpus}: holds no formula to find; `collect` writes some.")
    settings = {"corpus_sha256": sha256(corpus), "formulas": len(problems)}
    return WordsSystem(Nearest(problems), settings)


# What is shown


def share(part: int, of: int) -> str:
    return f"{part} of {of} ({part / of:.0%})" if of else "none asked"


def table(systems: dict[str, dict[str, Any]], tries: int) -> Table:
    made = Table(title="On what was not trained on")
    made.add_column("")
    for name in systems:
        made.add_column(name, justify="right")

    def row(title: str, *path: str, of: str = "") -> None:
        cells = []
        for result in systems.values():
            value: Any = result
            for key in path[:-1]:
                value = (value or {}).get(key)
            found = (value or {}).get(path[-1])
            cells.append("" if found is None else share(found, value[of]) if of else str(found))
        if any(cells):
            made.add_row(title, *cells)

    row("formulas right at first", "formulas", "right_at_first", of="prompts")
    row(f"formulas right within {tries}", "formulas", "right_within", of="prompts")
    row(f"formulas right by the votes of {SAMPLES}", "formulas", "right_by_votes", of="prompts")
    row("untrained families, at first", "formulas", "untrained", "right_at_first", of="prompts")
    row(f"untrained families, within {tries}", "formulas", "untrained", "right_within", of="prompts")
    row("median seconds of a formula", "formulas", "median_s")
    row("plans that are valid", "plans", "valid", of="plans")
    row("plans whose first rewrite has 95 % of the best speed-up", "plans", "right_first", of="plans")
    row("part of the best speed-up that plans reach", "plans", "reached")
    row("estimates within a factor of 1.5", "plans", "estimates_within_1.5", of="estimates")
    row("repairs right at first", "repairs", "right_at_first", of="repairs")
    row("repairs right within 4", "repairs", "right_within", of="repairs")
    row("first token, ms", "speed", "idle", "first_token_ms")
    row("tokens per second", "speed", "idle", "tokens_per_second")
    row("tokens per second beside two busy processes", "speed", "beside_two_busy", "tokens_per_second")
    row("memory, MB", "speed", "memory_mb")
    return made


def families(systems: dict[str, dict[str, Any]]) -> Table:
    made = Table(title="Formulas right at first, by family")
    made.add_column("family")
    for name in systems:
        made.add_column(name, justify="right")
    counts = [result.get("formulas", {}).get("by_family", {}) for result in systems.values()]
    for family in sorted({name for each in counts for name in each}):
        found = [each.get(family, {"right_at_first": 0, "prompts": 0}) for each in counts]
        made.add_row(family, *(share(each["right_at_first"], each["prompts"]) for each in found))
    return made


def processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.processor()}, {os.cpu_count()} threads"


def _named(argument: str) -> str:
    """An argument without the folders of this machine: a record is read elsewhere."""
    return Path(argument).name if os.sep in argument and Path(argument).is_absolute() else argument


@click.command(help=__doc__)
@click.option("--prompts", "where", type=click.Path(path_type=Path), default=_PROMPTS, show_default=True)
@click.option(
    "--examples", type=click.Path(path_type=Path), help="JSON lines whose held-out plans and repairs are asked for."
)
@click.option("--corpus", type=click.Path(path_type=Path), help="JSON lines in which `words` looks for formulas.")
@click.option("--adapter", type=click.Path(path_type=Path), help="GGUF adapter; default: the installed one.")
@click.option(
    "--ask",
    multiple=True,
    type=click.Choice([TAUGHT, BASE, WORDS, ENDPOINT, KEPT]),
    help="Default: all that are there.",
)
@click.option("--answers", "files", multiple=True, type=click.Path(path_type=Path), help="File that `answers` wrote.")
@click.option("--endpoint", metavar="URL", help="OpenAI-compatible, with its /v1.")
@click.option("--endpoint-model", metavar="NAME", default="default", show_default=True)
@click.option("--endpoint-key", metavar="VARIABLE", default="", help="Environment variable that holds the key.")
@click.option(
    "--tries", default=8, show_default=True, type=click.IntRange(1, 64), help="Answers for a prompt, at most."
)
@click.option("--limit", default=0, help="Ask for so many of each, evenly spaced; 0 is all.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="JSON file to write.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@model_option
def main(
    *,
    where: Path,
    examples: Path | None,
    corpus: Path | None,
    adapter: Path | None,
    ask: tuple[str, ...],
    files: tuple[Path, ...],
    endpoint: str | None,
    endpoint_model: str,
    endpoint_key: str,
    tries: int,
    limit: int,
    out: Path | None,
    form: str,
    model: str | None,
) -> None:
    prompts = evenly_spaced(read_prompts(where), limit)
    known = read_examples(examples) if examples else []
    held = [each for each in known if each.split == HELD_OUT]
    plans, repairs = evenly_spaced(asked_plans(held), limit), evenly_spaced(asked_repairs(held), limit)
    wanted = ask or _there(model, adapter, corpus, endpoint, files)
    local: dict[str, tuple[ModelFile, Path | None]] = {}
    if BASE in wanted:
        local[BASE] = find_base(model), None
    if TAUGHT in wanted:
        taught = taught_model(model, adapter)
        if taught is None:
            fail("There is no taught model to ask: name an adapter with --adapter, or install one.")
        if taught[1] is not None:
            check_is_adapter(existing_file(taught[1], "`export` writes it"))
        local[TAUGHT] = taught
    if WORDS in wanted and corpus is None:
        fail("`words` looks for formulas in --corpus, and none is named.")
    if ENDPOINT in wanted and endpoint is None:
        fail("No --endpoint is named.")
    if KEPT in wanted and not files:
        fail("`kept` reads --answers, and no file is named.")
    written = [(path, *read_answers(path)) for path in files if KEPT in wanted]
    kept = Kept(out.with_suffix(".answers.jsonl") if out else None)
    results: dict[str, dict[str, Any]] = {}
    answers: dict[str, list[dict[str, Any]]] = {}
    with Worker(prepare) as worker:

        def asked(system: System) -> dict[str, Any]:
            with progress_bar(system.name, len(prompts)) as progress:
                found = ask_all(system, prompts, tries, worker, kept, progress)
            answers[system.name] = [asdict(each) for each in found]
            return {"settings": system.settings, "formulas": summary(found)}

        if WORDS in wanted and corpus is not None:
            system = words_system(existing_file(corpus, "`collect` writes it"))
            results[system.name] = asked(system)
        for path, settings, texts in written:
            results[path.stem] = asked(KeptSystem(path.stem, {**settings, "sha256": sha256(path)}, texts))
            results[path.stem] |= _repairs(from_kept(texts), path.stem, [e for e in repairs if e.id in texts], worker)
            if there := [each for each in plans if each.id in texts]:
                results[path.stem]["plans"] = plan_summary(kept_plans(there, texts))
        for name, found in local.items():
            with asked_model(*found, name) as own:
                results[name] = asked(own) | _plans(own.engine, name, plans)
                results[name] |= _repairs(from_engine(own.engine), name, repairs, worker)
                results[name]["speed"] = measured(own.engine, "" if name == TAUGHT else worked_examples())
        if ENDPOINT in wanted and endpoint is not None:
            key = os.environ.get(endpoint_key, "") if endpoint_key else ""
            larger = EndpointSystem(endpoint, endpoint_model, key)
            results[larger.name] = asked(larger)
        if repairs:
            results["nearest repair"] = _repairs(from_known(known), "nearest repair", repairs, worker)
    if plans:
        results["fixed order"] = {"plans": plan_summary(fixed_order(plans, known))}
    report = {
        "what": f"answers to {len(prompts)} prompts by hand, {tries} tries at most; {len(plans)} plans "
        f"(right by chance: {right_by_chance(plans)}); {len(repairs)} repairs",
        "command": shlex.join(["python", "-m", "warpwright_upskill.evaluate", *map(_named, sys.argv[1:])]),
        "date": datetime.now(UTC).date().isoformat(),
        "hardware": processor(),
        "versions": {
            "python": platform.python_version(),
            **{name: _version(name) for name in ("warpwright", "llama-cpp-python", "torch")},
        },
        "prompts_sha256": _prompts_hash(prompts),
        "tries": tries,
        "systems": results,
        "answers": answers,
    }
    text = json.dumps(report, indent=1) + "\n"
    if out is not None:
        out.write_text(text, encoding="utf-8")
        out.with_suffix(".answers.jsonl").unlink(missing_ok=True)
    if form == "json":
        click.echo(text, nl=False)
        return
    Console().print(table(results, tries))
    Console().print(families({name: each for name, each in results.items() if "formulas" in each}))
    if out is not None:
        click.echo(f"written: {out}")


def _there(
    model: str | None, adapter: Path | None, corpus: Path | None, endpoint: str | None, files: tuple[Path, ...]
) -> tuple[str, ...]:
    """What can be asked."""
    taught = taught_model(model, adapter) is not None
    found = {WORDS: corpus is not None, BASE: True, TAUGHT: taught, ENDPOINT: endpoint is not None, KEPT: bool(files)}
    return tuple(name for name, is_there in found.items() if is_there)


def _plans(engine: Engine, name: str, plans: Sequence[Example]) -> dict[str, Any]:
    if not plans:
        return {}
    with progress_bar(f"{name}: plans", len(plans)) as progress:
        return {"plans": plan_summary(ask_plans(engine, plans, progress))}


def _repairs(answers: Answers, name: str, repairs: Sequence[Example], worker: Worker) -> dict[str, Any]:
    if not repairs:
        return {}
    with progress_bar(f"{name}: repairs", len(repairs)) as progress:
        return {"repairs": repair_summary(ask_repairs(answers, repairs, worker, progress))}


def _version(name: str) -> str | None:
    """Answers that are kept are judged where neither the model's runtime nor warpwright is installed, too."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _prompts_hash(prompts: Sequence[Prompt]) -> str:
    said = [[each.id, each.comment, each.given, each.reference] for each in prompts]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


if __name__ == "__main__":
    stage(main)
