"""Cut a model's vocabulary to what code and English are written in: a third less of Gemma 3 270M, and faster.

    python -m warpwright_upskill.prune --out pruned.gguf

Rows of the embedding are copied, nothing is quantised again; ASCII text has the same tokens as before, under other
numbers, and an adapter fits both files.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from warpwright_upskill.console import fail, stage
from warpwright_upskill.gguf_file import EMBEDDING, GgufFile, Tensor, data_of, raw_array, read_gguf, write_gguf
from warpwright_upskill.options import find_base, model_option

_PER_TOKEN = ("tokenizer.ggml.tokens", "tokenizer.ggml.scores", "tokenizer.ggml.token_type")
_NORMAL = 1
_SPECIAL = 4
"""The first tokens, which other values of the file name by number: padding, end, beginning, unknown."""


def kept_tokens(file: GgufFile, first: int = 0) -> list[int]:
    """Numbers of the tokens to keep: special ones, bytes, and ASCII texts, of these where asked only single characters
    and those among the `first`.

    Tokens of several characters are numbered in the order in which a tokenizer merges them, so that the first ones are
    the frequent ones. Single characters come last, and no text is written without them.
    """
    blank = "\u2581".encode()

    def is_kept(number: int, text: bytes, kind: int) -> bool:
        if kind != _NORMAL:
            return number < _SPECIAL or not text.startswith(b"<unused")
        plain = text.replace(blank, b" ")
        return number < _SPECIAL or (plain.isascii() and (not first or number < first or len(plain) == 1))

    kinds = file.values["tokenizer.ggml.token_type"]
    return [
        number
        for number, (text, kind) in enumerate(zip(file.tokens, kinds, strict=True))
        if is_kept(number, text, kind)
    ]


def prune(source: Path, out: Path, first: int = 0) -> tuple[int, int]:
    """Write the pruned model; returns the numbers of tokens before and after."""
    file = read_gguf(source)
    if not file.tokens or any(name not in file.values for name in _PER_TOKEN):
        fail(f"{source}: holds no vocabulary with scores; give a Gemma 3 model.")
    kept = kept_tokens(file, first)
    replaced = {
        tensor.name: ((tensor.shape[0], len(kept)), tensor.kind, partial(_rows, file, tensor, kept))
        for tensor in file.tensors
        if tensor.name in EMBEDDING
    }
    write_gguf(file, out, {name: raw_array(file, name, kept) for name in _PER_TOKEN}, replaced)
    return len(file.tokens), len(kept)


def _rows(file: GgufFile, tensor: Tensor, kept: list[int]) -> bytes:
    import numpy as np

    data: bytes = np.frombuffer(data_of(file, tensor), dtype=np.uint8).reshape(tensor.shape[1], -1)[kept].tobytes()
    return data


@click.command()
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="GGUF file to write.")
@click.option("--first", default=0, show_default=True, help="Keep ASCII tokens among so many first only; 0 is all.")
@model_option
def main(out: Path, first: int, model: str | None) -> None:
    """Write the base model with the tokens of ASCII text alone to OUT (GGUF)."""
    if not out.parent.is_dir():
        fail(f"{out.parent}: no such folder; make it first.")
    before, after = prune(find_base(model).path, out, first)
    click.echo(f"{out}: {after} of {before} tokens, {out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    stage(main)
