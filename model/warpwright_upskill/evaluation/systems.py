"""What is asked for formulas: a model in the server's engine, a larger one behind an endpoint, the nearest wording."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from warpwright.assist.engine import CompletionRequest, Engine, EngineError
from warpwright.assist.formula_grammar import formula_grammar
from warpwright.assist.formula_shots import SHOTS, worked_examples
from warpwright.assist.formula_task import STOP, FormulaRequest, formula_prompt
from warpwright.assist.formula_votes import MAX_TOKENS, SAMPLES, TEMPERATURE
from warpwright.assist.mended_formula import read_or_mended

from warpwright_upskill.evaluation.nearest import Nearest
from warpwright_upskill.prompts import Prompt

SECONDS = 180.0
GUIDE = """\
You translate a comment into one tensor formula. A formula says what each element of each output is:
y[r, c] = exp(x[r, c] - m[r]) / sum[c] exp(x[r, c] - m[r]) where m[r] = max[c] x[r, c]
Lower-case indices are dimensions, their extents are the same names in capitals. Reductions: sum mean prod max min any
all argmax argmin logsumexp var std, as op[k] body, with ranges as sum[j <= i] or max[k < 3]; what is reduced is one
product, put more in parentheses. Stages come behind `where`, separated by commas. `a if condition else b` selects.
Reads beyond an array must say what is read: x[i - 1; zero], ; clamp, ; wrap, ; reflect, ; 2.5. Types are declared as
`x: f16, y: f16[R, C], ids: i32`; inputs are f32, indices i32 without a declaration. In place: x'[i] = 2 * x[i].
Scatter: h[bin[i]] += 1, or h[bin[i]] = sum[i] 1 from zero. Functions: exp log sqrt rsqrt tanh sigmoid gelu silu relu
abs clamp max min floor round erf and so on; casts f32(x). Use the names that are given. Answer with the formula alone,
in one line."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: `seconds` it took and how many tokens it had. `failed` is why there is none."""

    text: str
    seconds: float
    tokens: int = 0
    failed: str = ""


class System(Protocol):
    """Something that answers prompts: `settings` are all that its answers depend on."""

    @property
    def name(self) -> str: ...

    @property
    def settings(self) -> Mapping[str, Any]: ...

    @property
    def votes(self) -> int:
        """Of how many answers a user is shown what most of them mean; 0 where the first is shown."""

    def answers(self, prompt: Prompt) -> Iterator[Answer]:
        """Answers without end, or until there are no others, the best first."""


@dataclass(frozen=True)
class WordsSystem:
    """The nearest wording."""

    index: Nearest
    settings: Mapping[str, Any]
    name: str = "nearest wording"
    votes: int = 0

    def answers(self, prompt: Prompt) -> Iterator[Answer]:
        found = self.index.formulas(prompt.comment, prompt.given)
        while True:
            started = time.perf_counter()
            text = next(found, None)
            if text is None:
                return
            yield Answer(text, time.perf_counter() - started)


@dataclass(frozen=True)
class ModelSystem:
    """The local model. Its answers are the samples of `formula_votes.formulas_for`, one by one; untaught it is
    shown worked examples first."""

    engine: Engine
    name: str
    settings: Mapping[str, Any]
    votes: int = SAMPLES

    def answers(self, prompt: Prompt) -> Iterator[Answer]:
        wanted = FormulaRequest(prompt.comment, prompt.given)
        asked, grammar = formula_prompt(wanted), formula_grammar(wanted)
        text = asked if self.engine.is_taught else f"{worked_examples()}{asked}"
        number = 0
        while True:
            request = CompletionRequest(
                text, MAX_TOKENS, TEMPERATURE if number else 0.0, number, (STOP,), grammar, SECONDS
            )
            started = time.perf_counter()
            try:
                done = self.engine.complete(request)
                yield Answer(as_read(done.text, prompt.comment), time.perf_counter() - started, done.tokens)
            except EngineError as error:
                yield Answer("", time.perf_counter() - started, failed=str(error))
            number += 1


@dataclass(frozen=True)
class KeptSystem:
    """A model's answers that were written before, elsewhere."""

    name: str
    settings: Mapping[str, Any]
    kept: Mapping[str, Sequence[str]] = field(repr=False)
    votes: int = SAMPLES

    def answers(self, prompt: Prompt) -> Iterator[Answer]:
        for text in self.kept.get(prompt.id, ()):
            yield Answer(as_read(text, prompt.comment), 0.0)


def as_read(answer: str, words: str) -> str:
    """A model's answer as the product reads it: mended where a rule does."""
    found = read_or_mended(answer, words)
    return answer if isinstance(found, str) else found.text


@dataclass(frozen=True)
class EndpointSystem:
    """A model behind an OpenAI-compatible endpoint, told what the language is."""

    url: str
    model: str
    key: str = field(default="", repr=False)
    votes: int = 0

    @property
    def name(self) -> str:
        return self.model

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"model": self.model, "temperature": [0, TEMPERATURE], "worked_examples": len(SHOTS), "guide": GUIDE}

    def answers(self, prompt: Prompt) -> Iterator[Answer]:
        number = 0
        while True:
            started = time.perf_counter()
            try:
                text, tokens = self._asked(prompt, TEMPERATURE if number else 0.0, number)
                yield Answer(text, time.perf_counter() - started, tokens)
            except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
                yield Answer("", time.perf_counter() - started, failed=f"The endpoint failed: {error}")
            number += 1

    def _asked(self, prompt: Prompt, temperature: float, seed: int) -> tuple[str, int]:
        asked = formula_prompt(FormulaRequest(prompt.comment, prompt.given))
        body = {
            "model": self.model,
            "temperature": temperature,
            "seed": seed,
            "max_tokens": 4 * MAX_TOKENS,
            "messages": [
                {"role": "system", "content": f"{GUIDE}\n\n{worked_examples()}"},
                {"role": "user", "content": asked},
            ],
        }
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self.key}"} if self.key else {})
        request = urllib.request.Request(f"{self.url.rstrip('/')}/chat/completions", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=SECONDS) as reply:
            said = json.loads(reply.read(1 << 20))
        text = str(said["choices"][0]["message"]["content"]).strip().strip("`").strip()
        return text.removeprefix("// Formula:").strip(), int(said.get("usage", {}).get("completion_tokens", 0))
