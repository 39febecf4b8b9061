"""What training changed of the base's weights, as it comes with warpwright: a few bits a number, in files of 16 MB.

    python -m warpwright_upskill.ship encode FOLDER --bits 2 --out DATA    # where it was trained
    python -m warpwright_upskill.ship decode DATA --out FOLDER             # to ask it, or to train on from what ships
    python -m warpwright_upskill.ship blend FOLDER OTHER --out MEAN        # of two runs
    python -m warpwright_upskill.ship card DATA                            # where the whole base is

`encode` writes the parts, `decode` a folder as `train` writes one, with what the parts hold: `answers ask` and
`train --adapter` take it. `card` makes the model of base and parts once and notes its hash; the product makes the same
of them.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import click
from warpwright.assist.taught.card import Card, File, read_card, write_card
from warpwright.assist.taught.gguf_file import GgufError
from warpwright.assist.taught.make import make, read_part, write_changes
from warpwright.assist.weights import DEFAULT

from warpwright_upskill.console import StageError, fail, stage
from warpwright_upskill.export import LARGEST, torch_name, weight_name
from warpwright_upskill.gguf_file import fingerprint, read_gguf
from warpwright_upskill.options import find_base, model_option
from warpwright_upskill.training.lora import BASE_FILE, check_base, write_base
from warpwright_upskill.training.whole import CHANGES_FILE, PEFT, read_changes

NOTICE = """Gemma is provided under and subject to the Gemma Terms of Use found at ai.google.dev/gemma/terms.
These files are a Model Derivative of Gemma: what warpwright's training changed of the weights of Gemma 3 270M.
"""


@click.group(help=__doc__)
def main() -> None:
    pass


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--bits", default=2, show_default=True, type=click.IntRange(1, 4), help="Of each number.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder for the parts.")
def encode(folder: Path, bits: int, out: Path) -> None:
    """Write the changes in FOLDER, which `train` wrote with rank = 0, as parts of at most 16 MB."""
    changes = read_changes(folder)
    names = {weight_name(f"{PEFT}{each}"): each for each in changes}
    count = -(-sum(each.size for each in changes.values()) * bits // 8 // (LARGEST - (LARGEST >> 3)))
    out.mkdir(parents=True, exist_ok=True)
    for earlier in out.glob("changes-*.npz"):
        earlier.unlink()
    held: dict[str, Any] = {}
    for number in range(count):
        part = sorted(names)[number * len(names) // count : (number + 1) * len(names) // count]
        path = out / f"changes-{number + 1}.npz"
        write_changes({name: changes[names[name]] for name in part}, bits, path)
        if path.stat().st_size > LARGEST:
            fail(f"{path}: has {path.stat().st_size} bytes, more than {LARGEST}.")
        held |= {names[name]: get() for name, get in read_part(path).items()}
    shutil.copyfile(folder / BASE_FILE, out / BASE_FILE)
    lost = sum(_square(held[name] - each.astype("float32")) for name, each in changes.items())
    whole = sum(_square(each.astype("float32")) for each in changes.values())
    click.echo(f"{out}: {count} parts of {bits} bits, {1 - lost / whole:.1%} of the changes' square sum")


@main.command()
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder for the changes.")
@model_option
def decode(data: Path, out: Path, model: str | None) -> None:
    """Write what the parts in DATA hold of --model's weights as a folder of `train`."""
    from safetensors.numpy import save_file

    base = find_base(model).path
    parts = _parts(data)
    known = read_card(data)
    if known is None:
        check_base(data, base)
    elif known.base != fingerprint(read_gguf(base)):
        fail(f"{data}: is not of {base.name}; name its base with --model.")
    held = {torch_name(name): get().astype("float16") for part in parts for name, get in read_part(part).items()}
    out.mkdir(parents=True, exist_ok=True)
    save_file(held, out / CHANGES_FILE)
    write_base(base, out)


@main.command()
@click.argument("first", type=click.Path(path_type=Path))
@click.argument("second", type=click.Path(path_type=Path))
@click.option("--share", default=0.5, show_default=True, type=click.FloatRange(0, 1), help="Of the second.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder for the mean.")
def blend(first: Path, second: Path, share: float, out: Path) -> None:
    """Write the weighted mean of two runs, one of which went on from the other: it may answer better than both."""
    from safetensors.numpy import save_file

    one, other = read_changes(first), read_changes(second)
    of = [json.loads((each / BASE_FILE).read_text(encoding="utf-8"))["fingerprint"] for each in (first, second)]
    if of[0] != of[1] or one.keys() != other.keys():
        fail(f"{second}: is not of the same weights as {first}.")
    out.mkdir(parents=True, exist_ok=True)
    mean = {
        name: (each.astype("float32") * (1 - share) + other[name].astype("float32") * share).astype("float16")
        for name, each in one.items()
    }
    save_file(mean, out / CHANGES_FILE)
    shutil.copyfile(first / BASE_FILE, out / BASE_FILE)


@main.command()
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--first", default=80_000, show_default=True, help="Keep ASCII tokens among so many first only.")
@model_option
def card(data: Path, first: int, model: str | None) -> None:
    """Write card.json and the notice beside the parts in DATA."""
    base = find_base(model).path
    parts = tuple(map(_file, _parts(data)))
    of = fingerprint(read_gguf(base))
    if (data / BASE_FILE).is_file():
        check_base(data, base)
    name = f"warpwright-{DEFAULT.file_name.split('-q')[0]}-{parts[0].sha256[:8]}.gguf"
    unmade = Card("Gemma 3 270M, taught by warpwright", of, first, parts, File(name, 0, ""))
    write_card(unmade, data)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / name
        try:
            make(base, made, data)
        except GgufError as error:
            raise StageError(str(error)) from None
        write_card(Card(unmade.name, of, first, parts, _file(made)), data)
        click.echo(
            f"{name}: {made.stat().st_size / 1e6:.1f} MB, of {sum(each.size for each in parts) / 1e6:.1f} MB of changes"
        )
    (data / "NOTICE").write_text(NOTICE, encoding="utf-8")
    (data / BASE_FILE).unlink(missing_ok=True)


def _parts(data: Path) -> list[Path]:
    found = sorted(data.glob("changes-*.npz"))
    if not found:
        fail(f"{data}: holds no parts; `encode` writes them.")
    return found


def _square(matrix: Any) -> float:
    return float((matrix**2).sum())


def _file(path: Path) -> File:
    return File(path.name, path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest())


if __name__ == "__main__":
    stage(main)
