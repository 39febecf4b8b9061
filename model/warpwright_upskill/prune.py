"""Cut a model's vocabulary to what code and English are written in: a third less of Gemma 3 270M, and faster.

    python -m warpwright_upskill.prune --out pruned.gguf

ASCII text has the same tokens as before, under other numbers, and an adapter fits both files.
"""

from __future__ import annotations

from pathlib import Path

import click
from warpwright.assist.taught.cut_vocabulary import cut, kept_tokens
from warpwright.assist.taught.gguf_file import GgufError, write_gguf

from warpwright_upskill.console import fail, stage
from warpwright_upskill.gguf_file import read_gguf
from warpwright_upskill.options import find_base, model_option


def prune(source: Path, out: Path, first: int = 0) -> tuple[int, int]:
    """Write the pruned model; returns the numbers of tokens before and after."""
    file = read_gguf(source)
    try:
        kept = kept_tokens(file, first)
        values, replaced = cut(file, kept)
    except GgufError as error:
        fail(str(error))
    write_gguf(file, out, values, replaced)
    return len(file.tokens), len(kept)


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
