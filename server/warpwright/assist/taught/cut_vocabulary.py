"""A model's vocabulary cut to what code and English are written in: a smaller file, and fewer sums for each token.

Rows of the embedding are copied, nothing is quantised again; what is written with the tokens that are kept has the same
tokens as before, under other numbers, and an adapter fits both files.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from warpwright.assist.taught.gguf_file import EMBEDDING, GgufError, GgufFile, Replaced, Tensor, data_of, raw_array

_PER_TOKEN = ("tokenizer.ggml.tokens", "tokenizer.ggml.scores", "tokenizer.ggml.token_type")
_BLANK = b"\xe2\x96\x81"
"""How a vocabulary writes a blank, in UTF-8."""
_NORMAL = 1
_SPECIAL = 4
"""The first tokens, which other values of the file name by number: padding, end, beginning, unknown."""


def kept_tokens(file: GgufFile, first: int = 0) -> list[int]:
    """Numbers of the tokens to keep: special ones, bytes, and ASCII texts, of these where asked only single characters
    and those among the `first`.

    Tokens of several characters are numbered in the order in which a tokenizer merges them, so that the first ones are
    the frequent ones. Single characters come last, and no text is written without them. Raises GgufError.
    """
    kinds = file.values.get("tokenizer.ggml.token_type") or ()
    if not file.tokens or len(kinds) != len(file.tokens):
        raise GgufError(f"{file.path}: holds no vocabulary; give a Gemma 3 model.")

    def is_kept(number: int, text: bytes, kind: int) -> bool:
        if kind != _NORMAL:
            return number < _SPECIAL or not text.startswith(b"<unused")
        plain = text.replace(_BLANK, b" ")
        return number < _SPECIAL or (plain.isascii() and (not first or number < first or len(plain) == 1))

    return [
        number
        for number, (text, kind) in enumerate(zip(file.tokens, kinds, strict=True))
        if is_kept(number, text, kind)
    ]


def cut(file: GgufFile, kept: Sequence[int]) -> tuple[dict[str, bytes], dict[str, Replaced]]:
    """Values and tensors of a file with the tokens `kept`, as `write_gguf` takes them. Raises GgufError."""
    if any(name not in file.values for name in _PER_TOKEN):
        raise GgufError(f"{file.path}: holds no vocabulary with scores; give a Gemma 3 model.")
    replaced: dict[str, Replaced] = {
        tensor.name: ((tensor.shape[0], len(kept)), tensor.kind, partial(_rows, file, tensor, kept))
        for tensor in file.tensors
        if tensor.name in EMBEDDING
    }
    return {name: raw_array(file, name, kept) for name in _PER_TOKEN}, replaced


def _rows(file: GgufFile, tensor: Tensor, kept: Sequence[int]) -> bytes:
    import numpy as np

    rows = np.frombuffer(data_of(file, tensor), dtype=np.uint8).reshape(tensor.shape[1], -1)
    data: bytes = rows[list(kept)].tobytes()
    return data
