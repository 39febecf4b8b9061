"""The engine with the real model: what it answers, and that nothing it is given takes this process down."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from warpwright.assist.child_engine import ChildEngine
from warpwright.assist.engine import Completion, CompletionRequest, EngineError
from warpwright.assist.threads import processors
from warpwright.assist.weights import ModelFile

pytestmark = pytest.mark.llm

CAPITAL = CompletionRequest("The capital of France is Paris. The capital of Italy is", max_tokens=2)
BUSY = CompletionRequest("one two three four five six seven eight nine ten " * 5, max_tokens=500)
LONG = CompletionRequest("one two three four five six seven eight nine ten " * 250, max_tokens=500)


def test_continues_text_and_is_deterministic(engine: ChildEngine) -> None:
    first = engine.complete(CAPITAL)
    assert "Rome" in first.text
    assert (first.stop, first.tokens) == ("length", 2)
    assert engine.complete(CAPITAL).text == first.text


def test_the_start_token_is_not_doubled(engine: ChildEngine) -> None:
    empty = engine.complete(CompletionRequest("", max_tokens=1))
    assert empty.prompt_tokens == 1
    written_out = engine.complete(CompletionRequest("<bos>", max_tokens=1))
    assert written_out.prompt_tokens > 2, "special tokens in a text are text"


def test_a_known_prefix_is_not_read_again(engine: ChildEngine) -> None:
    prefix = "A list of the planets: Mercury, Venus, Earth, Mars, Jupiter"
    engine.complete(CompletionRequest(prefix, max_tokens=1))
    longer = CompletionRequest(prefix + ", Saturn", max_tokens=4)
    second = engine.complete(longer)
    assert second.reused_tokens >= 12
    engine.complete(CAPITAL)
    assert engine.complete(longer).text == second.text, "reuse does not change the answer"


def test_sampling_follows_its_seed(engine: ChildEngine) -> None:
    def story(seed: int) -> str:
        return engine.complete(CompletionRequest("Once upon a time", 12, temperature=1.0, seed=seed)).text

    assert story(1) == story(1)
    assert len({story(1), story(2), story(3)}) > 1


def test_stop_text_ends_the_answer_and_is_not_in_it(engine: ChildEngine) -> None:
    answer = engine.complete(CompletionRequest("1, 2, 3, 4, 5, 6,", max_tokens=30, stop=(" 9",)))
    assert answer.stop == "stop"
    assert answer.text == " 7, 8,"


def test_the_caller_can_have_enough(engine: ChildEngine) -> None:
    answer = engine.complete(CompletionRequest("1, 2, 3, 4, 5, 6,", max_tokens=400), is_enough=lambda t: "8" in t)
    assert answer.stop == "enough"
    assert answer.text.endswith("8")


def test_grammar_decides_the_form(engine: ChildEngine) -> None:
    grammar = 'root ::= "[" [0-9] ("," [0-9]){2} "]"'
    answer = engine.complete(CompletionRequest("Once upon a time", max_tokens=20, grammar=grammar))
    assert answer.stop == "end"
    assert [c.isdigit() for c in answer.text] == [False, True, False, True, False, True, False]


def test_grammar_lets_the_models_own_choice_through(engine: ChildEngine) -> None:
    free = engine.complete(CAPITAL)
    assert engine.complete(CompletionRequest(CAPITAL.prompt, 2, grammar="root ::= [A-Za-z .]*")).text == free.text


@pytest.mark.parametrize(
    "grammar",
    ["root ::= (((", 'other ::= "a"', 'root ::= root "a"', 'root ::= "a" missing', "", "root ::= \0", "\x85é"],
    ids=["syntax", "no root", "left recursion", "undefined", "empty", "NUL", "not ASCII"],
)
def test_invalid_grammar_is_one_sentence(engine: ChildEngine, grammar: str) -> None:
    with pytest.raises(EngineError, match=r"The grammar is not valid GBNF"):
        engine.complete(CompletionRequest("x", max_tokens=4, grammar=grammar))
    assert "Rome" in engine.complete(CAPITAL).text


def test_a_grammar_that_never_ends_ends_by_length(engine: ChildEngine) -> None:
    answer = engine.complete(CompletionRequest("x", max_tokens=8, grammar='root ::= "a" root'))
    assert (answer.stop, answer.tokens) == ("length", 8)


@pytest.mark.parametrize(
    ("grammar", "said"),
    [("root ::= " + "(" * 100_000, "ended unexpectedly"), ('root ::= "a"*' + ' "b"*' * 100_000, "was stopped")],
    ids=["kills the child", "never gets to the first token"],
)
def test_a_grammar_that_breaks_the_child(model: ModelFile, grammar: str, said: str) -> None:
    with ChildEngine(model) as engine:
        with pytest.raises(EngineError, match=said):
            engine.complete(CompletionRequest("x", max_tokens=4, grammar=grammar, seconds=0.2))
        assert "Rome" in engine.complete(CAPITAL).text, "the next request starts a new child"


def test_overlong_prompt_is_refused_with_numbers(engine: ChildEngine) -> None:
    with pytest.raises(EngineError, match=r"The prompt has 90\d\d tokens; at most 4086 fit beside an answer of 10\."):
        engine.complete(CompletionRequest("hello " * 9000, max_tokens=10))
    with pytest.raises(EngineError, match="at most 0 fit"):
        engine.complete(CompletionRequest("hello", max_tokens=100_000))


def test_any_text_is_a_prompt(engine: ChildEngine) -> None:
    assert engine.complete(CompletionRequest("\ud800 \0 \u2028 \U0001f600", max_tokens=3)).tokens == 3


@pytest.mark.parametrize("after", [0.0, 0.3], ids=["before the first token", "while it reads"])
def test_cancel_ends_the_computation_and_not_the_child(engine: ChildEngine, after: float) -> None:
    engine.complete(CAPITAL)
    child, began = engine.pid, time.monotonic()
    answer = engine.complete(LONG, is_cancelled=lambda: time.monotonic() - began >= after)
    assert (answer.stop, answer.text) == ("cancelled", "")
    assert "Rome" in engine.complete(CAPITAL).text
    assert engine.pid == child, "a child that does not heed a cancel is killed"


def test_cancel_while_another_request_is_answered(engine: ChildEngine) -> None:
    done = threading.Event()
    first = threading.Thread(target=lambda: engine.complete(LONG, is_cancelled=done.is_set))
    first.start()
    time.sleep(0.2)
    assert engine.complete(CAPITAL, is_cancelled=lambda: True).stop == "cancelled"
    done.set()
    first.join()


def test_a_request_has_a_time_limit(engine: ChildEngine) -> None:
    answer = engine.complete(CompletionRequest(LONG.prompt + "eleven", max_tokens=500, seconds=0.3))
    assert answer.stop == "time"


@pytest.mark.slow
def test_what_was_read_before_the_time_was_out_is_not_read_again(engine: ChildEngine) -> None:
    """However little of a prompt a request has time for, asking again ends some time."""
    words = "one two three four five six seven eight nine ten " * 100
    tried: list[Completion] = []
    while not tried or (tried[-1].stop == "time" and len(tried) < 100):
        tried.append(engine.complete(CompletionRequest(words, max_tokens=1, seconds=0.2 * len(tried))))
    assert tried[-1].tokens == 1
    reused = [each.reused_tokens for each in tried]
    assert reused == sorted(reused)
    assert reused[-1] > 0
    engine.complete(CAPITAL)
    assert engine.complete(CompletionRequest(words, max_tokens=1)).text == tried[-1].text


def test_beside_two_busy_processes_it_leaves_them_their_processors(engine: ChildEngine) -> None:
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        time.sleep(0.3)
        answer = engine.complete(CompletionRequest(CAPITAL.prompt, max_tokens=4))
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert answer.tokens == 4
    assert answer.threads <= max(1, processors() - 2)


def test_a_killed_child_comes_back_for_the_request_that_it_was_at(model: ModelFile) -> None:
    with ChildEngine(model) as engine:
        engine.complete(CAPITAL)
        child = engine.pid
        assert child
        threading.Timer(0.2, os.kill, (child, signal.SIGKILL)).start()
        answer = engine.complete(BUSY, is_enough=lambda text: engine.pid != child)
        assert (answer.stop, engine.pid != child) == ("enough", True)
        assert "Rome" in engine.complete(CAPITAL).text


def test_a_child_that_is_killed_again_is_one_sentence(model: ModelFile) -> None:
    def kill() -> None:
        for _ in range(2):
            child = engine.pid
            assert child
            os.kill(child, signal.SIGKILL)
            while engine.pid in (None, child):
                time.sleep(0.01)
                if ended.is_set():
                    return

    with ChildEngine(model) as engine:
        engine.complete(CAPITAL)
        ended = threading.Event()
        killer = threading.Thread(target=kill)
        threading.Timer(0.2, killer.start).start()
        with pytest.raises(EngineError, match=r"ended unexpectedly \(SIGKILL\); the next request starts it again\.$"):
            engine.complete(BUSY)
        ended.set()
        assert "Rome" in engine.complete(CAPITAL).text


def test_leaving_the_engine_ends_the_child(model: ModelFile) -> None:
    with ChildEngine(model) as engine:
        engine.complete(CAPITAL)
        child = engine.pid
    assert child
    assert not is_running(child)


def test_the_child_does_not_outlive_its_parent(model: ModelFile) -> None:
    code = (
        "import os, signal\n"
        "from warpwright.assist.child_engine import *\n"
        "from warpwright.assist.weights import *\n"
        "engine = ChildEngine(find_model())\n"
        "engine.complete(CompletionRequest('x', max_tokens=1))\n"
        "print(engine.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    env = {**os.environ, "WARPWRIGHT_MODEL": str(model.path)}
    parent = subprocess.run([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True, check=False)
    assert parent.returncode == -signal.SIGKILL
    for _ in range(100):
        if not is_running(int(parent.stdout)):
            return
        time.sleep(0.1)
    pytest.fail("the child is still there")


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.parametrize("content", [b"GGUF" + bytes(100), b"GGUF" + b"\xff" * 100], ids=["zeros", "ones"])
def test_weights_that_cannot_be_loaded(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(content)
    with (
        ChildEngine(ModelFile(path, "bad")) as engine,
        pytest.raises(EngineError, match=r"bad\.gguf could not be loaded"),
    ):
        engine.complete(CAPITAL)


def test_weights_that_are_cut_off(tmp_path: Path, model: ModelFile) -> None:
    path = tmp_path / "half.gguf"
    with model.path.open("rb") as file:
        path.write_bytes(file.read(20_000_000))
    with (
        ChildEngine(ModelFile(path, "half")) as engine,
        pytest.raises(EngineError, match=r"half\.gguf could not be loaded"),
    ):
        engine.complete(CAPITAL)


def test_an_adapter_that_does_not_fit(tmp_path: Path, model: ModelFile) -> None:
    path = tmp_path / "adapter.gguf"
    path.write_bytes(b"GGUF" + bytes(100))
    with ChildEngine(model, path) as engine, pytest.raises(EngineError, match=r"adapter\.gguf does not fit the model"):
        engine.complete(CAPITAL)


def test_without_the_runtime_it_says_what_to_install(tmp_path: Path, model: ModelFile) -> None:
    # A llama_cpp that fails to import stands for one that was built for another machine.
    (tmp_path / "llama_cpp").mkdir()
    (tmp_path / "llama_cpp" / "__init__.py").write_text("raise ImportError('libllama.so: no such file')")
    code = (
        "from warpwright.assist.child_engine import *\n"
        "from warpwright.assist.weights import *\n"
        "try:\n    ChildEngine(find_model()).complete(CompletionRequest('x'))\n"
        "except EngineError as error:\n    print(error)"
    )
    env = {**os.environ, "WARPWRIGHT_MODEL": str(model.path), "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "libllama.so: no such file" in done.stdout
    assert "pip install 'warpwright[model]'" in done.stdout


def test_samples_side_by_side_are_those_one_by_one(engine: ChildEngine) -> None:
    grammar = "root ::= [a-z ]{12}"
    single = [
        engine.complete(CompletionRequest("Once upon a", 16, 0.7 * (seed > 0), seed, grammar=grammar)).text
        for seed in range(3)
    ]
    together = engine.complete(CompletionRequest("Once upon a", 16, grammar=grammar, more=(0.7, 0.7)))
    assert [(together.text, together.stop), *map(tuple, together.others)] == [(each, "end") for each in single]
    again = engine.complete(CompletionRequest("Once upon a time", 1))
    assert again.reused_tokens >= again.prompt_tokens - 2
