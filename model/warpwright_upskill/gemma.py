"""The model's two sides of one GGUF file: torch weights to train on, and llama.cpp's tokens to train with.

The tokenizer that transformers rebuilds from a GGUF is wrong for Gemma (it splits the same text into a quarter more
tokens), so tokens come from llama.cpp, which is also what the server runs.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from warpwright_upskill.console import StageError
from warpwright_upskill.gguf_file import read_gguf

PAD, EOS, BOS = 0, 1, 2
_BLANK = "\u2581".encode()


class Tokens:
    """llama.cpp's tokenizer of one GGUF; reads the vocabulary alone (0.3 s for Gemma 3 270M)."""

    def __init__(self, gguf: Path) -> None:
        llama_cpp = quiet_llama_cpp()
        known_gguf(gguf)
        try:
            self._llama: Any = llama_cpp.Llama(str(gguf), vocab_only=True, verbose=False)
        except ValueError:
            raise StageError(f"{gguf}: llama.cpp cannot read its vocabulary; give a complete GGUF model.") from None

    def encode(self, text: str) -> list[int]:
        """Token ids of `text`, without a beginning-of-sequence token; "<eos>" in the text stays plain text."""
        ids: list[int] = self._llama.tokenize(text.encode("utf-8"), add_bos=False, special=False)
        return ids

    def close(self) -> None:
        self._llama.close()


class Vocabulary:
    """What each token of a GGUF stands for; llama.cpp is not needed to read answers."""

    def __init__(self, gguf: Path) -> None:
        file = read_gguf(gguf)
        byte, control = 6, 3
        kinds = file.values.get("tokenizer.ggml.token_type") or []
        if not file.tokens or len(kinds) != len(file.tokens):
            raise StageError(f"{gguf}: holds no vocabulary; give a complete GGUF model.")
        self._pieces = [
            b"" if kind == control else bytes([int(text[3:5], 16)]) if kind == byte else text.replace(_BLANK, b" ")
            for text, kind in zip(file.tokens, kinds, strict=True)
        ]

    def __len__(self) -> int:
        return len(self._pieces)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of an answer; what controls the model is no part of it."""
        return b"".join(self._pieces[each] for each in ids).decode("utf-8", errors="replace")


def vocabulary_hash(gguf: Path) -> tuple[str, int]:
    """A name for the vocabulary of a model, and how many tokens it has."""
    tokens = read_gguf(gguf).tokens
    return hashlib.sha256(b"\0".join(tokens)).hexdigest(), len(tokens)


def load_weights(gguf: Path, *, device: str, dtype: str) -> Any:
    """A Gemma3ForCausalLM with the GGUF's weights, dequantised to `dtype` ("float32" or "bfloat16") on `device`."""
    known_gguf(gguf)
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()
    try:
        with quiet_warnings():
            model: Any = transformers.AutoModelForCausalLM.from_pretrained(
                str(gguf.resolve().parent), gguf_file=gguf.name, dtype=getattr(torch, dtype)
            )
    except (ValueError, OSError, RuntimeError, KeyError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise StageError(f"{gguf}: transformers cannot load it ({reason}); give a Gemma 3 GGUF.") from None
    if model.config.model_type != "gemma3_text":
        raise StageError(f"{gguf}: is a {model.config.model_type} model; only Gemma 3 is trained here.")
    return model.to(device)


def choose_device(asked: str) -> str:
    """ "auto" is the CUDA GPU where there is one, else the CPU. Raises StageError for a device that is not there."""
    import torch

    if asked == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if asked == "cuda" and not torch.cuda.is_available():
        raise StageError("No CUDA GPU is visible to torch; use `--device cpu`.")
    return asked


def choose_dtype(asked: str, device: str) -> str:
    """ "auto" is what a device computes fast in."""
    return ("bfloat16" if device == "cuda" else "float32") if asked == "auto" else asked


@contextmanager
def quiet_warnings() -> Iterator[None]:
    """Keep the libraries' notes about their own next versions from the user."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@cache
def quiet_llama_cpp() -> Any:
    """The llama_cpp module, with its log turned off."""
    import llama_cpp

    silent = llama_cpp.llama_log_callback(lambda level, text, data: None)
    llama_cpp.llama_log_set(silent, None)
    llama_cpp.__dict__["_warpwright_log_callback"] = silent  # ctypes does not keep it alive
    return llama_cpp


def known_gguf(gguf: Path) -> None:
    """Raises StageError for a file that is not there or is no GGUF."""
    try:
        with gguf.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise StageError(f"{gguf}: cannot be read ({error.strerror}).") from None
    if magic != b"GGUF":
        raise StageError(f"{gguf}: is not a GGUF file.")
