"""The grammar of answers: every formula is admitted where its names are known, and what is admitted parses."""

from __future__ import annotations

import ctypes
import random
import tomllib
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from support.gbnf import Grammar
from warpwright.assist.engine import CompletionRequest, Engine
from warpwright.assist.formula_grammar import formula_grammar, names_of
from warpwright.assist.formula_task import FormulaRequest, formula_answer, formula_prompt
from warpwright.assist.weights import ModelFile
from warpwright.formulas.parser import parse
from warpwright.formulas.sampler import samples

CATALOGUE = Path(__file__).resolve().parents[2] / "benchmarks" / "formulas.toml"
REQUESTS = (
    FormulaRequest("normalise rows by their sum"),
    FormulaRequest('a "sum" of \\d [x] {where, if} max float', "struct P { float px, py; }; const P* p, int n"),
)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("request_", REQUESTS, ids=["plain", "awkward"])
@pytest.mark.parametrize("more", [0.05, 0.3, 0.6])
def test_what_is_admitted_parses(request_: FormulaRequest, more: float) -> None:
    grammar, chance = Grammar.of(formula_grammar(request_)), random.Random(f"{more}")
    for _ in range(100):
        parse(grammar.drawn(chance, more))


def test_names_are_those_of_the_request_and_the_vocabulary() -> None:
    names = set(names_of(FormulaRequest("frobnicate the sum if max", "const float* gadget, int n")))
    assert {"frobnicate", "gadget", "GADGET", "n", "N", "alpha"} <= names
    assert not names & {"where", "if", "sum", "max", "float", "f32"}


class _Reader:
    """llama.cpp's own reading of a grammar, over the tokens of the default model."""

    def __init__(self, model: ModelFile) -> None:
        import llama_cpp.llama_cpp as llama

        self.llama: Any = llama
        self.log = llama.llama_log_callback(lambda *_: None)
        llama.llama_log_set(self.log, None)
        llama.llama_backend_init()
        loading = llama.llama_model_default_params()
        loading.vocab_only = True
        self.model = llama.llama_model_load_from_file(str(model.path).encode(), loading)
        self.vocab = llama.llama_model_get_vocab(self.model)

    def admits(self, grammar: str, text: str) -> bool:
        llama, data = self.llama, text.encode()
        ids = (llama.llama_token * (len(data) + 2))()
        count = llama.llama_tokenize(self.vocab, data, len(data), ids, len(ids), False, False)
        sampler = llama.llama_sampler_init_grammar(self.vocab, grammar.encode(), b"root")
        assert sampler
        try:
            for token in (*ids[:count], llama.llama_vocab_eos(self.vocab)):
                candidate = llama.llama_token_data(token, 0.0, 0.0)
                array = llama.llama_token_data_array(ctypes.pointer(candidate), 1, -1, False)
                llama.llama_sampler_apply(sampler, ctypes.byref(array))
                if candidate.logit < 0:
                    return False
                llama.llama_sampler_accept(sampler, token)
        finally:
            llama.llama_sampler_free(sampler)
        return True


@pytest.fixture(scope="module")
def reader(model: ModelFile) -> _Reader:
    return _Reader(model)


def refused(reader: _Reader, texts: list[str]) -> list[str]:
    """Those that the grammar of a request with their names does not admit."""
    return [text for text in texts if not reader.admits(formula_grammar(FormulaRequest(text)), formula_answer(text))]


@pytest.mark.llm
@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)], ids=["some", "all"])
def test_every_formula_of_the_catalogue_is_admitted(reader: _Reader, every: int) -> None:
    formulas = tomllib.loads(CATALOGUE.read_text(encoding="utf-8"))["formula"]
    assert refused(reader, [each["text"] for each in formulas][::every]) == []


@pytest.mark.llm
@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_every_formula_of_the_sampler_is_admitted(reader: _Reader, count: int) -> None:
    assert refused(reader, [each.text for each in islice(samples("grammar"), count)]) == []


@pytest.mark.llm
@pytest.mark.parametrize(
    "text", [" y[i] = frobnicate[i]", " y[i] = x[i] +", " y = 1\n", "y = 1", " y = x where", " sum = 1"]
)
def test_what_is_no_formula_of_the_request_is_refused(reader: _Reader, text: str) -> None:
    assert not reader.admits(formula_grammar(FormulaRequest("copy x")), text)


@pytest.mark.llm
def test_the_model_writes_what_parses(engine: Engine) -> None:
    """The untuned model knows nothing of formulas: what it writes has their form by the grammar alone."""
    request = FormulaRequest(
        "sum of each row", "const float* x, float* s, int rows, int cols", ("row means", "m[r] = mean[c] x[r, c]")
    )
    answer = engine.complete(CompletionRequest(formula_prompt(request), 96, grammar=formula_grammar(request)))
    if answer.stop == "end":
        parse(answer.text)
    assert answer.text.startswith(" ")
