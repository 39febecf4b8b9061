"""The process that runs the model: `python child.py MODEL [ADAPTER]`. The only importer of llama_cpp.

JSON lines on stdin and stdout. First the child says {"ready": {"context": 4096}} or {"failed": "a sentence"}. Then

    {"id": 1, "prompt": "...", "max_tokens": 256, "temperature": 0.0, "seed": 0, "stop": [], "grammar": null,
     "seconds": 60, "more": []}

is answered by {"id": 1, "text": "a piece"} for each piece and at last by {"id": 1, "done": {"text", "stop",
"prompt_tokens", "reused_tokens", "tokens", "threads", "others", "logs"}} or {"id": 1, "error": "a sentence"}.
{"cancel": 1} ends request 1 early. The end of stdin ends the process, so that it never outlives its parent.

"more" are the temperatures of further samples, with the seeds that follow; "others" are their [text, stop], "logs"
the logarithms of the likelihoods of all. All are computed side by side, a token of each at once: four take less than
two one after the other.
"""

from __future__ import annotations

import ctypes
import json
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from warpwright.assist.sampling import Request, RequestError, Sample
from warpwright.assist.threads import Threads, processors
from warpwright.syntax.encoding import encoded, shown, shown_bytes

CONTEXT = 4096
BATCH = 128  # a request that is stopped loses what it read of a batch; one of 512 is read a fifth faster
MOST_SAMPLES = 4
LONGEST_PIECE = 256


class Stopped(Exception):  # noqa: N818  # no error: the abort callback ended a computation
    """A request that was cancelled or is out of time."""


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
                message["stop"], message["more"] = tuple(message["stop"]), tuple(message["more"])
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
        params.n_seq_max, params.kv_unified = MOST_SAMPLES, True
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
        self._batch = llama.llama_batch_init(MOST_SAMPLES, 0, 1)
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
        self._compute(self.llama.llama_batch_get_one(ids, len(tokens)))
        self.cached = self.cached + tokens

    def branch(self, count: int) -> None:
        """Let `count` sequences go on from what was read."""
        for sequence in range(1, count):
            self.llama.llama_memory_seq_cp(self.memory, 0, sequence, -1, -1)

    def join(self, count: int) -> None:
        """Forget all sequences but the first, and of that what `decode` did not read."""
        for sequence in range(1, count):
            self.llama.llama_memory_seq_rm(self.memory, sequence, -1, -1)
        if not self.llama.llama_memory_seq_rm(self.memory, 0, len(self.cached), -1):
            self.llama.llama_memory_clear(self.memory, True)
            self.cached = []

    def step(self, tokens: list[tuple[int, int]], at: int) -> None:
        """Read one token at the position `at` of each sequence that is named: (sequence, token)."""
        self._batch.n_tokens = len(tokens)
        for number, (sequence, token) in enumerate(tokens):
            self._batch.token[number], self._batch.pos[number] = token, at
            self._batch.n_seq_id[number], self._batch.seq_id[number][0] = 1, sequence
            self._batch.logits[number] = 1
        self._compute(self._batch)

    def _compute(self, batch: Any) -> None:
        self.llama.llama_set_n_threads(self.context, self.threads.count, self.threads.count)
        began, worked = time.monotonic(), time.process_time()
        status = self.llama.llama_decode(self.context, batch)
        self.threads.learn(time.monotonic() - began, time.process_time() - worked)
        if status == 0:
            return
        if not self.llama.llama_memory_seq_rm(self.memory, 0, len(self.cached), -1):
            self.llama.llama_memory_clear(self.memory, True)
            self.cached = []
        if status == 2:  # the abort callback said so
            raise Stopped
        raise RequestError(f"The model could not continue (llama_decode returned {status}{self._because()}).")

    def logits(self, number: int = -1) -> Any:
        """Of the token with that number in the last batch."""
        pointer = self.llama.llama_get_logits_ith(self.context, number)
        return self.numpy.ctypeslib.as_array(pointer, shape=(self.vocabulary,))


def answer(model: Model, request: Request, inbox: Inbox) -> Iterator[dict[str, Any]]:
    """Yield the messages that answer one request, without its id."""
    model.deadline = time.monotonic() + request.seconds
    model.is_cancelled = lambda: request.id in inbox.cancelled
    model.threads.look()
    prompt = model.tokenize(request.prompt)
    count = 1 + len(request.more)
    if count > MOST_SAMPLES:
        raise RequestError(f"At most {MOST_SAMPLES} samples are computed at once.")
    room = model.context_size - count * request.max_tokens
    if len(prompt) > room:
        raise RequestError(
            f"The prompt has {len(prompt)} tokens; at most {max(room, 0)} fit beside an answer of {request.max_tokens}."
        )
    asked = [
        replace(request, temperature=temperature, seed=request.seed + number)
        for number, temperature in enumerate((request.temperature, *request.more))
    ]
    samples: list[Sample] = []
    reused = 0
    try:
        samples.extend(Sample(model, each) for each in asked)
        reused = model.known(prompt)
        model.read(prompt[reused:])
        yield from _grown(model, samples, len(prompt))
    except Stopped:
        pass
    finally:
        for sample in samples:
            sample.chooser.close()
    stopped = "cancelled" if model.is_cancelled() else "time"
    first = samples[0]
    yield {
        "done": {
            "text": first.text,
            "stop": first.stop or stopped,
            "prompt_tokens": len(prompt),
            "reused_tokens": reused,
            "tokens": sum(each.tokens for each in samples),
            "threads": model.threads.count,
            "others": [[each.text, each.stop or stopped] for each in samples[1:]],
            "logs": [each.chooser.log for each in samples],
        }
    }


def _grown(model: Model, samples: list[Sample], at: int) -> Iterator[dict[str, Any]]:
    """Let samples grow behind a prompt of `at` tokens that was read, to their ends; the pieces of the first."""
    model.branch(len(samples))
    try:
        numbers = [-1] * len(samples)
        going = list(enumerate(samples))
        while True:
            for number, (_, sample) in zip(numbers, going, strict=True):
                if model.must_stop():
                    raise Stopped
                piece = sample.grow(number)
                if piece and sample is samples[0]:
                    yield {"text": piece}
            going = [each for each in going if not each[1].stop]
            if not going:
                return
            model.step([(sequence, sample.last) for sequence, sample in going], at)
            numbers, at = list(range(len(going))), at + 1
    finally:
        model.join(len(samples))


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
