"""The process that runs the model: `python child.py MODEL [ADAPTER]`. The only importer of llama_cpp.

JSON lines on stdin and stdout. First the child says {"ready": {"context": 4096}} or {"failed": "a sentence"}. Then

    {"id": 1, "prompt": "...", "max_tokens": 256, "temperature": 0.0, "seed": 0, "stop": [], "grammar": null,
     "seconds": 60}

is answered by {"id": 1, "text": "a piece"} for each piece and at last by {"id": 1, "done": {"text", "stop",
"prompt_tokens", "reused_tokens", "tokens", "threads"}} or {"id": 1, "error": "a sentence"}. {"cancel": 1} ends request
1 early. The end of stdin ends the process, so that it never outlives its parent.
"""

from __future__ import annotations

import codecs
import ctypes
import json
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from warpwright.assist.threads import Threads, processors
from warpwright.syntax.encoding import encoded, shown, shown_bytes

CONTEXT = 4096
BATCH = 128  # a request that is stopped loses what it read of a batch; one of 512 is read a fifth faster
TOP_K = 64  # sampling looks at this many tokens, and a grammar at this many before it looks at all
LONGEST_PIECE = 256


class RequestError(Exception):
    """A request that cannot be answered; the message is one sentence."""


class Stopped(Exception):  # noqa: N818  # no error: the abort callback ended a computation
    """A request that was cancelled or is out of time."""


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


