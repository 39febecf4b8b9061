"""What the model writes, token by token: the next one by temperature, seed and grammar, and the text so far."""

from __future__ import annotations

import codecs
import ctypes
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warpwright.syntax.encoding import encoded, shown

if TYPE_CHECKING:
    from warpwright.assist.child import Model

TOP_K = 64  # sampling looks at this many tokens, and a grammar at this many before it looks at all


class RequestError(Exception):
    """A request that cannot be answered; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Request:
    id: int
    prompt: str
    max_tokens: int
    temperature: float
    seed: int
    stop: tuple[str, ...]
    grammar: str | None
    seconds: float
    more: tuple[float, ...] = ()


class Chooser:
    """Picks the next token of one request: temperature, seed and, where there is one, the grammar.

    A grammar is tested against the model's own choice first, then against the most likely tokens, and only if it
    refuses all of them against the whole vocabulary: filtering 262,144 candidates takes as long as two tokens.
    """

    def __init__(self, model: Model, request: Request) -> None:
        self.model = model
        self.llama = model.llama
        self.numpy = model.numpy
        self.temperature = request.temperature
        self.random = self.numpy.random.default_rng(request.seed)
        self.log = 0.0
        """Of the likelihood of all tokens so far, whatever the temperature and the grammar."""
        self.grammar = None
        self.candidate = self.numpy.dtype([("id", "i4"), ("logit", "f4"), ("p", "f4")])
        if request.grammar is not None:
            text = encoded(shown(request.grammar))
            self.model.last_error = ""
            # llama.cpp takes an empty grammar for none, and would read up to the first NUL.
            if text.strip() and b"\0" not in text:
                self.grammar = self.llama.llama_sampler_init_grammar(model.vocab, text, b"root")
            if not self.grammar:
                raise RequestError(f"The grammar is not valid GBNF with a rule named root{model._because()}.")

    def close(self) -> None:
        if self.grammar:
            self.llama.llama_sampler_free(self.grammar)

    def next_token(self, number: int = -1) -> int:
        """The token behind the one with that number in the last batch."""
        logits = self.model.logits(number)
        likely = self.numpy.argpartition(logits, -TOP_K)[-TOP_K:]
        token = self._pick(likely, logits)
        if self.grammar:
            if not len(self._admitted(self.numpy.array([token]))):
                admitted = self._admitted(likely)
                if not len(admitted):
                    admitted = self._admitted(self.numpy.arange(len(logits)))
                if not len(admitted):
                    raise RequestError("The grammar cannot be satisfied: no token may follow here.")
                token = self._pick(admitted, logits)
            # Only an admitted token may be accepted: anything else is a C++ exception that ends the process.
            self.llama.llama_sampler_accept(self.grammar, token)
        highest = float(logits[likely].max())  # beyond these tokens lies next to nothing
        weights = self.numpy.exp(logits[likely] - highest, dtype="f8")
        self.log += float(logits[token]) - highest - math.log(weights.sum())
        return token

    def _pick(self, tokens: Any, logits: Any) -> int:
        values = logits[tokens]
        if self.temperature <= 0:
            return int(tokens[values.argmax()])
        weights = self.numpy.exp((values - values.max()) / self.temperature, dtype="f8")
        return int(self.random.choice(tokens, p=weights / weights.sum()))

    def _admitted(self, tokens: Any) -> Any:
        candidates = self.numpy.zeros(len(tokens), self.candidate)
        candidates["id"] = tokens
        data = candidates.ctypes.data_as(self.llama.llama_token_data_p)
        array = self.llama.llama_token_data_array(data, len(tokens), -1, False)
        self.llama.llama_sampler_apply(self.grammar, ctypes.byref(array))
        return tokens[candidates["logit"] > -self.numpy.inf]


class Sample:
    """One continuation of a prompt as it grows; `stop` says why it ended, "" while it goes on."""

    def __init__(self, model: Model, request: Request) -> None:
        self.model, self.request = model, request
        self.chooser = Chooser(model, request)
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._decoded = decoder.decode
        self.text, self.stop, self.tokens, self.last = "", "", 0, 0

    def grow(self, number: int = -1) -> str:
        """Choose the next token behind the one with that number in the last batch; its text."""
        self.last = self.chooser.next_token(number)
        if self.model.llama.llama_vocab_is_eog(self.model.vocab, self.last):
            self.stop = "end"
            return ""
        self.tokens += 1
        piece = self._decoded(self.model.piece(self.last))
        self.text += piece
        cut = min((at for at in (self.text.find(word) for word in self.request.stop) if at >= 0), default=-1)
        if cut >= 0:
            self.text, self.stop = self.text[:cut], "stop"
            return ""
        if self.tokens >= self.request.max_tokens:
            self.stop = "length"
        return piece
