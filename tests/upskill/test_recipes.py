"""The recipes of model/runs, each from rows of tokens to an adapter that llama.cpp runs, on a tiny random Gemma 3."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.upskill import settings
from warpwright.assist.child_engine import ChildEngine
from warpwright.assist.engine import CompletionRequest
from warpwright.assist.formula_task import FormulaRequest, formula_answer, formula_prompt
from warpwright.assist.weights import ModelFile
from warpwright.formulas.sampler import samples
from warpwright_upskill.examples import Example, Metrics, Provenance, read_examples, write_json_lines
from warpwright_upskill.gemma import BOS, EOS, Tokens, vocabulary_hash
from warpwright_upskill.rows import Row, write_rows
from warpwright_upskill.training.config import read_config

RUNS = Path(__file__).resolve().parent.parent.parent / "model" / "runs"
RECIPES = sorted(path.stem for path in RUNS.glob("*.toml"))


def test_there_are_the_recipes_that_are_spoken_of() -> None:
    read = {name: read_config(RUNS / f"{name}.toml") for name in RECIPES}
    assert {name: (each.rank, each.quantise) for name, each in read.items()} == {
        "1b": (32, "none"), "270m": (32, "none"), "270m_whole": (0, "none"), "4b_qlora": (32, "nf4")
    }  # fmt: skip
    assert all(each.alpha == 64 for each in read.values())


@pytest.fixture(scope="module")
def rows(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    tokens = Tokens(tiny)
    found: list[Row] = []
    for number, each in enumerate(itertools.islice(samples("recipes"), 10)):
        prompt = [BOS, *tokens.encode(formula_prompt(FormulaRequest(each.family)))]
        answer = tokens.encode(formula_answer(each.text))
        found.append(
            Row(str(number), "formula", (*prompt, *answer, EOS), len(prompt), "dev" if number > 7 else "train")
        )
    tokens.close()
    path = tmp_path_factory.mktemp("rows") / "some.rows"
    write_rows(found, vocabulary_hash(tiny)[0], path)
    return path


@pytest.mark.slow
@pytest.mark.upskill
@pytest.mark.llm
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_ends_in_an_adapter_that_the_server_loads(recipe: str, tiny: Path, rows: Path, tmp_path: Path) -> None:
    if recipe == "4b_qlora":
        pytest.importorskip("bitsandbytes")
    changes = settings(max_steps=2, batch=4, answer_tokens=4, judged=1, device="cpu")
    env = {**os.environ, "PYTHON": sys.executable, "MODEL": str(tiny), "ROUNDS": "1", "PROMPTS": "2"}
    command = ["sh", str(RUNS / "recipe.sh"), recipe, str(rows), str(tmp_path), *changes]
    subprocess.run(command, env=env, check=True, capture_output=True, timeout=240)
    with ChildEngine(ModelFile(tiny, "tiny"), tmp_path / "adapter.gguf") as engine:
        assert engine.complete(CompletionRequest("// Task: add\n// Formula:", max_tokens=4)).tokens > 0


@pytest.mark.slow
@pytest.mark.upskill
@pytest.mark.llm
def test_a_machine_without_network_trains_on_what_was_packed(tiny: Path, lesson: Path, tmp_path: Path) -> None:
    """In the order in which a machine is given its parts; before the last one nothing is trained."""
    examples = tmp_path / "examples.jsonl"
    sampled = [
        Example(
            "formula", each.family, Provenance("sampler", each.family), Metrics("parsed", "test"), formula=each.text
        )
        for each in itertools.islice(samples("packed"), 4)
    ]
    write_json_lines(examples, [*sampled, replace(sampled[0], split="dev"), *read_examples(lesson)])
    env = {
        **os.environ, "PYTHON": sys.executable, "MODEL": str(tiny), "PACKAGES": "", "COUNTS": "2", "ROUNDS": "1",
        "KEPT": str(tmp_path / "kept"), "OUT": str(tmp_path / "out"), "PROMPTS": "2", "WORKERS": "1",
        "ASKED": "2", "TRIES": "1",
    }  # fmt: skip

    def script(name: str, *arguments: str | Path, status: int = 0) -> str:
        command = ["sh", str(RUNS / name), *map(str, arguments)]
        done = subprocess.run(command, env=env, capture_output=True, encoding="utf-8", timeout=400, check=False)
        assert done.returncode == status, done.stderr
        return done.stdout + done.stderr

    script("pack.sh", examples, tmp_path / "packed")
    script("away.sh", "keep", tmp_path / "packed" / "first")
    changes = settings(max_steps=1, batch=2, answer_tokens=4, judged=1, device="cpu", max_tokens=4096)
    assert "are not all there" in script("away.sh", "ablations", status=2)
    for part in sorted((tmp_path / "packed").glob("part-*")):
        script("away.sh", "keep", part)
    script("away.sh", "ablations", *changes)
    script("away.sh", "big", *changes)
    answers = {"formula-2.json", "first.json"}
    adapter = {"adapter.gguf", "adapter.gguf.json", "adapter.gguf.NOTICE"}
    beside = {"ablations.json", "first-training.json", "rounds.json"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == answers | adapter | beside


@pytest.mark.slow
@pytest.mark.upskill
@pytest.mark.llm
def test_formulas_and_texts_of_kernels_are_trained_on_side_by_side(tiny: Path, tmp_path: Path) -> None:
    examples, made, out, kept = (tmp_path / each for each in ("examples.jsonl", "made", "out", "kept"))
    asked = Example("formula", "", Provenance("sampler", ""), Metrics("parsed", "test"), cuda_kernel="written")
    sampled = [replace(asked, problem=each.family, formula=each.text) for each in itertools.islice(samples("texts"), 4)]
    of_all = [replace(each, split=split) for each in sampled for split in ("train", "dev", "held-out")]
    write_json_lines(examples, of_all)
    kept.mkdir()
    (kept / "part-aa").write_bytes(tiny.read_bytes())
    (kept / "base.sha256").write_text(hashlib.sha256(tiny.read_bytes()).hexdigest())
    env = {**os.environ, "PYTHON": sys.executable, "KEPT": str(kept), "OUT": str(out), "TRIES": "1", "MOST": "4"}

    def run(*command: str | Path) -> None:
        subprocess.run([*map(str, command)], env=env, check=True, capture_output=True, timeout=240)

    texts = (sys.executable, "-m", "warpwright_upskill.texts")
    changes = settings(max_steps=1, batch=2, answer_tokens=4, judged=1, device="cpu", max_tokens=4096)
    run(*texts, "make", examples, "--out", made, "--model", tiny)
    run("sh", RUNS / "away.sh", "texts", made, *changes)
    answered = [("formula",) * 2, ("kernel",) * 2, ("both", "formula"), ("both", "kernel"), ("pretrained", "formula")]
    answers = [out / f"texts-{name}-{task}.json" for name, task in answered]
    run(*texts, "judge", examples, *answers, "--out", tmp_path / "judged.json")
    judged = json.loads((tmp_path / "judged.json").read_text())
    assert [(each["run"], each["answers"]) for each in judged] == [
        (f"texts-{name}-{task}", task) for name, task in answered
    ]
