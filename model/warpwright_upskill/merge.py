"""Add an adapter, or what training changed of the weights, to its base model: one file instead of two.

    python -m warpwright_upskill.merge adapter --out merged.gguf

The weights that change are written as Q8_0. Four bits again would throw most of a small change away, so that base and
adapter apart stay the smaller choice; everything else is copied as it is. A first key says that the model is taught.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click
from warpwright.assist.taught.added_weights import added
from warpwright.assist.taught.card import MARK, TAUGHT_KEY
from warpwright.assist.taught.gguf_file import write_gguf

from warpwright_upskill.console import fail, stage
from warpwright_upskill.export import read_adapter, weight_name
from warpwright_upskill.gguf_file import read_gguf
from warpwright_upskill.options import find_base, model_option
from warpwright_upskill.training.lora import check_base
from warpwright_upskill.training.whole import PEFT, holds_changes, read_changes


def merge(adapter: Path, base: Path, out: Path) -> int:
    """Write the merged model; returns the number of weights that changed."""
    check_base(adapter, base)
    file = read_gguf(base)
    replaced = added(file, _changes(adapter))
    write_gguf(file, out, {TAUGHT_KEY: MARK}, replaced)
    return len(replaced)


def _changes(adapter: Path) -> dict[str, Callable[[], Any]]:
    """What is to be added to each weight, (rows, columns), by llama.cpp's name, computed when it is asked for."""
    if holds_changes(adapter):
        whole = read_changes(adapter)
        return {weight_name(f"{PEFT}{name}"): partial(whole.get, name) for name in whole}
    config, matrices = read_adapter(adapter)
    scale = float(config["lora_alpha"]) / float(config["r"])
    ups = [name for name in matrices if ".lora_B." in name]
    return {weight_name(up): partial(_product, matrices, up, scale) for up in ups}


def _product(matrices: Mapping[str, Any], up: str, scale: float) -> Any:
    down = matrices[up.replace(".lora_B.", ".lora_A.")]
    return scale * (matrices[up].astype("float32") @ down.astype("float32"))


@click.command()
@click.argument("adapter", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="GGUF file to write.")
@model_option
def main(adapter: Path, out: Path, model: str | None) -> None:
    """Write the base model with the trained ADAPTER (a folder from `train`) added to its weights."""
    if not out.parent.is_dir():
        fail(f"{out.parent}: no such folder; make it first.")
    count = merge(adapter, find_base(model).path, out)
    click.echo(f"{out}: {count} weights changed, {out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    stage(main)
