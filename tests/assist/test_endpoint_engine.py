"""A model behind an OpenAI-compatible server, spoken to over HTTP."""

from __future__ import annotations

import time

import pytest
from support.endpoint import endpoint
from warpwright.assist.endpoint import Endpoint, endpoint_of
from warpwright.assist.endpoint_engine import EndpointEngine
from warpwright.assist.engine import CompletionRequest, EngineError
from warpwright.assist.opening import named_model, open_engine
from warpwright.assist.readings import by_model

ENDLESS = "and so on " * 2000


def engine_of(url: str) -> EndpointEngine:
    engine = open_engine(url)
    assert isinstance(engine, EndpointEngine)
    return engine


def test_samples_are_asked_for_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPWRIGHT_API_KEY", "secret")
    with endpoint(lambda body: f" seed {body['seed']}\n// more", pause=0.1) as server:
        began = time.monotonic()
        done = engine_of(server.url).complete(CompletionRequest("x", 64, stop=("\n",), seed=3, more=(0.7, 0.7)))
        assert time.monotonic() - began < 0.9, "three answers of 0.3 seconds"
    assert (done.text, done.stop, done.others) == (" seed 3", "stop", ((" seed 4", "stop"), (" seed 5", "stop")))
    assert sorted(each["temperature"] for each in server.asked) == [0.0, 0.7, 0.7]
    assert {each["model"] for each in server.asked} == {"first"}, "the server's, where none is named"
    assert set(server.keys) == {"Bearer secret"}


def test_a_server_that_knows_no_grammar_is_asked_without() -> None:
    with endpoint(lambda _: "yes", refuses=("grammar",)) as server:
        engine = engine_of(f"{server.url}#mine")
        for _ in range(2):
            assert engine.complete(CompletionRequest("x", grammar='root ::= "yes"')).text == "yes"
    assert ["grammar" in each for each in server.asked] == [True, False, False]
    assert {each["model"] for each in server.asked} == {"mine"}


def test_a_cancel_the_time_and_enough_close_the_connection() -> None:
    with endpoint(lambda _: ENDLESS, pause=0.02) as server:
        engine = engine_of(f"{server.url}#mine")
        began = time.monotonic()
        done = engine.complete(CompletionRequest("x"), is_cancelled=lambda: time.monotonic() > began + 0.3)
        assert done.stop == "cancelled" and time.monotonic() - began < 2
        assert server.left.wait(5), "the server goes on for nobody"
        assert engine.complete(CompletionRequest("x", seconds=0.3)).stop == "time"
        done = engine.complete(CompletionRequest("x"), is_enough=lambda text: "on" in text)
        assert done.stop == "enough" and done.text.startswith("and so")


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ({"status": 503}, "it answered 503"),
        ({"is_cut": True}, "its answer has no end"),
        ({"raw": b"<html><body>Sign in</body></html>"}, "its answer has no end"),
        ({"raw": b"a" * 10_000_000}, "its answer has no end"),
        ({"raw": b"data: " + b"a" * 10_000_000 + b"\n\n"}, "Expecting value"),
        ({"raw": b"data: " + b"[" * 500_000 + b"\n\n"}, "maximum recursion depth exceeded"),
        ({"raw": b'data: {"usage": {"completion_tokens": 1e999}}\n\n'}, "cannot convert float infinity"),
        ({"raw": b'data: {"choices": [7]}\n\n'}, "'int' object has no attribute"),
    ],
)
def test_what_goes_wrong_is_one_sentence(what: dict[str, object], said: str) -> None:
    with (
        endpoint(lambda _: "some text", **what) as server,
        pytest.raises(EngineError, match=rf"^mine at 127.0.0.1:\d+ gave no answer: {said}.*\.$"),
    ):
        engine_of(f"{server.url}#mine").complete(CompletionRequest("x"))


def test_a_server_that_lists_no_models_in_time_is_left() -> None:
    with endpoint(lambda _: "some text", silent=3.0) as server:
        engine, began = engine_of(server.url), time.monotonic()
        assert engine.complete(CompletionRequest("x", seconds=0.3)).stop == "time"
        assert engine.complete(CompletionRequest("x"), lambda: True).stop == "cancelled"
        assert time.monotonic() - began < 2


def test_nobody_listens() -> None:
    with endpoint(str) as server:
        url = server.url
    with pytest.raises(EngineError, match="cannot be reached"):
        engine_of(url).complete(CompletionRequest("x"))
    with pytest.raises(EngineError, match="gave no answer"):
        engine_of(f"{url}#mine").complete(CompletionRequest("x"))


def test_its_formulas_are_voted_on_as_any_models() -> None:
    answers = {0: " y[i] = 2 * x[i]", 1: " y[i] = x[i] + x[i]", 2: " ```cuda", 3: " y[i] = system(x[i])"}
    with endpoint(lambda body: answers[body["seed"] % 4]) as server:
        (reading,) = by_model(engine_of(server.url), "twice x")
    assert (reading.formula.text, reading.votes) == ("y[i] = 2 * x[i]", "4 of 8")
    assert all(each["prompt"].startswith("// Given: float* x, float alpha") for each in server.asked), "it is shown how"
    assert all(each["prompt"].endswith("// Task: twice x\n// Formula:") for each in server.asked)


def test_a_name_is_an_address_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPWRIGHT_MODEL", "https://user:word@host:8080/v1/#a/b")
    named = named_model(None)
    assert isinstance(named, Endpoint)
    assert (named.url, named.name) == ("https://user:word@host:8080/v1", "a/b at host:8080")
    for name in ("http:/model.gguf", "file:///model.gguf", "http://[", "https://", "org/repo"):
        assert endpoint_of(name) is None