class Inbox:
    """Requests as they come, and which of them were cancelled. Filled by a thread, read by the model's."""

    def __init__(self) -> None:
        self.requests: queue.SimpleQueue[Request] = queue.SimpleQueue()
        self.cancelled: set[int] = set()

    def read_forever(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "cancel" in message:
                self.cancelled.add(message["cancel"])
            else:
                message["stop"] = tuple(message["stop"])
                self.requests.put(Request(**message))
        os._exit(0)  # the parent is gone; the model's thread may be deep in a computation


class Model:
    """Weights and one context whose key-value cache keeps the last prompt, for the next that starts alike."""

    def __init__(self, path: str, adapter: str | None) -> None:
        import llama_cpp.llama_cpp as llama
        import numpy

        self.llama: Any = llama
        self.numpy: Any = numpy
        self.last_error = ""
        self.deadline = 0.0
        self.is_cancelled: Callable[[], bool] = lambda: False
        # llama.cpp calls these from C: they must live as long as the process.
        self._log = llama.llama_log_callback(self._on_log)
        self._abort = llama.ggml_abort_callback(lambda _: self.must_stop())
        llama.llama_log_set(self._log, None)
        llama.llama_backend_init()
        # The GPU is for kernels that are compared and timed. The model is small enough for the processor.
        loading = llama.llama_model_default_params()
        loading.n_gpu_layers = 0
        # llama.cpp's products on AMX load a tile configuration that the compiler may leave out; the process then dies.
        # Without buffers of their own layout they are not taken, and this model is as fast (llama.cpp pull 26954).
        loading.use_extra_bufts = b"AMX_INT8 = 1" not in llama.llama_print_system_info()
        self.model = llama.llama_model_load_from_file(os.fsencode(path), loading)
        if not self.model:
            raise RequestError(f"The model {path} could not be loaded{self._because()}.")
        self.vocab = llama.llama_model_get_vocab(self.model)
        self.context_size = min(CONTEXT, llama.llama_model_n_ctx_train(self.model))
        params = llama.llama_context_default_params()
        params.n_ctx = self.context_size
        params.n_batch = params.n_ubatch = min(BATCH, self.context_size)
        params.offload_kqv = params.op_offload = False
        self.threads = Threads(processors())
        self.context = llama.llama_init_from_model(self.model, params)
        if not self.context:
            raise RequestError(f"The model {path} could not be given memory{self._because()}.")
        if adapter:
            self._load_adapter(adapter)
        llama.llama_set_abort_callback(self.context, self._abort, None)
        self.memory = llama.llama_get_memory(self.context)
        self.vocabulary = llama.llama_vocab_n_tokens(self.vocab)
        self.cached: list[int] = []
        self._piece = ctypes.create_string_buffer(LONGEST_PIECE)

    def _on_log(self, level: int, text: bytes, _: object) -> None:
        if level == 4:  # GGML_LOG_LEVEL_ERROR
            self.last_error = shown_bytes(text).strip()

    def _because(self) -> str:
        return f" ({self.last_error})" if self.last_error else ""

    def _load_adapter(self, path: str) -> None:
        llama = self.llama
        adapter = llama.llama_adapter_lora_init(self.model, os.fsencode(path))
        if not adapter:
            raise RequestError(f"The adapter {path} does not fit the model{self._because()}.")
        adapters = (llama.llama_adapter_lora_p_ctypes * 1)(adapter)
        if llama.llama_set_adapters_lora(self.context, adapters, 1, (ctypes.c_float * 1)(1.0)):
            raise RequestError(f"The adapter {path} could not be used{self._because()}.")

    def must_stop(self) -> bool:
        return self.is_cancelled() or time.monotonic() > self.deadline

    def tokenize(self, text: str) -> list[int]:
        """Token ids, with the model's own start token once. Text that looks like a special token stays text."""
        data = encoded(shown(text))
        ids = (self.llama.llama_token * (len(data) + 2))()
        count = self.llama.llama_tokenize(self.vocab, data, len(data), ids, len(ids), True, False)
        return list(ids[:count])

    def piece(self, token: int) -> bytes:
        size = self.llama.llama_token_to_piece(self.vocab, token, self._piece, LONGEST_PIECE, 0, False)
        return self._piece.raw[:size] if size > 0 else b""

    def known(self, tokens: list[int]) -> int:
        """How many of `tokens` the context holds already. What else it holds is forgotten.

        The last token is always computed again: its logits are what the next choice is made from.
        """
        reused = 0
        for old, new in zip(self.cached, tokens[:-1], strict=False):
            if old != new:
                break
            reused += 1
        if not self.llama.llama_memory_seq_rm(self.memory, 0, reused, -1):  # recurrent models cannot forget a part
            self.llama.llama_memory_clear(self.memory, True)
            reused = 0
        self.cached = tokens[:reused]
        return reused

    def read(self, tokens: list[int]) -> None:
        """Read what follows in the context. A batch that was read stays, whatever stops the next."""
        for start in range(0, len(tokens), BATCH):
            self.decode(tokens[start : start + BATCH])

    def decode(self, tokens: list[int]) -> None:
        ids = (self.llama.llama_token * len(tokens))(*tokens)
        self.llama.llama_set_n_threads(self.context, self.threads.count, self.threads.count)
        began, worked = time.monotonic(), time.process_time()
        status = self.llama.llama_decode(self.context, self.llama.llama_batch_get_one(ids, len(tokens)))
        self.threads.learn(time.monotonic() - began, time.process_time() - worked)
        if status == 0:
            self.cached = self.cached + tokens
            return
        if not self.llama.llama_memory_seq_rm(self.memory, 0, len(self.cached), -1):
            self.llama.llama_memory_clear(self.memory, True)
            self.cached = []
        if status == 2:  # the abort callback said so
            raise Stopped
        raise RequestError(f"The model could not continue (llama_decode returned {status}{self._because()}).")

    def logits(self) -> Any:
        pointer = self.llama.llama_get_logits_ith(self.context, -1)
        return self.numpy.ctypeslib.as_array(pointer, shape=(self.vocabulary,))


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

    def next_token(self) -> int:
        logits = self.model.logits()
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


def answer(model: Model, request: Request, inbox: Inbox) -> Iterator[dict[str, Any]]:
    """Yield the messages that answer one request, without its id."""
    model.deadline = time.monotonic() + request.seconds
    model.is_cancelled = lambda: request.id in inbox.cancelled
    model.threads.look()
    prompt = model.tokenize(request.prompt)
    room = model.context_size - request.max_tokens
    if len(prompt) > room:
        raise RequestError(
            f"The prompt has {len(prompt)} tokens; at most {max(room, 0)} fit beside an answer of {request.max_tokens}."
        )
    chooser = Chooser(model, request)
    text, tokens, reused, stop = "", 0, 0, "length"
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    try:
        reused = model.known(prompt)
        model.read(prompt[reused:])
        while tokens < request.max_tokens:
            if model.must_stop():
                raise Stopped
            token = chooser.next_token()
            if model.llama.llama_vocab_is_eog(model.vocab, token):
                stop = "end"
                break
            tokens += 1
            piece = decoder.decode(model.piece(token))
            text += piece
            cut = min((at for at in (text.find(word) for word in request.stop) if at >= 0), default=-1)
            if cut >= 0:
                text, stop = text[:cut], "stop"
                break
            if piece:
                yield {"text": piece}
            if tokens < request.max_tokens:
                model.read([token])
    except Stopped:
        stop = "cancelled" if model.is_cancelled() else "time"
    finally:
        chooser.close()
    yield {
        "done": {
            "text": text,
            "stop": stop,
            "prompt_tokens": len(prompt),
            "reused_tokens": reused,
            "tokens": tokens,
            "threads": model.threads.count,
        }
    }


def main(arguments: list[str]) -> int:
    # Replies go to a copy of stdout, so that nothing a library prints can get between them.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def send(message: dict[str, Any]) -> None:
        replies.write(json.dumps(message) + "\n")
        replies.flush()

    inbox = Inbox()
    threading.Thread(target=inbox.read_forever, daemon=True).start()
    try:
        model = Model(arguments[0], arguments[1] if len(arguments) > 1 else None)
    except RequestError as error:
        send({"failed": str(error)})
        return 1
    except ImportError as error:
        send({"failed": f"llama-cpp-python cannot be imported ({error}); run `pip install 'warpwright[model]'`."})
        return 1
    send({"ready": {"context": model.context_size}})
    while True:
        request = inbox.requests.get()
        try:
            for message in answer(model, request, inbox):
                send({"id": request.id, **message})
        except RequestError as error:
            send({"id": request.id, "error": str(error)})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
