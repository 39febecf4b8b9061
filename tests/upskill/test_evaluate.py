"""Systems are asked for what they were not trained on, every answer is judged, and nothing is asked twice."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from support.command import run_command
from support.upskill import KERNEL, ran, refused
from warpwright.progress import silent
from warpwright_upskill.answers import read_answers
from warpwright_upskill.evaluation.adapted import adapted
from warpwright_upskill.evaluation.formulas import Asked, Kept, ask, ask_all, summary
from warpwright_upskill.evaluation.nearest import Nearest
from warpwright_upskill.evaluation.references import prepare
from warpwright_upskill.evaluation.repairs import ask_repairs, asked_repairs, repair_summary
from warpwright_upskill.evaluation.systems import Answer, EndpointSystem
from warpwright_upskill.evaluation.worker import Worker
from warpwright_upskill.examples import Example, Metrics, Provenance, read_examples, write_json_lines
from warpwright_upskill.prompts import Prompt, read_prompts

pytestmark = pytest.mark.upskill

PROMPTS = '''
[[prompt]]
id = "sums"
family = "reduction"
comment = "add up each row"
given = "const float* in, float* total, int rows, int cols"
inputs = { in_ = "f32[R, C]" }
reference = """
def reference(in_):
    return in_.sum(1)
"""

[[prompt]]
id = "doubles"
family = "elementwise"
comment = "twice of all that is in there"
given = "float* x, int n"
inputs = { x = "f32[N]" }
reference = """
def reference(x):
    return 2 * x
"""

[[prompt]]
id = "sorts"
family = "untrained"
comment = "sort the numbers"
given = ""
inputs = { x = "f32[N]" }
reference = """
def reference(x):
    return torch.sort(x).values
"""
'''
PROBLEMS = (
    ("sum of each row", "s[r] = sum[c] x[r, c]"),
    ("everything twice", "y[i] = 2 * x[i]"),
    ("the numbers as they are", "y[i] = x[i]"),
)


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.toml"
    path.write_text(PROMPTS, encoding="utf-8")
    return path


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    made = Provenance("sampler", "some"), Metrics("correct", "by hand")
    write_json_lines(path, [Example("formula", words, *made, formula=formula) for words, formula in PROBLEMS])
    return path


def test_nearest_wording(prompts: Path, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    shown = ran("evaluate", "--prompts", prompts, "--corpus", corpus, "--ask", "words", "--out", out).stdout
    assert "2 of 2 (100%)" in shown and "0 of 1 (0%)" in shown
    said = json.loads(out.read_text(encoding="utf-8"))
    formulas = said["systems"]["nearest wording"]["formulas"]
    assert (formulas["prompts"], formulas["right_at_first"], formulas["right_within"]) == (2, 2, 2)
    assert formulas["untrained"] == {"prompts": 1, "right_at_first": 0, "right_within": 0}
    assert said["systems"]["nearest wording"]["settings"]["formulas"] == 3
    first = {each["id"]: each for each in said["answers"]["nearest wording"]}
    assert first["sums"]["text"] == "total[r] = sum[c] in[r, c]"
    assert first["doubles"]["text"] == "x'[i] = 2 * x[i]"
    assert first["sorts"]["kind"] == "values" and "is asked for" in first["sorts"]["reason"]
    assert str(tmp_path) not in said["command"]
    assert not (tmp_path / "out.answers.jsonl").exists()


def test_as_json_through_the_command(prompts: Path, corpus: Path, tmp_path: Path) -> None:
    done = run_command(
        "model", "eval", "--prompts", prompts, "--corpus", corpus, "--ask", "words", "--limit", "1", "--format", "json",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.status == 0, done.stderr
    assert done.json["systems"]["nearest wording"]["formulas"]["prompts"] == 1


@pytest.mark.parametrize(
    ("text", "comment", "given", "expected"),
    [
        ("y[i] = a * x[i]", "", "float k, const float* v, float* w, int n", "w[i] = k * v[i]"),
        ("y[i] = x[i] + b[i]", "", "float* p, float* q, float* r", "r[i] = p[i] + q[i]"),
        ("y[x] = a[x]", "", "const float* x, float* y", "y[x_2] = x[x_2]"),
        ("y[i] = 2 * x[i]", "", "const half* x, half* y", "x: f16, y: f16, y[i] = 2 * x[i]"),
        ("y[i] = 2 * x[i]", "in half precision", "", "x: f16, y[i] = 2 * x[i]"),
        ("x: f64, y[i] = 2 * x[i]", "of each", "", "x: f32, y[i] = 2 * x[i]"),
        ("y[i] = 2 * x[i]", "", "int n", "y[i] = 2 * x[i]"),
        ("y[i] = x[ids[i]]", "", "const int* a, const float* b, float* c", "c[i] = b[a[i]]"),
        ("y[i] = 2 * x[i]", "", "v: Tensor[N] float16, w: Tensor[N] float16", "v: f16, w: f16, w[i] = 2 * v[i]"),
        ("y[i] = 2 * x[i]", "", "torch.Tensor v [N] float16", "v: f16, y[i] = 2 * v[i]"),
        (
            "y[r] = w[r] * sum[c] x[r, c]",
            "",
            "w (R) float32, x (R, C) float32, y (R) float32",
            "y[r] = w[r] * (sum[c] x[r, c])",
        ),
        ("y[i] = sum[j] x[i, j]", "", "nonsense((", "y[i] = sum[j] x[i, j]"),
    ],
)
def test_a_formula_in_the_names_of_a_signature(text: str, comment: str, given: str, expected: str) -> None:
    assert adapted(text, comment, given) == expected


@pytest.mark.parametrize(
    ("text", "problem", "comment", "expected"),
    [
        ("y[i] = x[i] + 1e-05", "plus eps 1e-5", "plus eps 1e-6", "y[i] = x[i] + 1e-06"),
        ("y[i] = x[i] ** 3 + 2", "power 3, offset 2", "offset 7 and power 4", "y[i] = x[i] ** 4 + 7"),
        ("y[i] = clamp(x[i], 0, 6)", "clip to 0..6", "clip between 0 and 1", "y[i] = clamp(x[i], 0, 1)"),
        ("y[i] = 2 * x[i]", "twice x", "twice x, at most 3", "y[i] = 2 * x[i]"),
    ],
)
def test_the_numbers_of_the_words(text: str, problem: str, comment: str, expected: str) -> None:
    assert adapted(text, comment, "", problem) == expected


@pytest.mark.parametrize(
    ("comment", "given", "expected"),
    [
        ("sum it", "const float* a, const float* b, float* y, int n", "y[i] = a[i] + b[i]"),
        ("sum it", "const float* a, float* y, int r, int c", "y[r] = sum[c] a[r, c]"),
        ("sum it", "const float* a, const int* b, float* y, int n", "y[i] = a[b[i]]"),
        ("sum it", "a: Tensor[N, M], y: Tensor[N]", "y[r] = sum[c] a[r, c]"),
        ("sum of x and y, then relu", "", "y[i] = relu(x[i])"),
    ],
)
def test_what_fits_comes_first(comment: str, given: str, expected: str) -> None:
    index = Nearest(
        [
            ("sum of each row", "y[r] = sum[c] x[r, c]"),
            ("sum of x and y", "z[i] = x[i] + y[i]"),
            ("sum in a relu", "y[i] = relu(x[i])"),
            ("sum looked up", "y[i] = x[ids[i]]"),
        ]
    )
    assert next(index.formulas(comment, given)) == expected


@dataclass(frozen=True)
class Scripted:
    """Says what it was told to."""

    said: tuple[str, ...]
    votes: int = 3
    name: str = "scripted"
    settings: dict[str, Any] = field(default_factory=dict)

    def answers(self, prompt: Prompt) -> Iterator[Answer]:
        return (Answer(each, 0.0) for each in self.said)


def test_votes_are_judged_as_they_are_served(prompts: Path) -> None:
    """What most of the samples mean is shown, whatever the first says and how it is written."""
    sums = read_prompts(prompts)[0]
    wrong, right, same = "total[r] = max[c] in[r, c]", "total[r] = sum[c] in[r, c]", "total[a] = sum[b] in[a, b]"
    with Worker(prepare) as worker:
        late = ask(Scripted((wrong, right, same)), sums, 1, worker)
        outvoted = ask(Scripted((right, wrong, wrong)), sums, 8, worker)
        nothing = ask(Scripted(("", "y[", "?")), sums, 8, worker)
        unvoted = ask(Scripted((wrong, right, same), votes=0), sums, 8, worker)
    assert (late.right_at, late.tries, late.by_votes) == (0, 1, True)
    assert (outvoted.right_at, outvoted.by_votes) == (1, False)
    assert (nothing.right_at, nothing.by_votes, nothing.kind) == (0, False, "no formula")
    assert (unvoted.right_at, unvoted.by_votes) == (2, None)
    assert summary([late, outvoted, nothing])["right_by_votes"] == 1
    assert "right_by_votes" not in summary([unvoted])


class Larger(BaseHTTPRequestHandler):
    """An endpoint that knows one answer, and fails where it is told to."""

    asked: list[dict[str, Any]] = []  # noqa: RUF012  # of the one test that uses it
    broken = False

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(body)
        reply = {
            "choices": [{"message": {"content": "`total[r] = sum[c] in[r, c]`"}}],
            "usage": {"completion_tokens": 9},
        }
        self.send_response(500 if self.broken else 200)
        self.end_headers()
        self.wfile.write(json.dumps(reply).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Larger)
    Larger.asked.clear()
    Larger.broken = False
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


def test_a_larger_model(prompts: Path, endpoint: str, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    some = ("--prompts", prompts, "--endpoint", endpoint, "--endpoint-model", "larger", "--ask", "endpoint")
    ran("evaluate", *some, "--tries", "2", "--out", out)
    formulas = json.loads(out.read_text(encoding="utf-8"))["systems"]["larger"]["formulas"]
    assert (formulas["prompts"], formulas["right_at_first"]) == (2, 1)
    assert [each["temperature"] for each in Larger.asked] == [0, 0, 0.7, 0, 0.7]
    assert "Task: add up each row" in Larger.asked[0]["messages"][1]["content"]


def test_an_endpoint_that_fails(prompts: Path, endpoint: str, tmp_path: Path) -> None:
    Larger.broken = True
    out = tmp_path / "out.json"
    ran("evaluate", "--prompts", prompts, "--endpoint", endpoint, "--ask", "endpoint", "--tries", "1", "--out", out)
    answers = json.loads(out.read_text(encoding="utf-8"))["answers"]["default"]
    assert {each["kind"] for each in answers} == {"no answer"}
    assert all("HTTP Error 500" in each["reason"] for each in answers)


def test_goes_on_after_an_interruption(tmp_path: Path) -> None:
    """What was judged is kept at once; a line that was cut off is asked again."""
    kept = tmp_path / "out.answers.jsonl"
    asked = Asked("a", "b", 1, 1, "right", "", "y[i] = x[i]", 0.1, 3)
    Kept(kept).add("key", asked)
    with kept.open("a", encoding="utf-8") as file:
        file.write('{"key": "other", "id"')
    assert Kept(kept).find("key") == asked
    assert Kept(kept).find("other") is None


def test_asks_nothing_twice(prompts: Path, endpoint: str, tmp_path: Path) -> None:
    system = EndpointSystem(endpoint, "larger")
    read = read_prompts(prompts)[:1]
    kept = tmp_path / "kept.jsonl"
    with Worker(prepare) as worker:
        first = ask_all(system, read, 1, worker, Kept(kept), silent)
        assert ask_all(system, read, 1, worker, Kept(kept), silent) == first
        assert len(Larger.asked) == 1
        ask_all(EndpointSystem(endpoint, "another"), read, 1, worker, Kept(kept), silent)
        assert len(Larger.asked) == 2


def test_repairs_are_asked_for_four_times(lesson: Path) -> None:
    """An answer that is none is judged as one that cannot be read."""
    example = replace(read_examples(lesson)[0], task="repair", source=KERNEL, edits=(("a", "b"),), message="line 1: no")
    asked: list[str] = []

    def answers(example: Example) -> Iterator[str]:
        while True:
            asked.append(example.id)
            yield "I would change it"

    with Worker(prepare) as worker:
        (found,) = ask_repairs(answers, asked_repairs([example]), worker, silent)
    assert (found.right_at, found.status, len(asked)) == (0, "unreadable", 4)
    assert repair_summary([found])["first_answers"] == {"unreadable": 1}


@pytest.mark.slow
@pytest.mark.llm
def test_the_untuned_and_the_taught_model(tiny: Path, adapter: Path, prompts: Path, tmp_path: Path) -> None:
    """A random model answers nothing right, and all that is asked of it is measured."""
    out = tmp_path / "out.json"
    some = ("--prompts", prompts, "--model", tiny, "--adapter", adapter, "--tries", "2", "--limit", "2")
    shown = ran("evaluate", *some, "--out", out).stdout
    assert "base" in shown and "taught" in shown
    said = json.loads(out.read_text(encoding="utf-8"))
    for name in ("base", "taught"):
        system = said["systems"][name]
        assert system["formulas"]["right_within"] == 0
        assert system["speed"]["idle"]["tokens_per_second"] > 0
        assert system["speed"]["memory_mb"] > 10
        assert len(system["settings"]["model_sha256"]) == 64
    assert len(said["systems"]["taught"]["settings"]["adapter_sha256"]) == 64
    assert said["hardware"] and said["versions"]["llama-cpp-python"]


@pytest.mark.slow
@pytest.mark.llm
def test_answers_of_the_machine_that_trained(
    tiny: Path, learned: Path, prompts: Path, corpus: Path, tmp_path: Path
) -> None:
    asked, out = tmp_path / "asked.json", tmp_path / "first.json"
    ran("answers", "prepare", "--prompts", prompts, "--shown", corpus, "--model", tiny, "--out", asked)
    assert (
        "3 prompts, 2 answers each"
        in ran("answers", "ask", asked, "--adapter", learned, "--tries", "2", "--model", tiny, "--out", out).stdout
    )
    settings, answers = read_answers(out)
    assert settings["shown"] == "corpus.jsonl" and [len(each) for each in answers.values()] == [2, 2, 2]
    answers["sums"][1] = " s[r] = sum[c] in[r, c]"
    out.write_text(json.dumps({"settings": settings, "answers": answers}), encoding="utf-8")
    ran(
        "evaluate",
        "--prompts",
        prompts,
        "--answers",
        out,
        "--ask",
        "kept",
        "--tries",
        "2",
        "--out",
        tmp_path / "e.json",
    )
    said = json.loads((tmp_path / "e.json").read_text(encoding="utf-8"))["systems"]["first"]
    assert (said["formulas"]["right_at_first"], said["formulas"]["right_within"]) == (0, 1)
    assert len(said["settings"]["sha256"]) == 64


def test_answers_that_are_none(tiny: Path, prompts: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text('{"settings": {}, "answers": [1]}', encoding="utf-8")
    some = ("--prompts", prompts, "--ask", "kept")
    assert "--answers" in refused("evaluate", *some)
    assert "holds no answers" in refused("evaluate", *some, "--answers", wrong)
    assert "cannot be read" in refused("evaluate", *some, "--answers", tmp_path / "none.json")
    ask = ("answers", "ask", wrong, "--adapter", tmp_path, "--model", tiny, "--out", tmp_path / "out.json")
    assert "holds no prompts" in refused(*ask)
    wrong.write_text('{"vocabulary": "another", "shown": "", "prompts": {"sums": [2, 3]}}', encoding="utf-8")
    assert "another vocabulary" in refused(*ask)


def test_asks_nothing_that_is_not_there(prompts: Path, corpus: Path, tmp_path: Path) -> None:
    some = ("--prompts", prompts)
    assert "`export` writes it" in refused("evaluate", *some, "--ask", "taught", "--adapter", tmp_path / "none.gguf")
    assert "--corpus" in refused("evaluate", *some, "--ask", "words")
    assert "--endpoint" in refused("evaluate", *some, "--ask", "endpoint")
    assert "no prompts there" in refused("evaluate", "--prompts", tmp_path / "none", "--corpus", corpus)
    assert "no such file" in refused("evaluate", *some, "--ask", "words", "--corpus", tmp_path / "none.jsonl")


@pytest.mark.llm
def test_a_file_that_is_called_a_model_and_is_none(prompts: Path, tmp_path: Path) -> None:
    (model := tmp_path / "some.gguf").write_bytes(b"GGUF" + b"\xff" * 4000)
    said = refused("evaluate", "--prompts", prompts, "--ask", "base", "--model", model, "--out", tmp_path / "e.json")
    assert "some.gguf could not be loaded" in said
